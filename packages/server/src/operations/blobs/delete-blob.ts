import { requireCollection } from '../../services/access/find-sources.ts'
import type { Operation } from '../operation.ts'
import { requireBlobRow } from './require-blobs.ts'
import { storeBlobRow } from './store-blob-row.ts'

export const deleteBlob: Operation<
  'deleteBlob',
  'world' | 'database' | 'tenants' | 'ticketKey'
> = async (call, { params, query }) => {
  const tenant = await call.service.tenants.load(params.app)
  const collection = requireCollection(tenant, params.collection)
  const { blob: id } = params
  // An upload that was acknowledged is not missed because the tables lag behind.
  await tenant.chain.whenApplied(await tenant.keyReservations.resolveHeight(collection.id))
  await requireBlobRow(call, tenant, { collection, id })
  const body = JSON.stringify({ blob_id: id, deleted: true })
  return storeBlobRow(call, tenant, {
    collection,
    record: { key: id, deleted: true, body },
    shape: collection,
    wait: query.wait === true,
    verb: 'deleted',
  })
}
