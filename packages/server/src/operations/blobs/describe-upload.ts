import type { Tollbase } from '@tollbase/contract/contract'
import { limits } from '@tollbase/contract/limits'
import type { Reply } from '@tollbase/contract/route'
import { isRecord } from '../../base/is-record.ts'
import type { PartialFile } from '../../blobs/partial-files.ts'
import { HttpReply, makeJsonReply } from '../../http/reply.ts'
import { formatExpiry, tusVersion } from '../../http/tus.ts'

/** The names of a blob that an upload has become, and of the task that stored it. */
export type UploadResult = { readonly blob_id: string; readonly ticket_id: string }

/** Reads the result that an upload keeps. */
export function readResult(text: string | null): UploadResult | undefined {
  const value: unknown = text === null ? undefined : JSON.parse(text)
  const { blob_id, ticket_id } = isRecord(value) ? value : {}
  if (typeof blob_id !== 'string' || typeof ticket_id !== 'string') return undefined
  return { blob_id, ticket_id }
}

/** Describes an upload as its owner sees it. */
export function describeUpload({ id, facts, offset }: PartialFile): Reply<Tollbase['getUpload']> {
  const { length, isWhole, result, touchedAtMs } = facts
  return {
    upload_id: id,
    status: result !== null ? 'stored' : isWhole ? 'received' : 'open',
    offset,
    length,
    blob_id: readResult(result)?.blob_id ?? null,
    expires_at: new Date(touchedAtMs + limits.openUploadMs).toISOString(),
  }
}

/** The headers in which clients of tus look for the same. */
function listHeaders({ facts, offset }: PartialFile): Record<string, string> {
  const result = readResult(facts.result)
  return {
    'tus-resumable': tusVersion,
    'upload-offset': String(offset),
    'upload-length': String(facts.length),
    'upload-expires': formatExpiry(facts.touchedAtMs),
    ...(result && { 'x-blob-id': result.blob_id, 'x-ticket-id': result.ticket_id }),
  }
}

export function makeUploadReply(
  file: PartialFile,
  headers: Readonly<Record<string, string>> = {},
): HttpReply {
  return makeJsonReply(describeUpload(file), { headers: { ...listHeaders(file), ...headers } })
}

/** An answer without a body, as the protocol has it. */
export function makeEmptyReply(
  file: PartialFile | undefined,
  headers: Readonly<Record<string, string>> = {},
): HttpReply {
  const own = file === undefined ? { 'tus-resumable': tusVersion } : listHeaders(file)
  return new HttpReply('', { status: 204, headers: { ...own, ...headers } })
}
