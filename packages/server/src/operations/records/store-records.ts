import type { Entry } from '@tollbase/verify/entry'
import { Fault } from '../../base/fault.ts'
import type { Appended } from '../../chain/committer.ts'
import { hashBytes } from '../../chain/merkle.ts'
import type { Database } from '../../database/database.ts'
import { type HttpReply, makeJsonReply } from '../../http/reply.ts'
import { EncryptionChanged } from '../../model/encrypted-collections.ts'
import { getWritePrice, isFree } from '../../model/find-price.ts'
import { parseRoot } from '../../model/parse-root.ts'
import type { Collection } from '../../model/readable.ts'
import { canRead, requirePermission } from '../../services/access/access.ts'
import type { Tenant } from '../../services/applications/tenants.ts'
import type { Call, Uses } from '../../services/call.ts'
import { ensureCollection } from '../../services/collections/new-collection.ts'
import { getBodyWithoutProof } from '../../services/payments/presented/body-proof.ts'
import { hasPayment } from '../../services/payments/presented/presented-payment.ts'
import { sellWrite } from '../../services/payments/sell-write.ts'
import {
  type PreparedRecord,
  prepareRecords,
  type RecordShape,
} from '../../services/records/prepare-records.ts'
import { describeStoredRecords, type StoredGroup } from '../../services/records/stored-records.ts'
import { listUniqueNames } from '../../services/records/unique-names.ts'
import { sealTicket } from '../../services/tasks/tickets.ts'
import type { Operation } from '../operation.ts'
import { reserveNewKeys } from './reserve-new-keys.ts'

type Store = {
  tenant: Tenant
  collection: string
  records: readonly PreparedRecord[]
  /** The definition that the records were checked against. */
  shape: RecordShape
  prepare: (shape: RecordShape) => Promise<readonly PreparedRecord[]>
  strict: boolean
  wait: boolean
}

/** The number of times that records are checked anew because the collection's schema has changed meanwhile. */
const checksMax = 5

/** Stores records. Their way through log, tables and views to readers stands at `DataProjection` (projections/data-projection.ts). */
export const storeRecords: Operation<
  'storeRecords',
  'world' | 'database' | 'tenants' | 'payments' | 'ticketKey'
> = async (call, { body, query }) => {
  const { app, name } = parseRoot(body.root)
  requirePermission(call.caller, 'Write', { appId: app, tenants: call.service.tenants })
  const tenant = await call.service.tenants.load(app)
  const { catalog } = tenant.data
  const known = catalog.byName.get(name)
  if (known !== undefined) refuseType(known)
  const shape = known ?? { primary_column: 'id', schema_definition: null }
  const request = { source: call.requestInfo.json().source, data: body.data }
  const prepare = (by: RecordShape) => prepareRecords(request, by, call.service.world)
  const records = await prepare(shape)
  call.service.world.failpoint?.('store.validated')
  const store = {
    tenant,
    collection: name,
    records,
    shape,
    prepare,
    strict: body.strict === true,
    wait: query.wait === true,
  }
  // An encrypted collection has no price, and what is sealed may not be named in anybody's receipt.
  if (known?.encrypted === true) return append(call, store)
  // A payment that is under way may have written already, whatever the price is by now.
  if (isFree(getWritePrice(catalog, known)) && !hasPayment(call)) return append(call, store)
  return sellWrite(call, {
    tenant,
    form: { operation: 'store', rows: records.length, wait: store.wait },
    description: `Store ${records.length} ${records.length === 1 ? 'record' : 'records'} in ${app}::${name}`,
    parts: [
      {
        collection: name,
        rows: records.length,
        bytes: getBodyWithoutProof(call.requestInfo).length,
        records: records.map((record, at) => ({
          text: record.body,
          deleted: record.deleted,
          pointer: `/data/${at}`,
        })),
      },
    ],
    run: (paymentId) => append(call, store, paymentId),
  })
}

/** The rows of blobs come from uploads alone, and those of an API from its upstream. */
function refuseType({ name, collection_type: type }: Collection): void {
  if (type === 'api' || type === 'blob')
    throw new Fault('CONFLICT', {
      message: `Records cannot be stored in ${name}, which is of type ${type}`,
    })
}

/** Appends the records by the collection's schema of that moment. A paid group carries its payment's id. */
async function append(
  call: Call<'world' | 'database' | 'ticketKey'>,
  store: Store,
  paymentId?: string,
): Promise<HttpReply> {
  const wish = { name: store.collection, ...(paymentId !== undefined && { madeBy: paymentId }) }
  for (let attempt = 1; attempt <= checksMax; attempt++) {
    const collection = await ensureCollection(call.service.world, store.tenant, wish)
    // Somebody may have made it since the records were read.
    refuseType(collection)
    // Nothing that is sealed is sold: a receipt would name its key.
    if (paymentId !== undefined && collection.encrypted === true) throw new Fault('OFFER_CHANGED')
    const isChecked = hasShape(collection, store.shape)
    const checked = isChecked
      ? store
      : { ...store, shape: collection, records: await store.prepare(collection) }
    try {
      return await appendChecked(call, checked, { collection, paymentId })
    } catch (error) {
      if (!(error instanceof ShapeChanged || error instanceof EncryptionChanged)) throw error
    }
  }
  throw new Fault('UNAVAILABLE', {
    message: 'The schema of this collection keeps changing; try again shortly.',
    retryAfterSeconds: 1,
  })
}

