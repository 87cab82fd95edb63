import { Fault } from '../../base/fault.ts'
import type { HttpReply } from '../../http/reply.ts'
import { readByteCount, readUploadMetadata, refuseOtherVersion } from '../../http/tus.ts'
import { ensureCollection } from '../../services/collections/new-collection.ts'
import type { Operation } from '../operation.ts'
import { makeUploadReply } from './describe-upload.ts'
import { endUpload } from './end-upload.ts'
import { refuseOtherType } from './require-blobs.ts'
import {
  type BlobParts,
  findRowShape,
  isUploadFree,
  isUploadSealed,
  prepareBlobRow,
  refuseFull,
} from './sell-blob.ts'

/** All that could refuse the blob is judged before its bytes come, as far as it is known by then. */
export const createUpload: Operation<'createUpload', BlobParts> = async (call, { params }) => {
  const { service, requestInfo } = call
  const { world, blobs } = service
  const { collection } = params
  const tenant = await service.tenants.load(params.app)
  const known = tenant.data.catalog.byName.get(collection)
  if (known !== undefined) refuseOtherType(known)
  refuseOtherVersion(requestInfo)
  const length = readByteCount(requestInfo, 'Upload-Length')
  if (length > blobs.bytesMax)
    throw new Fault('PAYLOAD_TOO_LARGE', {
      message: `The blob is larger than ${blobs.bytesMax} bytes`,
      details: { limit: blobs.bytesMax },
    })
  const details = readUploadMetadata(requestInfo)
  const sample = { sha256: '0'.repeat(64), contentSha256: '0'.repeat(64), size: length }
  await prepareBlobRow(world, { ...details, ...sample }, findRowShape(tenant, collection))
  // Its keys are needed now.
  if (known === undefined && isUploadSealed(tenant, collection))
    await ensureCollection(world, tenant, { name: collection, collection_type: 'blob' })
  const target = { tenant, collection }
  const file = await blobs.open.create(target, {
    length,
    details,
    admit: async (openBytes) => {
      const stored = await blobs.store.measure(tenant.application.number)
      refuseFull(service, tenant, { before: stored + openBytes, more: length })
    },
  })
  world.failpoint?.('upload.created')
  if (length === 0) await endEmpty()
  const location = `${requestInfo.url.split('?')[0]}/${file.id}`
  return makeUploadReply(file, { location })

  /** Nobody sends bytes for a blob that has none. */
  function endEmpty(): Promise<HttpReply | undefined> {
    return blobs.open.run(file.id, async () => {
      const opened = await blobs.open.open(target, file)
      if (isUploadFree(tenant, collection))
        return endUpload(call, { ...target, ...opened, wait: false })
      await blobs.open.keepWhole(opened)
      return undefined
    })
  }
}
