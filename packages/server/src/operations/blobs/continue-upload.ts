import { Fault, makeInvalidFault } from '../../base/fault.ts'
import { OtherBytes, type PartialFile } from '../../blobs/partial-files.ts'
import type { HttpReply } from '../../http/reply.ts'
import { chunkType, readByteCount, readBytes, refuseOtherVersion } from '../../http/tus.ts'
import { makeChange, type UploadTarget } from '../../services/blobs/resumable-uploads.ts'
import type { Call } from '../../services/call.ts'
import type { Operation } from '../operation.ts'
import { makeEmptyReply } from './describe-upload.ts'
import { endUpload } from './end-upload.ts'
import { type BlobParts, isUploadFree } from './sell-blob.ts'

export const continueUpload: Operation<'continueUpload', BlobParts> = async (call, { params }) => {
  const { service, requestInfo } = call
  const { open, uploads } = service.blobs
  const tenant = await service.tenants.load(params.app)
  const target = { tenant, collection: params.collection }
  const { id } = open.require(target, params.upload)
  refuseOtherVersion(requestInfo)
  if (requestInfo.headers['content-type'] !== chunkType)
    throw makeInvalidFault('/headers/content-type', `must be ${chunkType}`)
  const leave = uploads.occupy(params.app)
  try {
    return await open.run(id, (signal) => append(call, { target, id, signal }))
  } finally {
    leave()
  }
}

type Appending = {
  readonly target: UploadTarget
  readonly id: string
  readonly signal: AbortSignal
}

async function append(
  call: Call<BlobParts>,
  { target, id, signal }: Appending,
): Promise<HttpReply> {
  const { service, requestInfo } = call
  const { world } = service
  const { open } = service.blobs
  // It may have ended while this request waited for its turn.
  const file = open.require(target, id)
  const offset = readByteCount(requestInfo, 'Upload-Offset')
  if (offset !== file.offset) throw makeOffsetFault(file)
  if (file.facts.result !== null) return makeEmptyReply(file)
  const opened = await open.open(target, file)
  const change = makeChange(opened.sealing)
  const bytesMax = file.facts.length - offset
  try {
    await file.append(readBytes(requestInfo, { world, bytesMax, signal }), change)
  } catch (error) {
    if (error instanceof OtherBytes) await open.remove(file)
    // A body that is not what its sender has signed leaves nothing; one that broke off leaves what came.
    else if (requestInfo.upload?.sha256 !== undefined) await file.rewind(offset)
    throw error
  }
  world.failpoint?.('upload.appended')
  if (file.offset < file.facts.length) return makeEmptyReply(file)
  if (!isUploadFree(target.tenant, target.collection) && opened.sealing === undefined) {
    await open.keepWhole(opened)
    return makeEmptyReply(file)
  }
  try {
    await endUpload(call, { ...target, ...opened, wait: false })
    return makeEmptyReply(file)
  } catch (error) {
    if (error instanceof OtherBytes) await open.remove(file)
    // Until the blob is stored, its last bytes count as missing, so that a client comes again with them.
    else if (file.facts.result === null) file.dropTail()
    throw error
  }
}

function makeOffsetFault({ offset }: PartialFile): Fault {
  return new Fault('CONFLICT', {
    message: `The upload is at ${offset}; ask for Upload-Offset by HEAD, and go on from there`,
    details: { offset },
  })
}
