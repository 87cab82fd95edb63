import { limits } from '@tollbase/contract/limits'
import type { Entry } from '@tollbase/verify/entry'
import { requirePresent } from '../../base/assert.ts'
import { Fault } from '../../base/fault.ts'
import type { World } from '../../base/world.ts'
import { type Definition, makeDefinitionEntry } from '../../model/definition-entry.ts'
import type { MigrationDefinition } from '../../model/definitions.ts'
import { openRecordJudge, type RecordJudge } from '../../model/record-schema.ts'
import { readLive } from '../../projections/collection-store.ts'
import { requireCollection } from '../../services/access/find-sources.ts'
import { define } from '../../services/applications/define.ts'
import type { MigrationProgress } from '../../services/applications/progress.ts'
import type { Tenant } from '../../services/applications/tenants.ts'
import type { Uses } from '../../services/call.ts'
import { buildSchemaIndexes } from '../../services/collections/new-collection.ts'
import { runExclusively } from '../../services/locks/exclusive-section.ts'
import {
  checkRecord,
  checkRecords,
  describeAnonymously,
  describeProblems,
  pageBytesMax,
  type RecordProblem,
} from './check-records.ts'

export type Job = {
  readonly tenant: Tenant
  readonly begun: MigrationDefinition
  readonly progress: MigrationProgress
  /** Records of one page. */
  readonly rows: number
}

export type Outcome = {
  readonly status: 'completed' | 'failed'
  readonly checked: number
  readonly migrated: number
  readonly failed: number
  readonly errors: string[]
}

/**
 * Migrates a collection: checks all records, then walks them in the order of storing and stores those that lack
 * defaults anew. Records written meanwhile by the old schema come later in that order and so are reached too; the
 * schema is in force in the same block as the last of them. Never rejects.
 */
export async function runMigration(
  service: Uses<'world' | 'log' | 'database'>,
  job: Job,
): Promise<Outcome> {
  const { tenant, begun } = job
  try {
    return await migrate(service, job)
  } catch (error) {
    if (!(error instanceof Fault)) service.log.error({ error }, 'a migration failed')
    const problem = error instanceof Fault ? error.message : 'something went wrong on our side'
    return await fail(service, job, { errors: [problem] })
  } finally {
    tenant.migrating.delete(begun.collection)
  }
}

async function migrate(service: Uses<'world' | 'log' | 'database'>, job: Job): Promise<Outcome> {
  const { tenant, begun, progress, rows } = job
  const schema = openRecordJudge(begun.schema, Number.POSITIVE_INFINITY)
  const collection = requireCollection(tenant, begun.collection)
  const found = await checkRecords(service.database, tenant.schema, {
    collection,
    schema,
    rows,
    progress,
  })
  if (found.failed > 0) {
    const { checked, failed, problems } = found
    const { errors } = await fail(service, job, { problems })
    return { status: 'failed', checked, migrated: 0, failed, errors }
  }
  progress.of = found.checked
  progress.checked = 0
  for (let after = -1n; ; ) {
    const page = await tenant.definitions.run(() => fillPage(service, job, { schema, after }))
    if ('problems' in page) return fail(service, job, page)
    after = page.last
    if (page.done) {
      const { checked, migrated } = progress
      return { status: 'completed', checked, migrated, failed: 0, errors: [] }
    }
  }
}

/**
 * Fills the records of the page behind a leaf, while nobody else writes to the collection; with the last page the
 * schema is put in force. Gives the problems of records that were written meanwhile and break the new schema.
 */
async function fillPage(
  service: Uses<'world' | 'database'>,
  job: Job,
  { schema, after }: { schema: RecordJudge; after: bigint },
): Promise<{ last: bigint; done: boolean } | { problems: readonly RecordProblem[] }> {
  const { tenant, begun, progress, rows } = job
  const { collection: id } = begun
  return runExclusively(tenant, { world: service.world, collections: [id] }, async () => {
    const collection = requireCollection(tenant, id)
    const page = await readLive(service.database, tenant.schema, {
      table: collection.table,
      after,
      rows,
      bytes: pageBytesMax,
    })
    const entries: Entry[] = []
    let bytes = 0
    let taken = 0
    let last = after
    for (const row of page.rows) {
      const { filled, problems } = await checkRecord(row, { collection, schema })
      if (problems.length > 0) return { problems }
      bytes += filled === undefined ? 0 : Buffer.byteLength(filled)
      if (entries.length > 0 && bytes > pageBytesMax) break
      if (filled !== undefined)
        entries.push({ header: { type: 'record', collection: id, key: row.key }, body: filled })
      taken += 1
      last = row.leaf
    }
    const done = page.all && taken === page.rows.length
    const migrated = progress.migrated + entries.length
    const definitions = done ? buildFinalDefinitions(service.world, job, migrated) : []
    await append(tenant, id, [...entries, ...definitions.map(makeDefinitionEntry)])
    progress.checked += taken
    progress.migrated = migrated
    return { last, done }
  })
}

/** Builds the definitions that put the new schema and its indexes in force, and end the migration. */
function buildFinalDefinitions(
  world: World,
  { tenant, begun }: Job,
  migrated: number,
): Definition[] {
  const { collection: id } = begun
  const { catalog } = tenant.data
  const now = new Date(world.now()).toISOString()
  const before = requirePresent(catalog.collections.get(id), 'the collection')
  const after = { ...before, schema_definition: begun.schema, updated_at: now }
  const { indexes } = requireCollection(tenant, id)
  const ended: MigrationDefinition = { ...begun, state: 'completed', migrated, ended_at: now }
  return [
    { kind: 'collection', id, body: after },
    ...buildSchemaIndexes(world, { ...after, indexes }, catalog.nextNumber),
    { kind: 'migration', id, body: ended },
  ]
}

async function append(tenant: Tenant, id: string, entries: readonly Entry[]): Promise<void> {
  if (entries.length === 0) return
  const { height } = await tenant.keyReservations.follow(id, tenant.chain.append(entries))
  await tenant.chain.whenApplied(height)
}

/** Notes that the migration has failed; records that were filled stay filled. */
async function fail(
  service: Uses<'world' | 'log'>,
  job: Job,
  why: { readonly problems: readonly RecordProblem[] } | { readonly errors: string[] },
): Promise<Outcome> {
  const { tenant, begun, progress } = job
  const problems = 'problems' in why ? why.problems.slice(0, limits.migrationErrorsMax) : []
  const errors = 'errors' in why ? why.errors : describeProblems(problems)
  const { checked, migrated } = progress
  const ended_at = new Date(service.world.now()).toISOString()
  // A key or a name of a record would stay in the log when the record is erased or encrypted.
  const noted =
    'errors' in why
      ? { errors }
      : { errors: [], problems: describeAnonymously(problems, begun.schema) }
  const body: MigrationDefinition = { ...begun, state: 'failed', migrated, ...noted, ended_at }
  try {
    if (tenant.data.catalog.byId.has(begun.collection))
      await define(tenant, [{ kind: 'migration', id: begun.collection, body }], { isOwed: true })
  } catch (error) {
    // Then its task says that it was interrupted.
    service.log.warn({ error }, 'the end of a migration could not be noted')
  }
  return { status: 'failed', checked, migrated, failed: errors.length, errors }
}
