import type { Entry } from '@tollbase/verify/entry'
import { present } from '../../base/assert.ts'
import { Fault, invalid } from '../../base/fault.ts'
import { hashBytes } from '../../chain/merkle.ts'
import { type HttpReply, jsonReply } from '../../http/reply.ts'
import type { CollectionState } from '../../model/definitions.ts'
import { isFree, writePriceOf } from '../../model/price.ts'
import { requirePermission } from '../../services/access/access.ts'
import { collectionOf, refuseOperator } from '../../services/access/authorize-collections.ts'
import type { Tenant } from '../../services/applications/tenancy.ts'
import type { Call } from '../../services/call.ts'
import { collectionForWriting } from '../../services/collections/new-collection.ts'
import { alone } from '../../services/locks/exclusive-section.ts'
import { carriesPayment } from '../../services/payments/presented-payment.ts'
import { sellWrite, type WrittenPart } from '../../services/payments/sell-write.ts'
import type { Prepared } from '../../services/records/prepare-records.ts'
import { groupOf, type StoredGroup, storedRecords } from '../../services/records/stored-records.ts'
import { namesOf } from '../../services/records/unique-names.ts'
import type { Operation } from '../operation.ts'
import { Changes } from './batch-changes.ts'
import { readSteps, type Step } from './batch-steps.ts'

type Batch = {
  readonly tenant: Tenant
  readonly steps: readonly Step[]
  readonly strict: boolean
  readonly paymentId?: string
}

export const executeBatch: Operation<'executeBatch'> = async (call, { params, body }) => {
  const tenant = await call.service.tenancy.tenant(params.app)
  const { catalog } = tenant.data
  const request = { text: call.facts.json().text, operations: body.operations }
  const steps = readSteps(request, catalog)
  refuseHidden(call, tenant, steps)
  const batch = { tenant, steps, strict: body.strict === true }
  const isPriced = (step: Step) =>
    !isFree(writePriceOf(catalog, catalog.byName.get(step.collection)))
  const unbounded = steps.find((step) => step.conditions !== undefined)
  if (!steps.some(isPriced)) {
    // A payment may be under way though it is free by now, but none was ever asked for conditions.
    if (unbounded !== undefined || !carriesPayment(call)) return run(call, batch)
  } else if (unbounded !== undefined) {
    // A price is a function of the request, never of how many records match.
    throw invalid(
      `${unbounded.sent.title}/conditions`,
      'cannot be used in a batch that has a price; name each record by its key',
    )
  }
  return sellWrite(call, {
    tenant,
    operation: 'batch',
    description: `A batch of ${steps.length} ${steps.length === 1 ? 'operation' : 'operations'} in ${params.app}`,
    parts: partsOf(steps),
    run: (paymentId) => run(call, { ...batch, ...(paymentId !== undefined && { paymentId }) }),
    recover: (paymentId, afterHeight) => findPaid(batch, { paymentId, afterHeight }),
  })
}

/** Which records match tells what is in them, so conditions are for those who may read. */
export function refuseHidden(
  call: Call,
  tenant: Tenant,
  steps: readonly Pick<Step, 'conditions' | 'collection'>[],
): void {
  for (const { conditions, collection } of steps) {
    if (conditions === undefined) continue
    const { app_id: appId } = tenant.application
    requirePermission(call.caller, 'Read', { appId, tenancy: call.service.tenancy })
    // One that is not there yet has nothing to hide.
    const known = tenant.data.catalog.byName.get(collection)
    if (known !== undefined) refuseOperator(call, tenant, known)
  }
}

