import type { Entry } from '@tollbase/verify/entry'
import { Fault } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import type { Appended } from '../../chain/committer.ts'
import { hashBytes } from '../../chain/merkle.ts'
import { type HttpReply, jsonReply } from '../../http/reply.ts'
import { requirePermission } from '../access/access.ts'
import type { Call, Service } from '../call.ts'
import { collectionForWriting } from '../collections/new-collection.ts'
import type { Operation } from '../operation.ts'
import { sellWrite } from '../payments/sell-write.ts'
import type { CollectionState } from '../tenancy/definitions.ts'
import { isFree, writePriceOf } from '../tenancy/price.ts'
import { parseRoot } from '../tenancy/root.ts'
import type { Tenant } from '../tenancy/tenancy.ts'
import { admitNew } from './admit-new.ts'
import { type Prepared, prepareRecords } from './prepare-records.ts'
import { groupOf, type StoredGroup, storedRecords } from './stored-records.ts'
import { sealTicket } from './tickets.ts'

type Store = {
  tenant: Tenant
  collection: string
  records: readonly Prepared[]
  strict: boolean
  wait: boolean
}

export const storeRecords: Operation<'storeRecords'> = async (call, { body, query }) => {
  const { app, name } = parseRoot(body.root)
  requirePermission(call.caller, 'Write', { appId: app, tenancy: call.service.tenancy })
  const tenant = await call.service.tenancy.tenant(app)
  const { catalog } = tenant.data
  const known = catalog.byName.get(name)
  if (known?.collection_type === 'api' || known?.collection_type === 'blob') {
    throw new Fault('CONFLICT', {
      message: `Records cannot be stored in ${name}, which is of type ${known.collection_type}`,
    })
  }
  const shape = known ?? { primary_column: 'id', schema_definition: null }
  const records = prepareRecords(
    { text: call.facts.json().text, data: body.data },
    shape,
    call.service.world,
  )
  const store = {
    tenant,
    collection: name,
    records,
    strict: body.strict === true,
    wait: query.wait === true,
  }
  if (isFree(writePriceOf(catalog, known))) return append(call, store)
  return sellWrite(call, {
    tenant,
    collection: name,
    size: { rows: records.length, bytes: call.facts.bodyBytes.length },
    run: (paymentId) => append(call, store, paymentId),
    recover: (paymentId, afterHeight) => findPaid(call, store, { paymentId, afterHeight }),
  })
}

/** Appends the records as one group: a block holds all of them or none. A paid group carries its payment's id. */
async function append(call: Call, store: Store, paymentId?: string): Promise<HttpReply> {
  const { tenant, records } = store
  const collection = await collectionForWriting(call.service, tenant, store.collection)
  const entries = records.map(({ key, deleted, body }, at) => ({
    header: {
      type: 'record',
      collection: collection.id,
      key,
      ...(deleted && { deleted }),
      ...(at === 0 && paymentId !== undefined && { payment: paymentId }),
    },
    body,
  }))
  const onlyNew = store.strict || collection.collection_type === 'event'
  const write = {
    collection,
    entries,
    keys: records.map((record) => record.key),
    bodies: records.map((record) => record.body),
    names: () => records.flatMap((record) => namesOf(record, collection)),
  }
  const at = onlyNew ? await appendNew(call.service, tenant, write) : await appendAny(tenant, write)
  const { height, sequence, leafHashes } = at
  const leafHash = (n: number) => leafHashes.subarray(n * hashBytes, (n + 1) * hashBytes)
  return answer(call, store, { height, sequence, entries, leafHash })
}

type Write = {
  collection: CollectionState
  entries: readonly Entry[]
  keys: readonly string[]
  bodies: readonly string[]
  /** What must be new where only new records are wanted. */
  names: () => readonly string[]
}

/** A record's key, and its values of unique fields, as names that only one record can have. */
function namesOf(record: Prepared, collection: CollectionState): string[] {
  const unique = collection.indexes.filter((index) => index.unique)
  if (unique.length === 0) return [record.key]
  const data: unknown = JSON.parse(record.body)
  const values = unique.flatMap(({ fields }) => {
    const found = fields.map((field) => field.split('.').reduce(member, data))
    const missing = found.some((value) => value === undefined || value === null)
    return missing ? [] : [`\u0001${JSON.stringify([fields, found])}`]
  })
  return [record.key, ...values]
}

function member(value: unknown, name: string): unknown {
  return isRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined
}

function appendAny(tenant: Tenant, { collection, names, entries }: Write): Promise<Appended> {
  const check = () => {
    refuseDeleted(tenant, collection)
    tenant.arrivals.pass(collection.id, names)
  }
  return tenant.arrivals.follow(collection.id, tenant.chain.append(entries, { check }))
}

async function appendNew(service: Service, tenant: Tenant, write: Write): Promise<Appended> {
  const { collection, entries } = write
  const admitted = await admitNew(service, tenant, { ...write, names: write.names() })
  const check = () => {
    refuseDeleted(tenant, collection)
    admitted.check()
  }
  try {
    const at = await tenant.chain.append(entries, { check })
    tenant.chain.whenApplied(at.height).then(admitted.release, admitted.release)
    return at
  } catch (error) {
    admitted.release()
    throw error
  }
}

async function answer(call: Call, store: Store, group: StoredGroup): Promise<HttpReply> {
  const { tenant, records } = store
  const { height, sequence } = group
  const ticket_id = sealTicket(call.service.ticketKey, {
    application: tenant.application.number,
    height,
    sequence,
    count: records.length,
  })
  const count = `${records.length} ${records.length === 1 ? 'record' : 'records'}`
  if (!store.wait)
    return jsonReply({
      ticket_id,
      status: 'queued',
      message: `${count} committed in block ${height}`,
    })
  await tenant.chain.whenApplied(height)
  const results = storedRecords(tenant, group)
  return jsonReply(
    { ticket_id, status: 'Completed', message: `${count} stored`, results },
    { status: 200 },
  )
}

/** What an earlier try of this payment wrote, from the blocks after the height that the application had then. */
async function findPaid(
  call: Call,
  store: Store,
  try_: { paymentId: string; afterHeight: number },
): Promise<HttpReply | undefined> {
  const { chain } = store.tenant
  for await (const block of chain.blocksFrom(try_.afterHeight + 1)) {
    const sequence = block.entries.findIndex(({ header }) => header.payment === try_.paymentId)
    if (sequence >= 0) return answer(call, store, groupOf(block, sequence, store.records.length))
  }
  return undefined
}

/** Between the lookup and the place in the log the collection may have been deleted. */
function refuseDeleted(tenant: Tenant, { id, name }: CollectionState): void {
  if (!tenant.data.catalog.byId.has(id)) {
    throw new Fault('COLLECTION_NOT_FOUND', {
      message: `The collection ${name} was deleted meanwhile`,
    })
  }
}