/** Thrown where records, checked against one schema, would get a place in the log under another. */
class ShapeChanged extends Error {}

function hasShape(collection: RecordShape, shape: RecordShape): boolean {
  return (
    collection.schema_definition === shape.schema_definition &&
    collection.primary_column === shape.primary_column &&
    collection.encrypted === shape.encrypted
  )
}

/** Appends the records as one group: a block holds all of them or none. */
async function appendChecked(
  call: Call<'world' | 'database' | 'ticketKey'>,
  store: Store,
  { collection, paymentId }: { collection: Collection; paymentId: string | undefined },
): Promise<HttpReply> {
  const { tenant, records } = store
  const isSealed = collection.encrypted === true
  const written = isSealed ? await tenant.sealer.seal(collection, records) : records
  const entries = written.map(({ key, deleted, body }, at): Entry => {
    const header = isSealed
      ? { type: 'record', collection: collection.id, key, sealed: true }
      : { type: 'record', collection: collection.id, key }
    // Most records are neither, and spreading is slow.
    if (!deleted && (at > 0 || paymentId === undefined)) return { header, body }
    const payment = at === 0 && paymentId !== undefined && { payment: paymentId }
    return { header: { ...header, ...(deleted && { deleted }), ...payment }, body }
  })
  const onlyNew = store.strict || collection.collection_type === 'event'
  const write = {
    collection,
    entries,
    records,
    written,
    names: () => records.flatMap((record) => listUniqueNames(record, collection)),
    mayRead: canRead(call.caller, tenant.application),
  }
  const at = onlyNew
    ? await appendNew(call.service.database, tenant, write)
    : await appendAny(tenant, write)
  const { height, sequence, leafHashes } = at
  const leafHash = (n: number) => leafHashes.subarray(n * hashBytes, (n + 1) * hashBytes)
  return answerStore(call.service, tenant, {
    wait: store.wait,
    keys: records.map(({ key }) => key),
    group: { height, sequence, entries, leafHash },
  })
}

type Write = {
  collection: Collection
  entries: readonly Entry[]
  records: readonly PreparedRecord[]
  /** The records as they are stored. */
  written: readonly PreparedRecord[]
  /** The names that must be new where only new records are wanted. */
  names: () => readonly string[]
  /** The caller may know the keys of other records. */
  mayRead: boolean
}

function appendAny(tenant: Tenant, { collection, names, entries }: Write): Promise<Appended> {
  const check = () => {
    refuseChanged(tenant, collection)
    tenant.keyReservations.markOvertaken(collection.id, names)
  }
  return tenant.collectionLock.enter(collection.id, () =>
    tenant.keyReservations.follow(collection.id, tenant.chain.append(entries, { check })),
  )
}

async function appendNew(database: Database, tenant: Tenant, write: Write): Promise<Appended> {
  const { collection, entries, records, written } = write
  const reserved = await reserveNewKeys(database, tenant, {
    collection,
    names: write.names(),
    keys: new Map(written.map(({ key }, at) => [key, records[at]?.key ?? key])),
    bodies: written.map(({ body }) => body),
    mayRead: write.mayRead,
  })
  const check = () => {
    refuseChanged(tenant, collection)
    reserved.check()
  }
  try {
    const at = await tenant.collectionLock.enter(collection.id, () =>
      tenant.chain.append(entries, { check }),
    )
    tenant.chain.whenApplied(at.height).then(reserved.release, reserved.release)
    return at
  } catch (error) {
    reserved.release()
    throw error
  }
}

/** Answers a store that is in this place of the log. The writer is told the keys that a sealed log does not show. */
export async function answerStore(
  { world, ticketKey }: Uses<'world' | 'ticketKey'>,
  tenant: Tenant,
  {
    wait,
    keys = [],
    group,
  }: {
    readonly wait: boolean
    readonly keys?: readonly string[]
    readonly group: StoredGroup
  },
): Promise<HttpReply> {
  const { height, sequence, entries } = group
  const application = tenant.application.number
  const count = entries.length
  const ticket_id = sealTicket(ticketKey, { application, height, sequence, count })
  const records = `${count} ${count === 1 ? 'record' : 'records'}`
  if (wait) {
    // The views that did not wait for another block show the records, too.
    await tenant.chain.whenApplied(height)
    await tenant.plaintext.whenCopied(String(entries[0]?.header.collection), height)
  }
  world.failpoint?.('store.beforeReply')
  if (!wait)
    return makeJsonReply({
      ticket_id,
      status: 'queued',
      message: `${records} committed in block ${height}`,
    })
  const results = describeStoredRecords(tenant, group).map((one, at) => ({
    ...one,
    id: keys[at] ?? one.id,
  }))
  return makeJsonReply(
    { ticket_id, status: 'Completed', message: `${records} stored`, results },
    { status: 200 },
  )
}

/** Between the lookup and the place in the log the collection may have been deleted, or got another schema. */
function refuseChanged(tenant: Tenant, collection: Collection): void {
  const now = tenant.data.catalog.byId.get(collection.id)
  if (now === undefined) {
    throw new Fault('COLLECTION_NOT_FOUND', {
      message: `The collection ${collection.name} was deleted meanwhile`,
    })
  }
  if (!hasShape(now, collection)) throw new ShapeChanged('the schema has changed')
}
