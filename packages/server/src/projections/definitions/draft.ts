import type { Definitions } from '../../model/catalog.ts'

/** Definitions while they are being changed; the lookups of a catalog are made when all are set. */
export type Draft = {
  -readonly [K in keyof Definitions]: Definitions[K] extends ReadonlyMap<infer I, infer T>
    ? Map<I, T>
    : Definitions[K]
}

/** Makes a draft that begins with what is defined. */
export function makeDraft(definitions: Definitions): Draft {
  return {
    collections: new Map(definitions.collections),
    indexes: new Map(definitions.indexes),
    relations: new Map(definitions.relations),
    migrations: new Map(definitions.migrations),
    dataSets: new Map(definitions.dataSets),
    views: new Map(definitions.views),
    grants: new Map(definitions.grants),
    queries: new Map(definitions.queries),
    pricing: definitions.pricing,
    nextNumber: definitions.nextNumber,
    version: definitions.version,
  }
}

/** Notes that a number is taken. */
export function noteNumber(draft: Draft, { number }: { readonly number: number }): void {
  draft.nextNumber = Math.max(draft.nextNumber, number + 1)
}

/** Removes the indexes of a collection or view that is gone. */
export function removeIndexes({ indexes }: Draft, readable: string): void {
  for (const [id, index] of indexes) if (index.collection === readable) indexes.delete(id)
}
