import type { HttpReply } from '../../http/reply.ts'
import type { Tenant } from '../../services/applications/tenants.ts'
import type { OpenedUpload } from '../../services/blobs/resumable-uploads.ts'
import type { Call } from '../../services/call.ts'
import { readResult } from './describe-upload.ts'
import { type BlobParts, findRowShape, prepareBlobRow, sellUpload } from './sell-upload.ts'

export type EndedUpload = OpenedUpload & {
  readonly tenant: Tenant
  readonly collection: string
  readonly wait: boolean
  /** Takes a place of uploads, for as long as the file is read; the returned function gives it back. */
  readonly occupy?: () => () => void
}

/**
 * Makes a blob of an upload whose bytes are there, and sells it where uploads have a price. The bytes stay until the row
 * is committed: a crash, or a refusal, costs nobody an upload. Done again, it stores the same blob.
 */
export async function endUpload(call: Call<BlobParts>, ended: EndedUpload): Promise<HttpReply> {
  const { tenant, collection, file, sealing, details, wait } = ended
  const { world, blobs } = call.service
  const leave = ended.occupy?.()
  const blob = await blobs.open.take(blobs.store, ended).finally(() => leave?.())
  try {
    world.failpoint?.('upload.whole')
    const { sha256 } = blob.file
    const row = { ...details, sha256, size: blob.size, contentSha256: blob.contentSha256 }
    const shape = findRowShape(tenant, collection)
    const record = await prepareBlobRow(world, row, shape)
    const upload = { tenant, collection, blob, sealing, record, shape, wait }
    const reply = await sellUpload(call, upload, call)
    world.failpoint?.('upload.stored')
    const result = readResult(reply.text.toString())
    // A reply that asks for a payment names no blob.
    if (result !== undefined) await blobs.open.keepResult(file, JSON.stringify(result))
    return reply
  } finally {
    await blob.file.discard()
  }
}
