import type { Entry } from '@tollbase/verify/entry'
import { Fault } from '../../base/fault.ts'
import { type HttpReply, makeJsonReply } from '../../http/reply.ts'
import { isEncrypted } from '../../model/encrypted-collections.ts'
import type { Collection } from '../../model/readable.ts'
import type { Tenant } from '../../services/applications/tenants.ts'
import type { Call, Uses } from '../../services/call.ts'
import type { PreparedRecord, RecordShape } from '../../services/records/prepare-records.ts'
import { describeStoredRecords, type StoredGroup } from '../../services/records/stored-records.ts'
import { sealTicket } from '../../services/tasks/tickets.ts'

export type BlobWrite = {
  readonly collection: Collection
  readonly record: PreparedRecord
  /** The definition by which the record was checked. */
  readonly shape: Pick<RecordShape, 'schema_definition'>
  /** True where the answer waits until the tables show it. */
  readonly wait: boolean
  /** Says what was done. */
  readonly verb: 'stored' | 'deleted'
  readonly paymentId?: string | undefined
  /** The key of the bytes of an encrypted blob that is stored. */
  readonly fileKey?: Buffer | undefined
}

/** Appends the new version of a blob's row, and answers once its block is committed. */
export async function storeBlobRow(
  call: Call<'world' | 'ticketKey'>,
  tenant: Tenant,
  write: BlobWrite,
): Promise<HttpReply> {
  const { collection, record, shape, paymentId, wait, verb, fileKey } = write
  const { key, deleted } = record
  const isSealed = isEncrypted(collection)
  const written = isSealed ? await tenant.sealer.seal(collection, [{ ...record, fileKey }]) : []
  const { body } = written[0] ?? record
  const header = {
    type: 'record',
    collection: collection.id,
    key,
    ...(isSealed && { sealed: true }),
    ...(deleted && { deleted }),
    ...(paymentId !== undefined && { payment: paymentId }),
  }
  const entries: readonly Entry[] = [{ header, body }]
  const check = () => {
    refuseChanged(tenant, collection, shape)
    tenant.keyReservations.markOvertaken(collection.id, () => [key])
  }
  const { height, sequence, leafHashes } = await tenant.collectionLock.enter(collection.id, () =>
    tenant.keyReservations.follow(collection.id, tenant.chain.append(entries, { check })),
  )
  return answerBlobWrite(call.service, tenant, {
    ...{ wait, verb, key },
    group: { height, sequence, entries, leafHash: () => leafHashes },
  })
}

/** Answers a write that is in this place of the log. */
export async function answerBlobWrite(
  { world, ticketKey }: Uses<'world' | 'ticketKey'>,
  tenant: Tenant,
  {
    key,
    wait,
    verb,
    group,
  }: Pick<BlobWrite, 'wait' | 'verb'> & { readonly key: string; readonly group: StoredGroup },
): Promise<HttpReply> {
  const { height, sequence } = group
  const application = tenant.application.number
  const ticket_id = sealTicket(ticketKey, { application, height, sequence, count: 1 })
  if (wait) await tenant.chain.whenApplied(height)
  world.failpoint?.('store.beforeReply')
  const named = { ticket_id, blob_id: key }
  if (!wait)
    return makeJsonReply({
      ...named,
      status: 'queued',
      message: `The blob is ${verb}, in block ${height}`,
    })
  const results = describeStoredRecords(tenant, group)
  return makeJsonReply(
    { ...named, status: 'Completed', message: `The blob is ${verb}`, results },
    { status: 200 },
  )
}

/** Between the check of the record and its place in the log the collection may have been deleted, or got another schema. */
function refuseChanged(tenant: Tenant, { id, name }: Collection, shape: BlobWrite['shape']): void {
  const now = tenant.data.catalog.byId.get(id)
  if (now === undefined)
    throw new Fault('COLLECTION_NOT_FOUND', {
      message: `The collection ${name} was deleted meanwhile`,
    })
  if (now.schema_definition !== shape.schema_definition)
    throw new Fault('UNAVAILABLE', {
      message: 'The schema of this collection has changed meanwhile; try again',
      retryAfterSeconds: 1,
    })
}
