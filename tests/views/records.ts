import type { Chance } from './engine-chance.ts'
import type { Write } from './engine-place.ts'
import { iterateFewer } from './shrink.ts'

export const collections = ['a', 'b', 'c'] as const

/** A version of a record. */
export type StoredRecord = {
  readonly in: string
  readonly key: string
  /** The fields as texts of JSON, so that digits are kept; undefined where the record is deleted. */
  readonly fields?: Fields
}
type Fields = Readonly<Record<string, string>>

/** Prints the fields as the text of an object. */
export function printBody(fields: Fields): string {
  return `{${Object.entries(fields)
    .map(([name, value]) => `${JSON.stringify(name)}:${value}`)
    .join(',')}}`
}

export function toWrites(records: readonly StoredRecord[]): readonly Write[] {
  return records.map(({ in: collection, key, fields }) => {
    return { collection, key, body: fields === undefined ? undefined : printBody(fields) }
  })
}

const long = 'x'.repeat(150)
/** Few values, so that records meet. */
const keys = [
  '"x"',
  '"y"',
  '1',
  '1.0',
  '"1"',
  'true',
  'null',
  '{"p":1}',
  '{"p":1.0}',
  '[1.0]',
  '["1"]',
  `"${long}y"`,
  `"${long}z"`,
]
const numbers = [
  '0',
  '1',
  '-1',
  '2.50',
  '2.5',
  '1e2',
  '0.1',
  '0.10',
  '0.2',
  '-7.125',
  '3',
  '9007199254740993',
]
const edges = [
  '-0',
  '0.30000000000000004',
  '9007199254740992',
  '12345678901234567890.123',
  '-99999999999999999999999999999999999999.99999999999999999999',
  '1e-30',
  '5e-324',
  '1e308',
  '-1e300',
  '"7"',
  '"1e2"',
  'null',
  'false',
  '[]',
  '{}',
]
const texts = [
  '"a"',
  '"b"',
  '"B"',
  '""',
  '"7"',
  `"${long}a"`,
  `"${'é'.repeat(900)}"`,
  `"${'!'.repeat(1_600)}"`,
  '5',
  'null',
  '"a b"',
]

type Values = (chance: Chance) => readonly string[]

const fieldValues: ReadonlyMap<string, Values> = new Map<string, Values>([
  ['g', (chance) => keys.slice(0, chance.happens(70) ? 3 : keys.length)],
  ['h', () => keys.slice(0, 5)],
  ['n', (chance) => (chance.happens(80) ? numbers : edges)],
  ['m', () => numbers.slice(0, 4)],
  ['t', () => texts],
  ['v', () => [...keys, ...numbers, ...edges, ...texts]],
])

const collectionKeys = 9

/** Makes the blocks of one history: each call draws the next. */
export function makeBlockSource(chance: Chance): () => readonly StoredRecord[] {
  /** The fields that each record had last. */
  const had = new Map<string, Fields>()
  const one = (): StoredRecord => {
    const [collection, key] = [chance.one(collections), String(chance.below(collectionKeys))]
    if (chance.happens(22)) return { in: collection, key }
    const before = had.get(`${collection} ${key}`)
    const fields =
      before === undefined || chance.happens(60) ? drawn(chance) : again(chance, before)
    had.set(`${collection} ${key}`, fields)
    return { in: collection, key, fields }
  }
  return () => {
    if (chance.happens(5)) return allDeleted(chance.some(collections, 1, chance.one([1, 1, 3])))
    const records = Array.from({ length: 1 + chance.below(6) }, one)
    const [last] = records.slice(-1)
    return last !== undefined && chance.happens(5) ? [...records, last] : records
  }
}

function drawn(chance: Chance): Fields {
  const members = [...fieldValues]
    .filter(() => !chance.happens(12))
    .map(([name, values]) => [name, chance.one(values(chance))])
  return Object.fromEntries(members)
}

/**
 * Returns the fields that the record had, all the same, or with one field changed: another key of a group or a
 * join, say.
 */
function again(chance: Chance, before: Fields): Fields {
  if (chance.happens(30)) return before
  const [name, values] = chance.one([...fieldValues])
  const { [name]: _gone, ...rest } = before
  return chance.happens(15) ? rest : { ...rest, [name]: chance.one(values(chance)) }
}

function allDeleted(names: readonly string[]): readonly StoredRecord[] {
  return names.flatMap((name) =>
    Array.from({ length: collectionKeys }, (_, key) => ({ in: name, key: String(key) })),
  )
}

/** Yields records with fewer fields, and simpler values. */
export function* simplifyRecord(record: StoredRecord): Generator<StoredRecord> {
  const { fields } = record
  if (fields === undefined) return
  for (const some of iterateFewer(Object.entries(fields)))
    yield { ...record, fields: Object.fromEntries(some) }
  for (const [name, value] of Object.entries(fields))
    for (const simple of simplest.slice(0, simplestAt(value)))
      yield { ...record, fields: { ...fields, [name]: simple } }
}

const simplest = ['0', '1', '"x"', 'null']

function simplestAt(value: string): number {
  const at = simplest.indexOf(value)
  return at === -1 ? simplest.length : at
}
