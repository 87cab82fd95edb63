import { requirePresent } from '../../base/assert.ts'
import { awaitWithin } from '../../base/await-within.ts'
import { Fault } from '../../base/fault.ts'
import { checkSchemaDefinition } from '../../model/check-schema.ts'
import { sumGrowth } from '../../model/definition-bytes.ts'
import type { Definition } from '../../model/definition-entry.ts'
import type { MigrationDefinition } from '../../model/definitions.ts'
import { refuseOnPrivate, refuseResealing } from '../../model/encrypted-collections.ts'
import { openRecordJudge } from '../../model/record-schema.ts'
import { refuseOperator, requireCollection } from '../../services/access/find-sources.ts'
import { define, refuseWithoutRoom } from '../../services/applications/define.ts'
import type { Tenant } from '../../services/applications/tenants.ts'
import type { Uses } from '../../services/call.ts'
import { buildSchemaIndexes } from '../../services/collections/new-collection.ts'
import { sealTicket } from '../../services/tasks/tickets.ts'
import type { Operation } from '../operation.ts'
import { checkRecords, describeProblems } from './check-records.ts'
import { type Job, runMigration } from './run-migration.ts'

const rowsDefault = 1_000
/** The time that the reply waits for the end; the public clients wait 30 seconds for a reply. */
const patienceMs = 10_000

export const migrateCollection: Operation<
  'migrateCollection',
  'world' | 'log' | 'database' | 'tenants' | 'ticketKey'
> = async (call, { params, body }) => {
  const { service } = call
  await checkSchemaDefinition(body.schema, '/schema')
  const tenant = await service.tenants.load(params.app)
  const collection = requireCollection(tenant, params.collection)
  refuseOperator(call.caller, tenant, collection)
  refuseOnPrivate(collection, 'a migration')
  const rows = body.batchSize ?? rowsDefault
  const progress = { checked: 0, migrated: 0, of: 0 }
  const wanted = {
    collection,
    schema: openRecordJudge(body.schema, Number.POSITIVE_INFINITY),
    rows,
  }
  if (body.dryRun === true) {
    const { problems, ...counts } = await checkRecords(service.database, tenant.schema, {
      ...wanted,
      progress,
    })
    const errors = describeProblems(problems)
    return { success: counts.failed === 0, status: 'dry run', ...counts, errors }
  }
  const { job, taskId } = await begin(service, tenant, {
    id: collection.id,
    definition: body.schema,
    rows,
  })
  const running = runMigration(service, job)
  const ended = await awaitWithin(running, {
    world: service.world,
    ms: patienceMs,
    otherwise: undefined,
  })
  if (ended !== undefined)
    return { success: ended.status === 'completed', ...ended, task_id: taskId }
  const { checked, migrated } = job.progress
  return { success: true, status: 'running', migrated, checked, failed: 0, task_id: taskId }
}

/** Notes in the log that a migration has begun; its task's id is the place of that note. */
async function begin(
  service: Uses<'world' | 'ticketKey'>,
  tenant: Tenant,
  wanted: { id: string; definition: unknown; rows: number },
): Promise<{ job: Job; taskId: string }> {
  const { id, definition, rows } = wanted
  return tenant.definitions.run(async () => {
    const { name, indexes } = requireCollection(tenant, id)
    if (tenant.migrating.has(id))
      throw new Fault('CONFLICT', { message: `${name} is being migrated already` })
    refuseResealing(tenant.data.catalog, { id, name })
    const before = requirePresent(tenant.data.catalog.collections.get(id), 'the collection')
    // A schema that could not be put in force at the end is refused at the beginning.
    const after = { ...before, indexes, schema_definition: definition }
    const { catalog } = tenant.data
    const ending: Definition[] = [
      { kind: 'collection', id, body: { ...before, schema_definition: definition } },
      ...buildSchemaIndexes(service.world, after, catalog.nextNumber),
    ]
    const begun: MigrationDefinition = {
      id: `mig_${service.world.randomBytes(12).toString('hex')}`,
      collection: id,
      schema: definition,
      state: 'running',
      migrated: 0,
      errors: [],
      started_at: new Date(service.world.now()).toISOString(),
      ended_at: null,
    }
    await refuseWithoutRoom(tenant, [{ kind: 'migration', id, body: begun }, ...ending])
    const endBytes = Math.max(0, sumGrowth(catalog, ending))
    const progress = { checked: 0, migrated: 0, of: 0, endBytes }
    tenant.migrating.set(id, progress)
    try {
      const place = await define(tenant, [{ kind: 'migration', id, body: begun }])
      const application = tenant.application.number
      const taskId = sealTicket(service.ticketKey, { application, ...place, count: 1 })
      return { job: { tenant, begun, progress, rows }, taskId }
    } catch (error) {
      tenant.migrating.delete(id)
      throw error
    }
  })
}
