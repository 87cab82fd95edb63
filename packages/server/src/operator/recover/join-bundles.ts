import { FormatError } from '@tollbase/verify/bytes'
import { type Chunk, joinChunks } from '@tollbase/verify/publication'
import type { HeldBytes } from './held-bytes.ts'
import type { SentChunk } from './read-chunks.ts'

/** A bundle as it was sent, whole. */
export type SentBundle = {
  /** SHA-256 of the bytes, hex. */
  readonly hash: string
  readonly compressed: Uint8Array
}

/** Yields the compressed bytes of each bundle as soon as all of its chunks were seen, and then forgets them. */
export async function* joinBundles(
  chunks: AsyncIterable<SentChunk>,
  held: HeldBytes,
): AsyncGenerator<SentBundle, void, undefined> {
  const bundles = new Map<string, Map<number, Chunk>>()
  for await (const chunk of chunks) {
    const hash = Buffer.from(chunk.bundle).toString('hex')
    const name = `${chunk.sender}:${hash}:${chunk.parts}`
    const parts = bundles.get(name) ?? new Map<number, Chunk>()
    held.take(chunk.bytes.length - (parts.get(chunk.part)?.bytes.length ?? 0))
    bundles.set(name, parts.set(chunk.part, chunk))
    if (parts.size < chunk.parts) continue
    bundles.delete(name)
    const all = [...parts.values()].sort((a, b) => a.part - b.part)
    held.give(all.reduce((sum, { bytes }) => sum + bytes.length, 0))
    const compressed = attemptJoin(all)
    if (compressed !== undefined) yield { hash, compressed }
  }
}

function attemptJoin(chunks: readonly Chunk[]): Uint8Array | undefined {
  try {
    return joinChunks(chunks)
  } catch (error) {
    if (error instanceof FormatError) return undefined
    throw error
  }
}
