import { limits } from '@tollbase/contract/limits'
import { assert } from '../../base/assert.ts'
import { getOwnValue, isRecord } from '../../base/is-record.ts'
import { mergeObjectTextsInTurns } from '../../base/json-text.ts'
import { parseTextInTurns } from '../../base/parse-json-in-turns.ts'
import type { Queryable } from '../../database/database.ts'
import type { Collection } from '../../model/readable.ts'
import { type RecordJudge, toPointer } from '../../model/record-schema.ts'
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

/**
 * A problem of a record with the schema. Its key, and names in its pointer, may be personal: they are for the caller, and
 * stay out of the log.
 */
export type RecordProblem = {
  readonly leaf: number
  readonly key: string
  /** Within the record. */
  readonly pointer: string
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
  const record = await parseTextInTurns(row.body)
  assert(isRecord(record), 'a record is an object')
  // Events are never changed.
  const isFixed = collection.collection_type === 'event'
  const missing = Object.entries(isFixed ? {} : schema.defaults).filter(
    ([name]) => name !== collection.primary_column && getOwnValue(record, name) === undefined,
  )
  const added = Object.fromEntries(missing)
  let members = 0
  const filled =
    missing.length === 0
      ? undefined
      : await mergeObjectTextsInTurns(row.body, JSON.stringify(added), (_, all) => {
          members = all
        })
  const found = await schema.listProblems({ ...added, ...record }, row.body.length)
  const problems = [...found]
  const { objectMembersMax: most } = limits
  if (members > most)
    problems.push({ pointer: '', problem: `would have more than ${most} members` })
  if (filled !== undefined && Buffer.byteLength(filled) > limits.recordBytesMax)
    problems.push({ pointer: '', problem: `would be larger than ${limits.recordBytesMax} bytes` })
  const of = { leaf: Number(row.leaf), key: row.key }
  return { filled, problems: problems.map((one) => ({ ...of, ...one })) }
}

/** Describes problems to whoever may read the records. */
export function describeProblems(problems: readonly RecordProblem[]): string[] {
  return problems
    .slice(0, limits.migrationErrorsMax)
    .map(({ key, pointer, problem }) => `${key}: ${formatProblem(pointer, problem)}`)
}

/** Describes problems to whoever reads the log, by leaves and by names that the schema has. */
export function describeAnonymously(
  problems: readonly RecordProblem[],
  schema: unknown,
): { readonly leaf: number; readonly problem: string }[] {
  const known = listTexts(schema)
  const showStep = (step: string) => (known.has(step) ? step : '*')
  return problems.map(({ leaf, pointer, problem }) => {
    const [root = '', ...steps] = pointer.split('/')
    return { leaf, problem: formatProblem([root, ...steps.map(showStep)].join('/'), problem) }
  })
}

function formatProblem(pointer: string, problem: string): string {
  return pointer === '' ? problem : `${pointer} ${problem}`
}

/** Lists the names and texts of a schema, as they are in pointers. */
function listTexts(schema: unknown, found = new Set<string>()): ReadonlySet<string> {
  if (typeof schema === 'string') found.add(toPointer(schema).slice(1))
  else if (typeof schema === 'object' && schema !== null)
    for (const [name, part] of Object.entries(schema)) {
      if (!Array.isArray(schema)) found.add(toPointer(name).slice(1))
      listTexts(part, found)
    }
  return found
}