/** What is written to each collection: a batch costs what a store to each of them would. */
function partsOf(steps: readonly Step[]): WrittenPart[] {
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

async function run(call: Call, batch: Batch): Promise<HttpReply> {
  const { service } = call
  const { tenant, steps, paymentId } = batch
  const by = paymentId === undefined ? {} : { madeBy: paymentId }
  const collections = new Map<string, CollectionState>()
  for (const { operation, collection: name } of steps) {
    const isMade = operation === 'create' && !collections.has(name)
    const found = isMade ? await collectionForWriting(service, tenant, { name, ...by }) : undefined
    collections.set(name, found ?? collections.get(name) ?? collectionOf(tenant, name))
  }
  const ids = [...collections.values()].map(({ id }) => id)
  const written = await alone(tenant, { world: service.world, collections: ids }, async () => {
    const versions = await versionsOf(call, batch, collections)
    return { versions, group: await append(batch, versions) }
  })
  if (written.group !== undefined) await tenant.chain.whenApplied(written.group.height)
  return answer(batch, written)
}

/** A version that an operation made, and where. */
type Made = { readonly collection: CollectionState; readonly record: Prepared }

/** Of each operation the versions that it makes. */
async function versionsOf(
  call: Call,
  { tenant, steps, strict }: Batch,
  collections: ReadonlyMap<string, CollectionState>,
): Promise<Made[][]> {
  const { database, world } = call.service
  const place = { database, world, schema: tenant.schema }
  const changes = new Map<string, { collection: CollectionState; changes: Changes }>()
  for (const [name, { id }] of collections) {
    // As it is now: its schema may have changed since the batch was read.
    const collection = collectionOf(tenant, id)
    const own = new Changes(place, collection, strict)
    const named = steps.filter((step) => step.collection === name)
    const keys = named.flatMap(({ key }) => (key === undefined ? [] : [key.text]))
    if (keys.length > 0) await own.load([...new Set(keys)])
    changes.set(name, { collection, changes: own })
  }
  const made: Made[][] = []
  for (const step of steps) {
    const on = present(changes.get(step.collection), 'the collection of the operation')
    const { collection } = on
    made.push((await on.changes.take(step)).map((record) => ({ collection, record })))
  }
  for (const on of changes.values()) await on.changes.refuseSame()
  return made
}

/** Appends all versions as one group; undefined where conditions have matched nothing. */
async function append(
  { tenant, paymentId }: Batch,
  versions: readonly (readonly Made[])[],
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
      tenant.arrivals.pass(collection.id, () => namesOf(record, collection))
    }
  }
  const writing = tenant.chain.append(entries, { check })
  for (const id of new Set(made.map(({ collection }) => collection.id)))
    tenant.arrivals.follow(id, writing).catch(() => undefined)
  const { height, sequence, leafHashes } = await writing
  const leafHash = (n: number) => leafHashes.subarray(n * hashBytes, (n + 1) * hashBytes)
  return { height, sequence, entries, leafHash }
}

function answer(
  { tenant, steps }: Batch,
  written: {
    readonly versions: readonly (readonly unknown[])[]
    readonly group: StoredGroup | undefined
  },
): HttpReply {
  const { versions, group } = written
  const stored = group === undefined ? [] : storedRecords(tenant, group)
  let from = 0
  const results = steps.map(({ operation, collection }, at) => {
    const count = versions[at]?.length ?? 0
    const own = stored.slice(from, from + count)
    from += count
    const result = { results: own, celestia_height: group?.height ?? 0 }
    return { success: true, operation, collection, result }
  })
  return jsonReply(results, { status: 200 })
}

/** What an earlier try of this payment wrote. A paid batch has no conditions, so each operation made one version. */
async function findPaid(
  batch: Batch,
  try_: { paymentId: string; afterHeight: number },
): Promise<HttpReply | undefined> {
  for await (const block of batch.tenant.chain.blocksFrom(try_.afterHeight + 1)) {
    const sequence = block.entries.findIndex(({ header }) => header.payment === try_.paymentId)
    if (sequence < 0) continue
    const versions = batch.steps.map((step) => [step])
    return answer(batch, { versions, group: groupOf(block, sequence, batch.steps.length) })
  }
  return undefined
}
