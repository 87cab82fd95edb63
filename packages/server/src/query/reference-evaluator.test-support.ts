/**
 * The meaning of a find and of a sort over plain JavaScript values, written from docs/querying.md alone: it
 * shares nothing with the parser and the compiler, so that a test may hold them against it.
 */

type Json = unknown
type JsonObject = Readonly<Record<string, Json>>

export function evaluateFind(find: Json, record: Json): boolean {
  return evaluateObject(find as JsonObject, record, [])
}

/** Negative, zero or positive, as `a` sorts before, with or after `b` in ascending order. */
export function compareForSort(a: Json, b: Json): number {
  const ranks = [sortRank(a), sortRank(b)] as const
  if (ranks[0] !== ranks[1]) return ranks[0] - ranks[1]
  if (ranks[0] > 2) return 0
  return compareValues(a, b)
}

/** The value at a dotted path; undefined if there is none. */
export function getValueAt(record: Json, path: readonly string[]): Json {
  let value = record
  for (const name of path) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
    if (!Object.hasOwn(value, name)) return undefined
    value = (value as JsonObject)[name]
  }
  return value
}

function sortRank(value: Json): number {
  if (value === null || value === undefined) return 4
  return ['string', 'number', 'boolean', 'object'].indexOf(typeof value)
}

function evaluateObject(find: JsonObject, record: Json, path: readonly string[]): boolean {
  return Object.entries(find).every(([key, item]) => {
    const list = (Array.isArray(item) ? item : [item]) as JsonObject[]
    const one = (each: JsonObject) => evaluateObject(each, record, path)
    if (key === 'and') return list.every(one)
    if (key === 'or') return list.some(one)
    if (key === 'not') return !list.every(one)
    if (path.length > 0 && key in tests) return test(key, getValueAt(record, path), item)
    const inner = [...path, ...key.split('.')]
    if (typeof item !== 'object' || item === null)
      return test('is', getValueAt(record, inner), item)
    return evaluateObject(item as JsonObject, record, inner)
  })
}

function test(name: string, value: Json, operand: Json): boolean {
  const found = tests[name]
  if (found === undefined) throw new Error(`no reference for ${name}`)
  return found(value, operand)
}

const missing = (value: Json) => value === undefined || value === null
const same = (value: Json, operand: Json) => (operand === null ? missing(value) : value === operand)
const isText = (value: Json): value is string => typeof value === 'string'
const lower = (value: Json) => String(value).toLowerCase()
const ordered = (value: Json, operand: Json, right: (sign: number) => boolean) =>
  typeof value === typeof operand && value !== null && right(compareValues(value, operand))
const isMember = (value: Json, right: (element: Json) => boolean) =>
  Array.isArray(value) && value.some(right)
const greater = (value: Json, operand: Json) => ordered(value, operand, (sign) => sign > 0)
const least = (value: Json, operand: Json) => ordered(value, operand, (sign) => sign >= 0)
const less = (value: Json, operand: Json) => ordered(value, operand, (sign) => sign < 0)
const most = (value: Json, operand: Json) => ordered(value, operand, (sign) => sign <= 0)
const within = (value: Json, operand: Json) => {
  const [from, to] = Array.isArray(operand)
    ? operand
    : [(operand as JsonObject).from, (operand as JsonObject).to]
  return least(value, from) && most(value, to)
}
const includes = (value: Json, operand: Json) =>
  isText(value)
    ? isText(operand) && value.includes(operand)
    : isMember(value, (each) => each === operand)
const inBlock = (value: Json, operand: Json) =>
  isText(value) && (addressBlocks[value] ?? []).includes(String(operand))

/** The addresses that tests use, each with the blocks of the tests that it lies in. */
export const addressBlocks: Readonly<Record<string, readonly string[]>> = {
  '10.0.0.1': ['10.0.0.0/8', '10.0.0.1', '0.0.0.0/0', 'local'],
  '192.168.1.5': ['192.168.0.0/16', '0.0.0.0/0', 'local'],
  '8.8.8.8': ['0.0.0.0/0', 'external'],
  '::1': ['::/0', 'local'],
  '2001:db8::1': ['2001:db8::/32', '::/0', 'external'],
  'fe80::1:2': ['::/0', 'local'],
  '::ffff:10.0.0.1': ['::/0', 'local'],
}

/** The values of the data set of tests. */
export const dataSetValues = [
  'a',
  'AbC',
  '',
  'x'.repeat(127),
  '😀',
  '10.0.0.1',
  5,
  -1.5,
  1e21,
  true,
] as const
/** The addresses of tests that lie in its networks, and in countries. */
const addressesOf: Readonly<Record<string, readonly string[]>> = {
  networks: ['10.0.0.1', '2001:db8::1'],
  US: ['8.8.8.8'],
  AT: ['192.168.1.5', 'fe80::1:2'],
}

const tests: Readonly<Record<string, (value: Json, operand: Json) => boolean>> = {
  is: same,
  eq: same,
  isNot: (value, operand) => !same(value, operand),
  ne: (value, operand) => !same(value, operand),
  in: (value, operand) => (operand as Json[]).some((each) => same(value, each)),
  notIn: (value, operand) => !(operand as Json[]).some((each) => same(value, each)),
  isNull: (value, operand) => missing(value) === operand,
  isNotNull: (value, operand) => !missing(value) === operand,
  exists: (value, operand) => (value !== undefined) === operand,
  greaterThan: greater,
  gt: greater,
  greaterThanOrEqual: least,
  gte: least,
  lessThan: less,
  lt: less,
  lessThanOrEqual: most,
  lte: most,
  betweenOp: within,
  between: within,
  startsWith: (value, operand) => isText(value) && value.startsWith(String(operand)),
  endsWith: (value, operand) => isText(value) && value.endsWith(String(operand)),
  startsWithCaseInsensitive: (value, operand) =>
    isText(value) && lower(value).startsWith(lower(operand)),
  endsWithCaseInsensitive: (value, operand) =>
    isText(value) && lower(value).endsWith(lower(operand)),
  includes,
  contains: includes,
  includesCaseInsensitive: (value, operand) =>
    isText(value)
      ? lower(value).includes(lower(operand))
      : isMember(value, (each) => isText(each) && lower(each) === lower(operand)),
  regExpMatches: (value, operand) => {
    const pattern = String(operand)
    const flags = pattern.startsWith('(?i)') ? 'sui' : 'su'
    return isText(value) && new RegExp(pattern.replace(/^\(\?i\)/, ''), flags).test(value)
  },
  CIDR: inBlock,
  cidr: inBlock,
  isLocalIp: (value, operand) => inBlock(value, 'local') === operand,
  isExternalIp: (value, operand) => inBlock(value, 'external') === operand,
  inDataset: (value, operand) =>
    operand === 'some'
      ? dataSetValues.some((each) => each === value)
      : (addressesOf[String(operand)] ?? []).some((each) => each === value),
  inCountry: (value, operand) =>
    (addressesOf[String(operand).toUpperCase()] ?? []).some((each) => each === value),
  b64: (value, operand) => value === Buffer.from(String(operand), 'base64').toString(),
}

/** Numbers by size, false before true, strings by code points (which UTF-8 keeps the order of). */
function compareValues(a: Json, b: Json): number {
  if (isText(a) && isText(b)) return Buffer.compare(Buffer.from(a), Buffer.from(b))
  return Number(a) - Number(b) || 0
}
