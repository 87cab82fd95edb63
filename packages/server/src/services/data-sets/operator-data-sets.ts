import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { limits } from '@tollbase/contract/limits'
import { Fault, makeInvalidFault } from '../../base/fault.ts'
import type { Database } from '../../database/database.ts'
import { sql } from '../../database/sql.ts'
import { buildDataSetTable, fillDataSet } from '../../projections/data-set-table.ts'
import { countrySet, type DataSetKind, type DataSetTable } from '../../query/data-set.ts'
import { parseEntries, type SentEntries } from './parse-entries.ts'

/** A file of one value, network, or network and country, a line; `#` begins a comment. */
export type DataSetFile = {
  readonly name: string
  readonly kind: DataSetKind
  readonly file: string
}

/** A data set that a query looks into; `version` changes with its content. */
export type VersionedDataSet = DataSetTable & { readonly version: string }

/** The operator's data sets, for the queries of all applications. */
export type OperatorDataSets = {
  /** By name; the one that knows countries also by `countrySet`. */
  readonly get: (name: string) => VersionedDataSet | undefined
  readonly descriptions: readonly DataSetDescription[]
}

type DataSetDescription = {
  readonly name: string
  readonly kind: DataSetKind
  readonly count: number
  readonly public: true
  readonly provider: 'operator'
  readonly updated_at: null
}

/** A header of a file: words, and no address. */
const header = /^[A-Za-z_ ",]+$/

/**
 * Loads the files into tables of the operational state, each named by the digest of its file, so that an unchanged
 * file is not loaded again. Tables of former files are dropped. A Fault names the file and the line that is wrong.
 */
export async function loadDataSets(
  database: Database,
  files: readonly DataSetFile[],
): Promise<OperatorDataSets> {
  const found = new Map<string, VersionedDataSet>()
  const views: DataSetDescription[] = []
  for (const file of files) {
    const digest = await computeDigest(file)
    const table = `data_set_${digest.slice(0, 32)}`
    const place = { schema: 'operations', table, kind: file.kind }
    if (!(await listTables(database)).includes(table)) await loadFile(database, place, file)
    const set = { ...place, version: digest }
    found.set(file.name, set)
    if (file.kind === 'ip_country') found.set(countrySet, set)
    const [row] = await database.query<{ count: bigint }>(
      sql`SELECT count(*) AS count FROM ${sql.id('operations', table)}`,
    )
    const { name, kind } = file
    const count = Number(row?.count ?? 0)
    views.push({ name, kind, count, public: true, provider: 'operator', updated_at: null })
  }
  const used = new Set([...found.values()].map(({ table }) => table))
  for (const table of await listTables(database))
    if (!used.has(table)) await database.execute(sql`DROP TABLE ${sql.id('operations', table)}`)
  return { get: (name) => found.get(name), descriptions: views }
}

async function loadFile(
  database: Database,
  place: { readonly schema: string; readonly table: string; readonly kind: DataSetKind },
  file: DataSetFile,
): Promise<void> {
  const entries = await parseEntries(file.kind, await readLines(file))
  await database.transaction(
    async (tx) => {
      await tx.execute(buildDataSetTable(place))
      await fillDataSet(tx, place, entries)
    },
    { statementTimeoutMs: 0 },
  )
  await database.execute(sql`ANALYZE ${sql.id(place.schema, place.table)}`)
}

async function readLines(file: DataSetFile): Promise<SentEntries> {
  const values: string[] = []
  const numbers: number[] = []
  let number = 0
  for await (const line of createInterface({ input: createReadStream(file.file) })) {
    number += 1
    const value = line.trim()
    const isHeader = number === 1 && file.kind !== 'values' && header.test(value)
    if (value === '' || value.startsWith('#') || isHeader) continue
    if (values.length >= limits.dataSetFileEntriesMax)
      throw makeInvalidFault(file.file, `has more than ${limits.dataSetFileEntriesMax} entries`)
    values.push(value)
    numbers.push(number)
  }
  return { values, locate: (at) => `${file.file}:${numbers[at]}` }
}

/** Hashes the kind and the content of the file, which decide the table. */
async function computeDigest({ kind, file, name }: DataSetFile): Promise<string> {
  const hash = createHash('sha256').update(`${kind}\n`)
  try {
    for await (const chunk of createReadStream(file)) hash.update(chunk)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new Fault('VALIDATION_FAILED', {
      message: `The data set ${name} cannot be read: ${why}`,
      cause: error,
    })
  }
  return hash.digest('hex')
}

async function listTables(database: Database): Promise<string[]> {
  const rows = await database.query<{ name: string }>(sql`
    SELECT tablename::text AS name FROM pg_catalog.pg_tables
    WHERE schemaname = 'operations' AND starts_with(tablename::text, 'data_set_')`)
  return rows.map(({ name }) => name)
}
