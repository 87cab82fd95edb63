import type { Random } from './random.ts'

/** Random JSON values: usual ones for a field of this name, and unexpected ones. */
export type Value = unknown

/** Fields, keys and collections that the fixture has, so that most requests reach something. */
export const fields = ['name', 'population', 'tags', 'at', 'address.city', 'flag', 'id'] as const
export const collections = [
  'plain',
  'keyed',
  'sealed',
  'priced',
  'rows',
  'kilobytes',
  'events',
  'checked',
  'files',
  'hidden',
  'summary',
  'feed',
  'made',
] as const
export const recordKeys = ['k1', 'k2', 'k3', 'ä/ö', '7', 'nobody'] as const

const oddTexts = [
  '',
  ' ',
  '.',
  '..',
  'a.b.c',
  'a..b',
  '$where',
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  '{{app}}::plain',
  '::',
  'a::b::c',
  'plain"; --',
  "'; $1 \\",
  '\\',
  '%00',
  '%2e%2e%2f',
  '\u0000',
  '\u0001',
  '\u001e',
  '\u2028',
  '\ud800',
  '\udc00\ud800',
  '\ufeff',
  '💥',
  'İstanbul',
  'null',
  'true',
  '1e400',
  '-0',
  '9007199254740993',
  '0x10',
  'x'.repeat(64),
  'x'.repeat(300),
  'é'.repeat(3000),
  '9999-12-31T23:59:60Z',
  '2024-02-30T00:00:00Z',
  '+275760-09-13T00:00:00.001Z',
  '(a|a)*b',
  '[',
  '(?i)[z-a]',
  '\\-',
  'a{256}',
]
const oddNumbers = [
  0,
  -0,
  -1,
  1,
  1.5,
  1e21,
  5e-324,
  1.7976931348623157e308,
  2 ** 31,
  2 ** 53 - 1,
  2 ** 53,
  -(2 ** 63),
  0.1,
]

/** Makes a value that the place does not expect. */
export function makeOdd(random: Random): Value {
  switch (random.below(9)) {
    case 0:
      return null
    case 1:
      return random.chance(0.5)
    case 2:
    case 3:
      return random.pick(oddNumbers)
    case 4:
      return random.list(random.below(4), () => makeOdd(random))
    case 5:
      return Object.fromEntries(
        random.list(random.below(4), () => [random.pick(oddTexts), makeOdd(random)]),
      )
    case 6:
      return nested(random.pick([3, 20, 70, 300]), random.chance(0.5))
    default:
      return random.pick(oddTexts)
  }
}

export function pickOddText(random: Random): string {
  return random.pick(oddTexts)
}

/** Makes nested arrays or objects. */
function nested(depth: number, arrays: boolean): Value {
  let value: Value = 1
  for (let at = 0; at < depth; at++) value = arrays ? [value] : { a: value }
  return value
}

export function pickField(random: Random): string {
  return random.chance(0.85) ? random.pick(fields) : pickOddText(random)
}

function scalar(random: Random): Value {
  return random.pick<Value>(['Wien', 'k1', 100_001, 7, 1.5, true, false, null, '10.0.0.1', ''])
}

/** Makes a record as applications store them, now and then with something odd in it. */
export function makeRecord(random: Random): Value {
  if (random.chance(0.04)) return makeOdd(random)
  const made: Record<string, Value> = {
    id: random.chance(0.8) ? random.pick(recordKeys) : `r${random.below(1000)}`,
    name: random.pick(['Wien', 'Graz', 'Linz', '10.0.0.1', 'ﬀ']),
    population: random.below(1_000_000),
    tags: random.list(random.below(4), () => random.pick(['a', 'b', 7])),
    address: { city: 'Wien', zip: 1010 },
    flag: random.chance(0.5),
  }
  if (random.chance(0.2)) made[pickOddText(random)] = makeOdd(random)
  if (random.chance(0.2)) made[random.pick(Object.keys(made))] = makeOdd(random)
  if (random.chance(0.05)) made.deleted = random.chance(0.8) ? true : makeOdd(random)
  if (random.chance(0.1)) delete made.id
  return made
}

const operators = [
  'is eq isNot ne in notIn isNull isNotNull exists greaterThan gt gte lessThan lt lte between betweenOp',
  'startsWith startsWithCaseInsensitive endsWith endsWithCaseInsensitive includes contains',
  'includesCaseInsensitive regExpMatches CIDR isLocalIp isExternalIp b64 inCountry inDataset $gt nope',
]
  .join(' ')
  .split(' ')
const patterns = ['^W', 'n$', '(?i)wien', '[a-z]+', '(a|b){2,3}', '\\d*', 'a**', '(', '\\1', '.*']

/** Makes a `find`, mostly one that can be parsed. */
export function makeFind(random: Random, depth = 0): Value {
  if (random.chance(0.05)) return makeOdd(random)
  const entries = random.list(random.below(4), (): [string, Value] => {
    if (depth < 4 && random.chance(0.25)) {
      const inner = random.list(random.below(3), () => makeFind(random, depth + 1))
      return [random.pick(['and', 'or', 'not']), random.chance(0.8) ? inner : (inner[0] ?? null)]
    }
    if (random.chance(0.3)) return [pickField(random), scalar(random)]
    const operator = random.pick(operators)
    return [pickField(random), { [operator]: operand(random, operator) }]
  })
  return Object.fromEntries(entries)
}

