import type { AppliedBlock, AppliedEntry, Applier, Step } from '../chain/applier.ts'
import type { Queryable } from '../database/database.ts'
import type { SqlStatement } from '../database/sql.ts'

/** Entries that follow one another. */
export type EntryRun = {
  readonly entries: readonly AppliedEntry[]
  /** See Applier. */
  readonly step?: Step | undefined
}

/**
 * Turns entries of some types into tables of one schema, and into the memory that serves requests.
 * The tables are a function of the entries alone: the same code serves writes, restart, rebuild and audit.
 */
export type Projection = {
  readonly types: readonly string[]
  /** The tables as they are before the first entry. */
  readonly tables: (schema: string) => readonly SqlStatement[]
  /** The tables that exist now, for audit and rebuild. */
  readonly tableNames: () => readonly string[]
  /** Tables that are derived from other tables; audit compares them with those. */
  readonly derivedTableNames?: () => readonly string[]
  /** Reads the tables into memory when a chain is opened. */
  readonly load: (database: Queryable, schema: string) => Promise<void>
  /** Applies a run of entries; the returned function changes the memory once the transaction has committed. */
  readonly apply: (tx: Queryable, schema: string, run: EntryRun) => Promise<() => void>
  /** See Applier; without entries it is applied to catch up. */
  readonly catchUpAt?: () => number | undefined
}

/** Makes a chain's applier: entries go, in order and in runs as long as possible, to the projection of their type. */
export function makeApplier(schema: string, projections: readonly Projection[]): Applier {
  const byType = new Map(
    projections.flatMap((one) => one.types.map((type) => [type, one] as const)),
  )
  return {
    apply: async (tx, blocks, step) => {
      const behind = projections.filter((one) => one.catchUpAt?.() !== undefined)
      const runs =
        blocks.length > 0
          ? groupRuns(blocks, byType)
          : behind.map((projection) => ({ projection, entries: [] }))
      const done: (() => void)[] = []
      for (const { projection, entries } of runs)
        done.push(await projection.apply(tx, schema, { entries, step }))
      return () => {
        for (const commit of done) commit()
      }
    },
    catchUpAt: () => {
      const times = projections.flatMap((one) => one.catchUpAt?.() ?? [])
      return times.length === 0 ? undefined : Math.min(...times)
    },
  }
}

function groupRuns(blocks: readonly AppliedBlock[], byType: ReadonlyMap<string, Projection>) {
  const runs: { projection: Projection; entries: AppliedEntry[] }[] = []
  for (const block of blocks) {
    for (const entry of block.entries) {
      const projection = byType.get(entry.header.type)
      // An entry of a type without tables (a chain's head in the system chain) needs none.
      if (projection === undefined) continue
      const last = runs.at(-1)
      if (last?.projection === projection) last.entries.push(entry)
      else runs.push({ projection, entries: [entry] })
    }
  }
  return runs
}
