import type { Chance } from './engine-chance.ts'
import type { Write } from './engine-place.ts'

export const collections = ['a', 'b', 'c'] as const

const long = 'x'.repeat(150)
/** Texts of JSON values, so that digits are kept. Few, so that records meet. */
const keys = [
  '"x"',
  '"y"',
  '1',
  '1.0',
  'true',
  'null',
  '{"p":1}',
  '[1.0]',
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
  '-7.125',
  '3',
  '9007199254740993',
]
const edges = [
  '12345678901234567890.123',
  '1e-30',
  '-1e300',
  '1e401',
  '"7"',
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
  `"${long}a"`,
  `"${'é'.repeat(900)}"`,
  '5',
  'null',
  '"a b"',
]

function record(chance: Chance): string {
  const of = (name: string, values: readonly string[]) =>
    chance.happens(12) ? [] : [`"${name}":${chance.one(values)}`]
  const members = [
    ...of('g', keys.slice(0, chance.happens(70) ? 3 : keys.length)),
    ...of('h', keys.slice(0, 4)),
    ...of('n', chance.happens(80) ? numbers : edges),
    ...of('m', numbers.slice(0, 4)),
    ...of('t', texts),
    ...of('v', [...keys, ...numbers, ...edges, ...texts]),
  ]
  return `{${members.join(',')}}`
}

/** Inserts, updates, deletions and records added back; the same key may come again in one block. */
export function block(chance: Chance): readonly Write[] {
  if (chance.happens(4)) {
    const collection = chance.one(collections)
    return Array.from({ length: 9 }, (_, key) => ({
      collection,
      key: String(key),
      body: undefined,
    }))
  }
  return Array.from({ length: 1 + chance.below(6) }, () => ({
    collection: chance.one(collections),
    key: String(chance.below(9)),
    body: chance.happens(22) ? undefined : record(chance),
  }))
}