function operand(random: Random, operator: string): Value {
  if (random.chance(0.1)) return makeOdd(random)
  switch (operator) {
    case 'in':
    case 'notIn':
      return random.list(random.below(5), () => scalar(random))
    case 'between':
    case 'betweenOp':
      return random.chance(0.5) ? [1, 5] : { from: 'a', to: 'z' }
    case 'regExpMatches':
      return random.pick(patterns)
    case 'CIDR':
      return random.pick(['10.0.0.0/8', '::/0', '10.0.0.0/33', 'fe80::1%eth0'])
    case 'isNull':
    case 'isNotNull':
    case 'exists':
    case 'isLocalIp':
    case 'isExternalIp':
      return random.chance(0.5)
    case 'b64':
      return random.pick(['V2llbg==', 'V2llbg', '!', '/w=='])
    default:
      return scalar(random)
  }
}

export function makeSelect(random: Random, depth = 0): Value {
  if (random.chance(0.05)) return makeOdd(random)
  return Object.fromEntries(
    random.list(random.below(4), () => [
      pickField(random),
      depth < 3 && random.chance(0.2) ? makeSelect(random, depth + 1) : random.chance(0.8),
    ]),
  )
}

export function makeSchemaDefinition(random: Random): Value {
  if (random.chance(0.1)) return makeOdd(random)
  if (random.chance(0.3)) return jsonSchema(random)
  return {
    fields: Object.fromEntries(
      random.list(random.below(4), () => [
        pickField(random),
        random.chance(0.1) ? makeOdd(random) : fieldRule(random),
      ]),
    ),
    ...(random.chance(0.1) && {
      required: random.chance(0.7) ? [pickField(random)] : makeOdd(random),
    }),
  }
}

function fieldRule(random: Random): Value {
  const maybe = (value: Value) => (random.chance(0.1) ? makeOdd(random) : value)
  return {
    ...(random.chance(0.8) && {
      type: maybe(random.pick(['string', 'number', 'integer', 'date', 'array', 'any'])),
    }),
    ...(random.chance(0.2) && { required: maybe(true) }),
    ...(random.chance(0.2) && { index: maybe(true) }),
    ...(random.chance(0.1) && { unique: maybe(true) }),
    ...(random.chance(0.3) && { default: random.chance(0.5) ? scalar(random) : makeOdd(random) }),
    ...(random.chance(0.3) && {
      validation: maybe({
        ...(random.chance(0.4) && { min: maybe(1) }),
        ...(random.chance(0.4) && { max: maybe(100) }),
        ...(random.chance(0.4) && { pattern: maybe(random.pick([...patterns, '\\-', ']'])) }),
        ...(random.chance(0.4) && { enum: maybe(['Wien', 'Graz', 7]) }),
      }),
    }),
  }
}

function jsonSchema(random: Random): Value {
  const rule = () =>
    random.pick<Value>([
      { type: 'string', pattern: random.pick(patterns) },
      { type: 'number', minimum: 0, multipleOf: random.pick([0, 0.1, 7]) },
      { $ref: '#' },
      { $ref: '#/$defs/none' },
      { type: random.pick(['null', 'nope', '']) },
      { enum: makeOdd(random) },
      { format: random.pick(['date-time', 'regex', 'nope']) },
      { anyOf: makeOdd(random) },
      makeOdd(random),
    ])
  return {
    type: 'object',
    properties: Object.fromEntries(random.list(random.below(4), () => [pickField(random), rule()])),
    ...(random.chance(0.3) && {
      required: random.chance(0.8) ? [pickField(random)] : makeOdd(random),
    }),
    ...(random.chance(0.2) && { additionalProperties: random.chance(0.5) ? false : rule() }),
    ...(random.chance(0.1) && { patternProperties: { [random.pick(patterns)]: rule() } }),
  }
}

export function makeAccessPolicy(random: Random): Value {
  if (random.chance(0.1)) return makeOdd(random)
  const names = () => random.list(random.below(4), () => pickField(random))
  return {
    read: random.pick(['public', 'public', 'key', 'private']),
    ...(random.chance(0.2) && {
      price: { [random.pick(['per_access', 'per_row', 'per_kb'])]: random.pick(['0', '1000', 7]) },
    }),
    ...(random.chance(0.3) && { preview: { rows: random.below(21), fields: names() } }),
    ...(random.chance(0.2) && { offered: { select: names(), filter: names(), sort: names() } }),
    ...(random.chance(0.2) && { empty_answer: random.pick(['free', 'per_access']) }),
    ...(random.chance(0.1) && { [pickOddText(random)]: makeOdd(random) }),
  }
}

/** Makes the body of an index creation, in one of the clients' dialects. */
export function makeIndexRequest(random: Random): Value {
  const name = random.pick(collections)
  const at = pickField(random)
  const type = random.pick([
    'btree',
    'hash',
    'string',
    'number',
    'unique',
    'fulltext',
    'trigram',
    'price',
    'x',
  ])
  const requests: readonly Value[] = [
    { name: `${name}_${at}_idx`, collection: name, field_name: at, index_type: type },
    { collection_name: name, field: at, type, unique: random.chance(0.3) },
    { collection: name, fields: random.list(random.below(6), () => pickField(random)) },
    {
      collection: name,
      field_name: at,
      index_config: { index_type: type },
      options: makeOdd(random),
    },
    {
      collection: name,
      field_name: at,
      read_price_config: {
        price_per_access_tia: random.pick<Value>([0.001, 0, 1e-7, -1, 1e300, '1', null]),
        price_per_kb: random.pick<Value>(['7', 7, 1.5, 'x', null]),
      },
    },
  ]
  return random.pick(requests)
}
