import type { Entry } from '@tollbase/verify/entry'
import { requirePresent } from '../../base/assert.ts'
import { Fault, makeInvalidFault } from '../../base/fault.ts'
import { hashBytes } from '../../chain/merkle.ts'
import { type HttpReply, makeJsonReply } from '../../http/reply.ts'
import { refuseOnPrivate } from '../../model/encrypted-collections.ts'
import { getWritePrice, isFree } from '../../model/find-price.ts'
import type { Collection } from '../../model/readable.ts'
import { canRead, requirePermission } from '../../services/access/access.ts'
import {
  refuseOperator,
  requireCollection,
  requireNamedCollection,
} from '../../services/access/find-sources.ts'
import type { Tenant } from '../../services/applications/tenants.ts'
import type { Call } from '../../services/call.ts'
import { ensureCollection } from '../../services/collections/new-collection.ts'
import { runExclusively } from '../../services/locks/exclusive-section.ts'
import { hasPayment } from '../../services/payments/presented/presented-payment.ts'
import { sellWrite, type WrittenPart } from '../../services/payments/sell-write.ts'
import type { PreparedRecord } from '../../services/records/prepare-records.ts'
import { describeStoredRecords, type StoredGroup } from '../../services/records/stored-records.ts'
import { listUniqueNames } from '../../services/records/unique-names.ts'
import type { Operation } from '../operation.ts'
import { BatchChanges } from './batch-changes.ts'
import { BatchRoom } from './batch-room.ts'
import { readSteps, refuseType, type Step } from './batch-steps.ts'
import { type ConditionRunner, runWithConditions } from './run-with-conditions.ts'

type Batch = {
  readonly tenant: Tenant
  readonly steps: readonly Step[]
  readonly strict: boolean
  readonly paymentId?: string
}

type RunParts = 'world' | 'database' | 'queryRunner'

export const executeBatch: Operation<
  'executeBatch',
  'world' | 'database' | 'tenants' | 'payments' | 'queryRunner'
> = async (call, { params, body }) => {
  const tenant = await call.service.tenants.load(params.app)
  const { catalog } = tenant.data
  const request = { source: call.requestInfo.json().source, operations: body.operations }
  const steps = await readSteps(request, catalog)
  refuseHidden(call, tenant, steps)
  const batch = { tenant, steps, strict: body.strict === true }
  const isPriced = (step: Step) =>
    !isFree(getWritePrice(catalog, catalog.byName.get(step.collection)))
  const unbounded = steps.find((step) => step.conditions !== undefined)
  if (!steps.some(isPriced)) {
    // A payment may be under way though it is free by now, but none was ever asked for conditions.
    if (unbounded !== undefined || !hasPayment(call)) return run(call, batch)
  } else if (unbounded !== undefined) {
    // A price is a function of the request, never of how many records match.
    throw makeInvalidFault(
      `${unbounded.sent.title}/conditions`,
      'cannot be used in a batch that has a price; name each record by its key',
    )
  }
  return sellWrite(call, {
    tenant,
    form: {
      operation: 'batch',
      rows: steps.length,
      steps: steps.map(({ operation, collection }) => ({ operation, collection })),
    },
    description: `A batch of ${steps.length} ${steps.length === 1 ? 'operation' : 'operations'} in ${params.app}`,
    parts: listWrittenParts(steps),
    run: (paymentId) => run(call, { ...batch, ...(paymentId !== undefined && { paymentId }) }),
  })
}

/** Conditions are for callers that may read: which records match tells what is in them. */
export function refuseHidden(
  call: Call<'tenants'>,
  tenant: Tenant,
  steps: readonly Pick<Step, 'conditions' | 'collection'>[],
): void {
  for (const { conditions, collection } of steps) {
    if (conditions === undefined) continue
    const { app_id: appId } = tenant.application
    requirePermission(call.caller, 'Read', { appId, tenants: call.service.tenants })
    // A collection that does not exist yet has nothing to hide.
    const known = tenant.data.catalog.byName.get(collection)
    if (known !== undefined) refuseOperator(call.caller, tenant, known)
  }
}

/** The records and bytes written to each collection: a batch costs as much as a store to each of them. */
function listWrittenParts(steps: readonly Step[]): WrittenPart[] {
  const parts = new Map<string, WrittenPart>()
  for (const { collection, bytes, sent, operation } of steps) {
    const before = parts.get(collection) ?? { collection, rows: 0, bytes: 0, records: [] }
    // An update, too, gives the field that says what it costs: what is stored must not tell a price.
    const { text, pointer } = sent
    const records = [...before.records, { text, pointer, deleted: operation === 'delete' }]
    parts.set(collection, {
      collection,
      rows: before.rows + 1,
      bytes: before.bytes + bytes,
      records,
    })
  }
  return [...parts.values()]
}

