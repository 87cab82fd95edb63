import { makeInvalidFault } from '../base/fault.ts'
import { isRecord } from '../base/is-record.ts'
import { addMembers } from '../base/json-text.ts'

/** The field that names a blob, which is the primary column of every collection of blobs. */
export const blobKey = 'blob_id'

/** The facts of a blob that its row states. */
export type BlobFacts = {
  /** The hash in its id, which names its file. */
  readonly sha256: string
  /** Bytes that its readers get. */
  readonly size: number
  readonly contentType: string
  readonly filename: string | undefined
}

/** Fields that the service sets, or that clients expect it to set. */
const ownFields = [
  blobKey,
  'sha256',
  'size_bytes',
  'content_type',
  'filename',
  'uploaded_at',
  'tx_hash',
  'celestia_height',
  'deleted',
]

export function makeBlobId(sha256: string): string {
  return `blob_${sha256}`
}

/** Finds the hash in the id of a blob; undefined where it is none. */
export function findBlobHash(id: string): string | undefined {
  return /^blob_([0-9a-f]{64})$/.exec(id)?.[1]
}

/**
 * Makes the text of a blob's row: the metadata as sent, and the facts. 400 where the metadata states a fact itself. The
 * id of an encrypted blob has the hash of its sealed bytes, and its row that of the bytes that its readers get.
 */
export function makeBlobRow(
  facts: BlobFacts & { readonly uploadedAt: string; readonly contentSha256: string },
  metadata: { readonly text: string; readonly value: unknown },
): string {
  const { value } = metadata
  if (!isRecord(value)) throw makeInvalidFault('/metadata', 'must be a JSON object')
  const taken = ownFields.find((name) => Object.hasOwn(value, name))
  if (taken !== undefined)
    throw makeInvalidFault(`/metadata/${taken}`, 'is set by the service; choose another name')
  return addMembers(metadata.text, [
    [blobKey, makeBlobId(facts.sha256)],
    ['sha256', facts.contentSha256],
    ['size_bytes', facts.size],
    ['content_type', facts.contentType],
    ['filename', facts.filename ?? null],
    ['uploaded_at', facts.uploadedAt],
  ])
}

/** Reads from a row how its blob is to be sent. */
export function parseBlobRow(row: string): Omit<BlobFacts, 'sha256'> {
  const value: unknown = JSON.parse(row)
  const { size_bytes: size, content_type: type, filename } = isRecord(value) ? value : {}
  return {
    size: Number(size),
    contentType: typeof type === 'string' ? type : 'application/octet-stream',
    filename: typeof filename === 'string' ? filename : undefined,
  }
}
