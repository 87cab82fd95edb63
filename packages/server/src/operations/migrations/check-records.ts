import { limits } from '@tollbase/contract/limits'
import { ownValue } from '../../base/is-record.ts'
import { mergedText } from '../../base/json-text.ts'
import type { Queryable } from '../../database/database.ts'
import type { CollectionState } from '../../model/definitions.ts'
import type { RecordSchema } from '../../model/record-schema.ts'
import { type LiveRow, readLive } from '../../projections/collection-store.ts'
import type { MigrationProgress } from '../../services/applications/tenancy.ts'

/** Of one page of records. */
export const pageBytesMax = 2 * 1024 * 1024

export type Wanted = {
  readonly collection: Pick<CollectionState, 'table' | 'collection_type' | 'primary_column'>
  readonly schema: RecordSchema
  /** Records of one page. */
  readonly rows: number
}

export type Found = {
  readonly checked: number
  /** Records that lack fields with defaults. */
  readonly migrated: number
  /** Records that break the schema. */
  readonly failed: number
  readonly errors: string[]
}

/** Judges every live record, page by page, without holding anybody up. */
export async function checkAll(
  database: Queryable,
  appSchema: string,
  wanted: Wanted & { readonly progress: MigrationProgress },
): Promise<Found> {
  const { collection, rows, progress } = wanted
  let [failed, migrated] = [0, 0]
  const errors: string[] = []
  for (let after = -1n; ; ) {
    const place = { table: collection.table, after, rows, bytes: pageBytesMax }
    const page = await readLive(database, appSchema, place)
    for (const row of page.rows) {
      const { filled, problems } = judge(row, wanted)
      if (problems.length > 0) failed += 1
      else if (filled !== undefined) migrated += 1
      for (const problem of problems)
        if (errors.length < limits.migrationErrorsMax) errors.push(problem)
    }
    progress.checked += page.rows.length
    after = page.rows.at(-1)?.leaf ?? after
    if (page.all) return { checked: progress.checked, migrated, failed, errors }
  }
}

/** What a migration makes of a record: its text with the defaults it lacks, if any; or why it cannot be migrated. */
export function judge(
  row: LiveRow,
  { collection, schema }: Pick<Wanted, 'collection' | 'schema'>,
): { readonly filled: string | undefined; readonly problems: string[] } {
  const record: Record<string, unknown> = JSON.parse(row.body)
  // Events are never changed.
  const isFixed = collection.collection_type === 'event'
  const missing = Object.entries(isFixed ? {} : schema.defaults).filter(
    ([name]) => name !== collection.primary_column && ownValue(record, name) === undefined,
  )
  const added = Object.fromEntries(missing)
  const filled = missing.length === 0 ? undefined : mergedText(row.body, JSON.stringify(added))
  const problems = schema
    .problems({ ...added, ...record })
    .map(({ pointer, problem }) => `${row.key}: ${pointer} ${problem}`)
  if (filled !== undefined && Buffer.byteLength(filled) > limits.recordBytesMax)
    problems.push(`${row.key}: would be larger than ${limits.recordBytesMax} bytes`)
  return { filled, problems }
}
