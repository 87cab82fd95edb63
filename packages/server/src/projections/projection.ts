import type { AppliedEntry, Step } from '../chain/applier.ts'
import type { Queryable } from '../database/database.ts'
import type { SqlStatement } from '../database/sql.ts'

/** Entries that follow one another. */
export type EntryRun = {
  readonly entries: readonly AppliedEntry[]
  /** See Applier. */
  readonly step?: Step | undefined
}

export type ReplayOptions = {
  /** Leaves sellers' indexes, but for those of unique fields, to `createIndexes`: made at once they take less time. */
  readonly hasIndexesLater?: boolean
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
  /** Makes what a replay left for its end, see ReplayOptions. */
  readonly createIndexes?: (tx: Queryable, schema: string) => Promise<void>
  /** See Applier; without entries it is applied to catch up. */
  readonly catchUpAt?: () => number | undefined
}
