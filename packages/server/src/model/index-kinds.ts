import {
  findMethodExtension,
  getServed,
  type IndexMethod,
  type Served,
} from '../query/index-key.ts'

/** All that the server knows of a kind of index that a request may name. */
type IndexKind = {
  readonly method: IndexMethod
  /** It refuses a second record of the same value; the newest one takes its place. */
  readonly unique?: true
  /** It holds only records that have a value in the first field. */
  readonly sparse?: true
  /** It needs the condition of its records. */
  readonly partial?: true
  /** Writing a record costs the value of the field. */
  readonly priced?: true
}

/** The kinds by their names; several are names that the public clients have for one thing. */
const kinds = {
  btree: { method: 'btree' },
  hash: { method: 'hash' },
  string: { method: 'btree' },
  number: { method: 'btree' },
  boolean: { method: 'btree' },
  date: { method: 'btree' },
  composite: { method: 'btree' },
  unique: { method: 'btree', unique: true },
  primary: { method: 'btree', unique: true },
  secondary: { method: 'btree' },
  fulltext: { method: 'gin' },
  trigram: { method: 'trigram' },
  vector: { method: 'vector' },
  price: { method: 'btree', priced: true },
  sparse: { method: 'btree', sparse: true },
  partial: { method: 'btree', partial: true },
  integer: { method: 'btree' },
  object: { method: 'btree' },
  array: { method: 'btree' },
} as const satisfies Readonly<Record<string, IndexKind>>

const byName: ReadonlyMap<string, IndexKind> = new Map(Object.entries(kinds))

export const indexKindNames: readonly string[] = Object.keys(kinds)

/** Finds a kind by its name in any case. */
export function findIndexKind(name: string): IndexKind | undefined {
  return byName.get(name.toLowerCase())
}

/** Returns what an index of the kind finds records by. */
export function getServedBy(name: string): Served {
  return getServed(findIndexKind(name)?.method ?? 'btree')
}

/** Returns true if the index is searched by values, in their order or by equality. */
export function isByValue(name: string): boolean {
  return getServedBy(name) === 'values'
}

/** Finds the extension that the database must have for an index of the kind. */
export function findExtension(name: string): string | undefined {
  return findMethodExtension(findIndexKind(name)?.method ?? 'btree')
}
