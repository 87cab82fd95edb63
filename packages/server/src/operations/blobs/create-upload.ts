import { Fault, makeInvalidFault } from '../../base/fault.ts'
import type { PartialFile } from '../../blobs/partial-files.ts'
import type { RequestInfo } from '../../http/request-info.ts'
import { chunkType, readByteCount, readUploadMetadata, refuseOtherVersion } from '../../http/tus.ts'
import { emptySha256, isBodyEmpty } from '../../http/upload.ts'
import type { UploadTarget } from '../../services/blobs/resumable-uploads.ts'
import type { Call } from '../../services/call.ts'
import { ensureCollection } from '../../services/collections/new-collection.ts'
import type { Operation } from '../operation.ts'
import { addBytes, keepUnpaid } from './add-bytes.ts'
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
  refuseWithoutPlace,
} from './sell-upload.ts'

/** All that could refuse the blob is judged before its bytes come, as far as it is known by then. */
export const createUpload: Operation<'createUpload', BlobParts> = async (call, { params }) => {
  const { service, requestInfo } = call
  const { world, blobs } = service
  const { collection } = params
  const tenant = await service.tenants.load(params.app)
  const known = tenant.data.catalog.byName.get(collection)
  if (known !== undefined) refuseOtherType(known)
  refuseOtherVersion(requestInfo)
  const isWithBytes = bringsBytes(requestInfo)
  const length = readByteCount(requestInfo, 'Upload-Length')
  if (length > blobs.bytesMax)
    throw new Fault('PAYLOAD_TOO_LARGE', {
      message: `The blob is larger than ${blobs.bytesMax} bytes`,
      details: { limit: blobs.bytesMax },
    })
  const details = readUploadMetadata(requestInfo)
  const sample = { sha256: '0'.repeat(64), contentSha256: '0'.repeat(64), size: length }
  await prepareBlobRow(world, { ...details, ...sample }, findRowShape(tenant, collection))
  refuseWithoutPlace(service, tenant, collection)
  // It is judged again when the upload begins; one that is refused here waits for nobody.
  blobs.open.refuseWithoutPlace(tenant)
  // Its keys are needed now.
  if (known === undefined && isUploadSealed(tenant, collection))
    await ensureCollection(world, tenant, { name: collection, collection_type: 'blob' })
  const target = { tenant, collection }
  // Bytes that are stored a moment later are judged when those of this one are.
  const stored = await blobs.store.measure(tenant.application.number)
  const begin = () =>
    blobs.open.create(target, {
      length,
      details,
      refuseOverQuota: (openBytes) =>
        refuseFull(service, tenant, { before: stored + openBytes, more: length }),
    })
  const file = isWithBytes
    ? await beginWithBytes(call, target, begin)
    : await beginEmpty(call, target, begin)
  const location = `${requestInfo.url.split('?')[0]}/${file.id}`
  return makeUploadReply(file, { location })
}

/** Says whether the first bytes come along (the extension creation-with-upload), and refuses any other body. */
function bringsBytes({ headers, upload }: Pick<RequestInfo, 'headers' | 'upload'>): boolean {
  if (headers['content-type'] === chunkType) return true
  if (isBodyEmpty(headers)) {
    if (upload?.sha256 === emptySha256) return false
    throw makeInvalidFault('', 'is not what Content-Digest says')
  }
  throw makeInvalidFault(
    '/headers/content-type',
    `must be ${chunkType} where the POST brings the first bytes. It may also come without a body, and bytes by PATCH to the address in Location`,
  )
}

type Begin = () => Promise<PartialFile>

/** Nobody sends bytes for a blob that has none, so it ends here. */
async function beginEmpty(
  call: Call<BlobParts>,
  target: UploadTarget,
  begin: Begin,
): Promise<PartialFile> {
  const { world, blobs } = call.service
  const file = await begin()
  world.failpoint?.('upload.created')
  if (file.facts.length > 0) return file
  await blobs.open.run(file.id, () =>
    orRemove(blobs, file, async () => {
      const opened = await blobs.open.open(target, file)
      if (isUploadFree(target.tenant, target.collection))
        await endUpload(call, { ...target, ...opened, wait: false })
      await keepUnpaid(call, opened)
    }),
  )
  return file
}

/** A client that gets no answer to its POST does not know the address, so what is refused leaves nothing. */
async function orRemove(
  { open }: Call<BlobParts>['service']['blobs'],
  file: PartialFile,
  work: () => Promise<void>,
): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (file.facts.result === null) await open.remove(file)
    throw error
  }
}

async function beginWithBytes(
  call: Call<BlobParts>,
  target: UploadTarget,
  begin: Begin,
): Promise<PartialFile> {
  const { world, blobs } = call.service
  const leave = blobs.uploads.occupy(target.tenant.application.app_id)
  try {
    const file = await begin()
    world.failpoint?.('upload.created')
    await blobs.open.run(file.id, (signal) =>
      orRemove(blobs, file, () => addBytes(call, target, { file, signal })),
    )
    return file
  } finally {
    leave()
  }
}