async function run(call: Call<RunParts>, batch: Batch): Promise<HttpReply> {
  const { service } = call
  const { tenant, steps, paymentId } = batch
  const by = paymentId === undefined ? {} : { madeBy: paymentId }
  const collections = new Map<string, Collection>()
  for (const { operation, collection: name } of steps) {
    const isMade = operation === 'create' && !collections.has(name)
    const found = isMade
      ? await ensureCollection(service.world, tenant, { name, ...by })
      : undefined
    collections.set(name, found ?? collections.get(name) ?? requireNamedCollection(tenant, name))
  }
  // Somebody may have made one since the batch was read.
  for (const { operation, collection, sent } of steps)
    refuseType(operation, { collection: collections.get(collection), pointer: sent.title })
  for (const collection of collections.values()) refuseOnPrivate(collection, 'a batch')
  const ids = [...collections.values()].map(({ id }) => id)
  const written = await runExclusively(
    tenant,
    { world: service.world, collections: ids },
    async () => {
      const versions = await runWithConditions(call, tenant.application.app_id, (runConditions) =>
        makeVersions(call, { ...batch, runConditions }, collections),
      )
      return { versions, group: await append(batch, versions) }
    },
  )
  if (written.group !== undefined) await tenant.chain.whenApplied(written.group.height)
  return makeReply(batch, written)
}

/** A version that an operation made, and its collection. */
type MadeVersion = { readonly collection: Collection; readonly record: PreparedRecord }

/** Returns, for each operation, the versions that it makes. */
async function makeVersions(
  call: Call<'world' | 'database'>,
  { tenant, steps, strict, runConditions }: Batch & { readonly runConditions: ConditionRunner },
  collections: ReadonlyMap<string, Collection>,
): Promise<MadeVersion[][]> {
  const { database, world } = call.service
  const { schema } = tenant
  const place = { database, world, schema, runConditions, room: new BatchRoom() }
  const changes = new Map<string, { collection: Collection; changes: BatchChanges }>()
  for (const [name, { id }] of collections) {
    // As it is now: its schema may have changed since the batch was read.
    const collection = requireCollection(tenant, id)
    const own = new BatchChanges(place, collection, strict)
    const named = steps.filter((step) => step.collection === name)
    const keys = named.flatMap(({ key }) => (key === undefined ? [] : [key.text]))
    if (keys.length > 0) await own.load([...new Set(keys)])
    changes.set(name, { collection, changes: own })
  }
  const made: MadeVersion[][] = []
  for (const step of steps) {
    const on = requirePresent(changes.get(step.collection), 'the collection of the operation')
    const { collection } = on
    made.push((await on.changes.apply(step)).map((record) => ({ collection, record })))
  }
  const mayRead = canRead(call.caller, tenant.application)
  for (const on of changes.values()) await on.changes.refuseSame(mayRead)
  return made
}

/** Appends all versions as one group; undefined where conditions have matched nothing. */
async function append(
  { tenant, paymentId }: Batch,
  versions: readonly (readonly MadeVersion[])[],
): Promise<StoredGroup | undefined> {
  const made = versions.flat()
  if (made.length === 0) return undefined
  const entries = made.map(
    ({ collection, record: { key, deleted, body } }, at): Entry => ({
      header: {
        type: 'record',
        collection: collection.id,
        key,
        ...(deleted && { deleted }),
        ...(at === 0 && paymentId !== undefined && { payment: paymentId }),
      },
      body,
    }),
  )
  const check = () => {
    for (const { collection, record } of made) {
      if (!tenant.data.catalog.byId.has(collection.id)) {
        throw new Fault('COLLECTION_NOT_FOUND', {
          message: `The collection ${collection.name} was deleted meanwhile`,
        })
      }
      tenant.keyReservations.markOvertaken(collection.id, () => listUniqueNames(record, collection))
    }
  }
  const writing = tenant.chain.append(entries, { check })
  for (const id of new Set(made.map(({ collection }) => collection.id)))
    tenant.keyReservations.follow(id, writing).catch(() => undefined)
  const { height, sequence, leafHashes } = await writing
  const leafHash = (n: number) => leafHashes.subarray(n * hashBytes, (n + 1) * hashBytes)
  return { height, sequence, entries, leafHash }
}

type NamedStep = { readonly operation: string; readonly collection: string }

function makeReply(
  { tenant, steps }: { readonly tenant: Tenant; readonly steps: readonly NamedStep[] },
  written: {
    readonly versions: readonly (readonly unknown[])[]
    readonly group: StoredGroup | undefined
  },
): HttpReply {
  const { versions, group } = written
  const stored = group === undefined ? [] : describeStoredRecords(tenant, group)
  let from = 0
  const results = steps.map(({ operation, collection }, at) => {
    const count = versions[at]?.length ?? 0
    const own = stored.slice(from, from + count)
    from += count
    const result = { results: own, celestia_height: group?.height ?? 0 }
    return { success: true, operation, collection, result }
  })
  return makeJsonReply(results, { status: 200 })
}

/** Answers a paid batch that is in this place of the log. It has no conditions, so each operation made one version. */
export function answerPaidBatch(
  tenant: Tenant,
  steps: readonly NamedStep[],
  group: StoredGroup,
): HttpReply {
  return makeReply({ tenant, steps }, { versions: steps.map((step) => [step]), group })
}
