import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { findErrorCode } from '../../base/files.ts'
import { makeGoneFault, type StoredFile } from '../../blobs/blob-shelf.ts'
import type { BlobStore, ReceivedFile } from '../../blobs/blob-store.ts'
import type { BlobFacts } from '../../model/blob.ts'
import {
  type FileSealing,
  locateSegments,
  openSegments,
  sealSegments,
} from '../../sealing/segments.ts'

const readBufferBytes = 256 * 1024

/** A blob that has arrived; size and hash are those of the bytes that were sent, not of the file. */
export type ReceivedBlob = {
  readonly file: ReceivedFile
  readonly size: number
  readonly contentSha256: string
}

/** Receives a blob into a file, which has nothing but sealed bytes where there is a sealing. */
export async function takeBlob(
  store: BlobStore,
  source: Readable,
  sealing: FileSealing | undefined,
): Promise<ReceivedBlob> {
  if (sealing === undefined) {
    const file = await store.receive(source)
    return { file, size: file.size, contentSha256: file.sha256 }
  }
  const hash = createHash('sha256')
  let size = 0
  const measure = async function* (chunks: AsyncIterable<Buffer>) {
    for await (const chunk of chunks) {
      hash.update(chunk)
      size += chunk.length
      yield chunk
    }
  }
  const file = await store.receive(source, (chunks) => sealSegments(measure(chunks), sealing))
  return { file, size, contentSha256: hash.digest('hex') }
}

/** A sealed file as its readers see it: every byte that it gives was found to be the one that was sealed. */
export function openSealedFile(
  file: StoredFile,
  sealing: FileSealing,
  { size, sha256 }: Pick<BlobFacts, 'size' | 'sha256'>,
): StoredFile {
  const open = async function* (start: number, end: number) {
    if (end < start) return
    const span = { size, start, end }
    // Opened with the first read, so that nobody has to close what is never read.
    const source = file.read(locateSegments(span))
    try {
      yield* openSegments(source, sealing, span)
    } catch (error) {
      throw findErrorCode(error) === undefined ? makeGoneFault(sha256, String(error)) : error
    } finally {
      source.destroy()
    }
  }
  return {
    ...file,
    read: ({ start, end } = { start: 0, end: size - 1 }) =>
      Readable.from(open(start, end), { objectMode: false, highWaterMark: readBufferBytes }),
  }
}
