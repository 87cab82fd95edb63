import { limits } from '@tollbase/contract/limits'
import { Fault } from '../../base/fault.ts'
import { makeAbortedFault, type Turn } from '../../base/semaphore.ts'
import type { Queryable } from '../../database/queryable.ts'
import { type SqlStatement, sql } from '../../database/sql.ts'
import type { Collection } from '../../model/readable.ts'
import {
  readSealed,
  type SealedNames,
  type SealedPage,
  type SealedRow,
} from '../../projections/sealed-store.ts'
import { compileList, type ListRow } from '../../query/compile-list.ts'
import { findStatedKeys, findStatedValues } from '../../query/find-stated-values.ts'
import type { ListQuery } from '../../query/list-query.ts'
import { toDeletedFault } from '../access/find-sources.ts'
import type { Tenant } from '../applications/tenants.ts'
import type { PageSize } from './answer-query.ts'
import type { AuthorizedSource } from './authorize-sources.ts'
import { type QueryRunner, toQueryFault } from './run-query.ts'

/** Memory of the database for one step of a list of opened records, which may not go to its disk. */
const openedWorkMemoryMb = 128

type OpenedRow = Pick<SealedRow, 'leaf' | 'body'>

type OpenedList = {
  readonly tenant: Tenant
  readonly collection: Collection
  readonly query: ListQuery
  readonly sources: readonly AuthorizedSource[]
}

/** Cannot occur in JSON text. */
const separator = '\u001e'

/** Characters of records that are sent to the database at once; a single record may be longer. */
const partChars = 256 * 1024
const settings = { leaves: 'tollbase.leaves_', bodies: 'tollbase.bodies_' } as const

/**
 * Lists an encrypted collection: its envelopes are opened here, and the statement of every other list runs over
 * them as values, so that conditions, orders and pages mean the same. The keys that the query states, or the values of
 * a field with tokens, are looked up by these; for all else every record is opened, up to a limit.
 */
export async function listOpened(
  { database, semaphore }: QueryRunner,
  { tenant, collection, query, sources }: OpenedList,
  { size, turn }: { readonly size: PageSize; readonly turn: Turn },
): Promise<ListRow> {
  const signal = turn.getSignal?.()
  try {
    // A list that waits for a key manager takes no slot from others.
    await tenant.sealer.prepare(collection)
    return await semaphore.run(turn, async () => {
      const found = await readSealed(database, {
        schema: tenant.schema,
        table: collection.table,
        history: query.history,
        signal,
        names: await findNames(tenant, collection, query),
      })
      refuseMany(collection, found)
      const opened = await tenant.sealer.open(collection, found.rows, signal)
      const row = await database.transaction(
        async (tx) => {
          await tx.query(inMemoryOnly)
          const parts = await putParts(tx, opened)
          const { text, values } = compileList(
            { ...query, limit: size.limit },
            {
              schema: tenant.schema,
              table: collection.table,
              rows: { parts, ...settings, separator },
              caps: { rows: limits.rowsMax, bytes: size.bytesMax },
              total: size.total && query.nearest === undefined,
              dataSets: sources[0]?.dataSets,
            },
          )
          return (await tx.query<ListRow>(sql.compiled(text, values)))[0]
        },
        { statementTimeoutMs: limits.queryTimeoutMs, workers: 'none', signal },
      )
      if (row === undefined) throw new Error('the watermark is missing')
      return { ...row, ...found.position }
    })
  } catch (error) {
    if (signal?.aborted === true) throw makeAbortedFault()
    throw toQueryFault(error) ?? toDeletedFault(error) ?? removeValues(error)
  }
}

async function findNames(
  { sealer }: Tenant,
  collection: Collection,
  { where }: ListQuery,
): Promise<SealedNames | undefined> {
  const keys = findStatedKeys(where, collection.primary_column)
  if (keys !== undefined) return { keys: await sealer.listTokens(collection, keys) }
  for (const { field, from } of collection.token_fields ?? []) {
    const values = findStatedValues(where, field)
    if (values === undefined) continue
    const tokens = await sealer.listFieldTokens(collection, { field, values })
    if (tokens !== undefined) return { values: tokens, from }
  }
  return undefined
}

/**
 * Puts opened records where the statement finds them: in settings of the transaction, which end with it and are never
 * written. As one value of the statement 24 MB would hold up all other requests while they are joined and sent.
 */
async function putParts(tx: Queryable, opened: readonly OpenedRow[]): Promise<number> {
  let parts = 0
  for (let from = 0; from < opened.length; parts++) {
    const to = findPartEnd(opened, from)
    const part = opened.slice(from, to)
    const leaves = `{${part.map(({ leaf }) => leaf).join()}}`
    const bodies = part.map(({ body }) => body).join(separator)
    // The function returns its value, which nobody needs.
    await tx.query(sql`
      SELECT set_config(${settings.leaves + (parts + 1)}, ${leaves}, true) IS NULL,
        set_config(${settings.bodies + (parts + 1)}, ${bodies}, true) IS NULL`)
    from = to
  }
  return parts
}

function findPartEnd(opened: readonly OpenedRow[], from: number): number {
  let to = from
  for (let chars = 0; to < opened.length && chars < partChars; to++)
    chars += opened[to]?.body.length ?? 0
  return to
}

/** Opened records never get onto the disk of the database, as sorted runs of a larger statement would. */
const inMemoryOnly: SqlStatement = sql`
  SELECT set_config('work_mem', ${`${openedWorkMemoryMb}MB`}, true),
    CASE WHEN (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user)
      THEN set_config('temp_file_limit', '0', true) END`

function refuseMany({ name }: Collection, { isOver }: SealedPage): void {
  if (!isOver) return
  const { openedRecordsMax, openedBytesMax } = limits
  throw new Fault('RESULT_TOO_LARGE', {
    message: `${name} is encrypted: a list of it opens at most ${openedRecordsMax} records of ${openedBytesMax} bytes, and this one would open more; name records by their keys, or by a field that the schema declares with index`,
    details: { records_max: openedRecordsMax, bytes_max: openedBytesMax },
  })
}

/** An error of the database may quote the values of its statement. */
function removeValues(error: unknown): unknown {
  if (!(error instanceof Error && 'code' in error) || error instanceof Fault) return error
  return new Error(`a list of opened records failed (${String(error.code)})`)
}
