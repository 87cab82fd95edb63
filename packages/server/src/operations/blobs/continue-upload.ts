import { Fault, makeInvalidFault } from '../../base/fault.ts'
import type { PartialFile } from '../../blobs/partial-files.ts'
import type { HttpReply } from '../../http/reply.ts'
import { chunkType, readByteCount, refuseOtherVersion } from '../../http/tus.ts'
import type { UploadTarget } from '../../services/blobs/resumable-uploads.ts'
import type { Call } from '../../services/call.ts'
import type { Operation } from '../operation.ts'
import { addBytes } from './add-bytes.ts'
import { makeEmptyReply } from './describe-upload.ts'
import type { BlobParts } from './sell-upload.ts'

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
  const { open } = service.blobs
  // It may have ended while this request waited for its turn.
  const file = open.require(target, id)
  const offset = readByteCount(requestInfo, 'Upload-Offset')
  if (offset !== file.offset) throw makeOffsetFault(file)
  if (file.facts.result !== null) return makeEmptyReply(file)
  await addBytes(call, target, { file, signal })
  return makeEmptyReply(file)
}

function makeOffsetFault({ offset }: PartialFile): Fault {
  return new Fault('CONFLICT', {
    message: `The upload is at ${offset}; ask for Upload-Offset by HEAD, and go on from there`,
    details: { offset },
  })
}
