import type { Task } from '@tollbase/contract/task'
import type { Static } from 'typebox'
import type { Block } from '../../chain/parse-block.ts'
import type { Queryable } from '../../database/database.ts'
import type { MigrationDefinition } from '../../model/definitions.ts'
import { isEncrypted } from '../../model/encrypted-collections.ts'
import { readKeys } from '../../projections/read-records.ts'
import type { Tenant } from '../applications/tenants.ts'

/** The task of the migration that begins with this entry; undefined where the entry begins none. */
export async function findMigrationTask(
  database: Queryable,
  tenant: Tenant,
  place: { id: string; block: Block; sequence: number },
): Promise<Static<typeof Task> | undefined> {
  const { block, sequence } = place
  const entry = block.entry(sequence)
  const isOne = entry?.header.type === 'definition' && entry.header.kind === 'migration'
  if (!isOne || entry.body === '') return undefined
  const begun: MigrationDefinition = JSON.parse(entry.body)
  if (begun.state !== 'running') return undefined
  const newest = tenant.data.catalog.migrations.get(begun.collection)
  const now = newest?.id === begun.id ? newest : undefined
  const progress = now && tenant.migrating.get(begun.collection)
  const log = [`began in block ${block.height}`]
  if (progress !== undefined)
    log.push(`${progress.checked} records of about ${progress.of} checked`)
  if (now?.state === 'completed')
    log.push(`${now.migrated} records got defaults; the schema is in force`)
  const errors = now === undefined ? [] : await listErrors(database, tenant, now)
  log.push(...errors)
  return {
    ticket_id: place.id,
    status: toTaskStatus(now, { errors, isRunning: progress !== undefined }),
    operation_type: 'migrate',
    created_at: begun.started_at,
    updated_at: now?.ended_at ?? begun.started_at,
    user_address: null,
    transaction_hash: null,
    block_height: block.height,
    progress_log: log,
  }
}

/** Problems of records that are still there name them by their keys. */
async function listErrors(
  database: Queryable,
  { schema, data }: Tenant,
  { collection: id, errors, problems = [] }: MigrationDefinition,
): Promise<readonly string[]> {
  if (problems.length === 0) return errors
  const collection = data.catalog.byId.get(id)
  const isNamed = collection !== undefined && !isEncrypted(collection)
  const leaves = problems.map(({ leaf }) => leaf)
  const keys = isNamed
    ? await readKeys(database, { schema, table: collection.table, leaves })
    : new Map<number, string>()
  const named = problems.map(
    ({ leaf, problem }) => `${keys.get(leaf) ?? `the record of leaf ${leaf}`}: ${problem}`,
  )
  return [...errors, ...named]
}

function toTaskStatus(
  now: MigrationDefinition | undefined,
  { errors, isRunning }: { readonly errors: readonly string[]; readonly isRunning: boolean },
) {
  if (now?.state === 'completed') return 'Completed'
  if (isRunning) return 'StoringData'
  if (now === undefined)
    return { Failed: { error: 'a newer migration took its place, or the collection is deleted' } }
  const [first = 'the migration was interrupted; repeat it'] = errors
  return { Failed: { error: first } }
}
