import { limits } from '@tollbase/contract/limits'
import { getOwnValue } from '../../base/is-record.ts'
import { mergeObjectTexts } from '../../base/json-text.ts'
import type { Queryable } from '../../database/database.ts'
import type { Collection } from '../../model/readable.ts'
import type { RecordJudge } from '../../model/record-schema.ts'
import { type LiveRow, readLive } from '../../projections/collection-store.ts'
import type { MigrationProgress } from '../../services/applications/progress.ts'

/** The size limit of one page of records. */
export const pageBytesMax = 2 * 1024 * 1024

export type RecordsToCheck = {
  readonly collection: Pick<Collection, 'table' | 'collection_type' | 'primary_column'>
  readonly schema: RecordJudge
  /** Records of one page. */
  readonly rows: number
}

/** A problem of a record with the schema. Its key may be personal: it is for the caller, and stays out of the log. */
export type RecordProblem = {
  readonly leaf: number
  readonly key: string
  readonly problem: string
}

export type CheckResult = {
  readonly checked: number
  /** Records that lack fields with defaults. */
  readonly migrated: number
  /** Records that break the schema. */
  readonly failed: number
  readonly problems: readonly RecordProblem[]
}

/** Checks every live record, page by page, without blocking writers. */
export async function checkRecords(
  database: Queryable,
  appSchema: string,
  wanted: RecordsToCheck & { readonly progress: MigrationProgress },
): Promise<CheckResult> {
  const { collection, rows, progress } = wanted
  let [failed, migrated] = [0, 0]
  const problems: RecordProblem[] = []
  for (let after = -1n; ; ) {
    const place = { table: collection.table, after, rows, bytes: pageBytesMax }
    const page = await readLive(database, appSchema, place)
    for (const row of page.rows) {
      const { filled, problems: own } = await checkRecord(row, wanted)
      if (own.length > 0) failed += 1
      else if (filled !== undefined) migrated += 1
      problems.push(...own.slice(0, limits.migrationErrorsMax - problems.length))
    }
    progress.checked += page.rows.length
    after = page.rows.at(-1)?.leaf ?? after
    if (page.all) return { checked: progress.checked, migrated, failed, problems }
  }
}

/**
 * Returns what a migration makes of a record: its text with the defaults that it lacks, if any; or the problems
 * that keep it from being migrated.
 */
export async function checkRecord(
  row: LiveRow,
  { collection, schema }: Pick<RecordsToCheck, 'collection' | 'schema'>,
): Promise<{ readonly filled: string | undefined; readonly problems: readonly RecordProblem[] }> {
  const record: Record<string, unknown> = JSON.parse(row.body)
  // Events are never changed.
  const isFixed = collection.collection_type === 'event'
  const missing = Object.entries(isFixed ? {} : schema.defaults).filter(
    ([name]) => name !== collection.primary_column && getOwnValue(record, name) === undefined,
  )
  const added = Object.fromEntries(missing)
  const filled =
    missing.length === 0 ? undefined : mergeObjectTexts(row.body, JSON.stringify(added))
  const found = await schema.listProblems({ ...added, ...record }, row.body.length)
  const problems = found.map(({ pointer, problem }) => `${pointer} ${problem}`)
  if (filled !== undefined && Buffer.byteLength(filled) > limits.recordBytesMax)
    problems.push(`would be larger than ${limits.recordBytesMax} bytes`)
  const of = { leaf: Number(row.leaf), key: row.key }
  return { filled, problems: problems.map((problem) => ({ ...of, problem })) }
}

/** Describes problems to whoever may read the records. */
export function describeProblems(problems: readonly RecordProblem[]): string[] {
  return problems
    .slice(0, limits.migrationErrorsMax)
    .map(({ key, problem }) => `${key}: ${problem}`)
}
