import { OtherBytes, type PartialFile } from '../../blobs/partial-files.ts'
import { readBytes } from '../../http/tus.ts'
import {
  makeChange,
  type OpenedUpload,
  type UploadTarget,
} from '../../services/blobs/resumable-uploads.ts'
import type { Call } from '../../services/call.ts'
import { endUpload } from './end-upload.ts'
import { type BlobParts, isUploadFree } from './sell-upload.ts'

/**
 * Adds the body of the request to an upload. With the last bytes the blob is stored; where that has a price, they
 * wait for its payment. To be called in a turn of the upload (`ResumableUploads.run`), whose signal ends the body.
 */
export async function addBytes(
  call: Call<BlobParts>,
  target: UploadTarget,
  { file, signal }: { readonly file: PartialFile; readonly signal: AbortSignal },
): Promise<void> {
  const { service, requestInfo } = call
  const { world } = service
  const { open } = service.blobs
  const { offset } = file
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
  if (file.offset < file.facts.length) return
  if (!isUploadFree(target.tenant, target.collection) && opened.sealing === undefined) {
    await open.keepWhole(opened)
    return
  }
  try {
    await endUpload(call, { ...target, ...opened, wait: false })
    await keepUnpaid(call, opened)
  } catch (error) {
    if (error instanceof OtherBytes) await open.remove(file)
    // Until the blob is stored, its last bytes count as missing, so that a client comes again with them.
    else if (file.facts.result === null) file.dropTail()
    throw error
  }
}

/** Keeps an upload that a price kept from being stored, which came while its blob was made: it waits for its payment. */
export async function keepUnpaid(
  { service }: Call<BlobParts>,
  opened: OpenedUpload,
): Promise<void> {
  if (opened.file.facts.result === null) await service.blobs.open.keepWhole(opened)
}
