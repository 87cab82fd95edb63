import { sha256 } from '@noble/hashes/sha2.js'
import {
  areBytesEqual,
  concat,
  decodeUtf8,
  encodeBase64,
  encodeUtf8,
  FormatError,
} from '../bytes.ts'
import { type Checkpoint, formatCheckpoint, verifyCheckpoint } from '../checkpoint.ts'
import { type Chunk, decodeChunk } from '../publication.ts'

/*
 * A chunk of published blocks (publication.ts) as a blob on Celestia, where anybody can write into every namespace:
 *
 *   tbc1 | length of the note (16 bits, big endian) | note | chunk
 *
 * The note is a checkpoint of the log at the end of the chunk's bundle, signed with the log's key, with a fourth line:
 * SHA-256 of the chunk in base64. So what others write is told from the log's own by one signature.
 */

const magic = encodeUtf8('tbc1')
const lengthBytes = 2
const headBytes = magic.length + lengthBytes
/** Bytes of a blob beside those of its chunk at most: names of logs are short. */
export const chunkBlobOverheadBytes = 1_024

/** Formats the text of the note, which is to be signed. */
export function formatChunkNote(tree: Checkpoint, chunk: Uint8Array): string {
  return `${formatCheckpoint(tree)}${encodeBase64(sha256(chunk))}\n`
}

export function encodeChunkBlob(note: string, chunk: Uint8Array): Uint8Array {
  const text = encodeUtf8(note)
  if (text.length > chunkBlobOverheadBytes - headBytes)
    throw new FormatError('the note is too long')
  const length = new Uint8Array(lengthBytes)
  new DataView(length.buffer).setUint16(0, text.length)
  return concat(magic, length, text, chunk)
}

/** Decodes the chunk of a blob; throws a FormatError where the blob is none that this key signed. */
export function decodeChunkBlob(blob: Uint8Array, vkey: string): Chunk {
  if (blob.length < headBytes || !areBytesEqual(blob.subarray(0, magic.length), magic))
    throw new FormatError('the blob has no chunk of published blocks')
  const end = headBytes + new DataView(blob.buffer, blob.byteOffset).getUint16(magic.length)
  const note = decodeUtf8(blob.subarray(headBytes, end))
  const chunk = blob.subarray(end)
  const signed = verifyCheckpoint(note, vkey)
  if (!signed.ok) throw new FormatError(signed.problem)
  if (formatChunkNote(signed.checkpoint, chunk) !== signed.checkpoint.text)
    throw new FormatError('the note of the blob is for another chunk')
  return decodeChunk(chunk)
}
