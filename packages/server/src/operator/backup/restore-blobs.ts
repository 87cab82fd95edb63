import { type BlobShelf, findFile, formatPlace } from '../../blobs/blob-shelf.ts'
import { makeBlobId } from '../../model/blob.ts'
import type { Progress } from '../maintenance.ts'
import type { NamedBlob } from '../named-blobs.ts'
import { copyToShelf } from './blob-files.ts'

/** Blobs that something names, and whose files are neither in the copy nor on the shelf. */
export type LostBlobs = {
  readonly count: number
  /** The first of them, each as `<application or folder>, <what names it>, <id>`. */
  readonly first: readonly string[]
}

/** Lost blobs that a report names; the others are counted. */
const namedMax = 1_000
const shownMax = 5

type Copy = {
  readonly shelf: BlobShelf
  readonly dataDir: string
  /** The path of a file in the copy. */
  readonly findPath: (blob: NamedBlob) => string
  /** The application of a folder. */
  readonly getOwner: (folder: number) => string
  readonly progress: Progress
}

/**
 * Puts the files that are named onto the shelf, each checked by its hash, and tells which there are none of. Other files
 * of the copy are not read: what nobody names can neither be missed nor harm.
 */
export async function restoreBlobs(
  named: AsyncIterable<NamedBlob>,
  { shelf, dataDir, findPath, getOwner, progress }: Copy,
): Promise<LostBlobs> {
  const done = new Set<string>()
  const first: string[] = []
  let count = 0
  for await (const blob of named) {
    const path = formatPlace(blob)
    if (done.has(path)) continue
    done.add(path)
    const isThere =
      (await copyToShelf({ shelf, dataDir }, blob, findPath(blob))) ||
      // A bucket outlives the database that is restored.
      (await (await findFile(shelf, blob, blob.size))?.isIntact()) === true
    if (!isThere && blob.isCertain) {
      count += 1
      if (first.length < namedMax)
        first.push(`${getOwner(blob.folder)}, ${blob.namedBy}, ${makeBlobId(blob.sha256)}`)
    }
    progress(`copying blobs: ${done.size}`, 1)
  }
  return { count, first }
}

/** States lost blobs as a difference. */
export function describeLost({ count, first }: LostBlobs) {
  const rest = count - Math.min(count, shownMax)
  return {
    what: 'the files of the blobs that rows name',
    expected: 'all of them, whole',
    found: `${count} ${count === 1 ? 'is' : 'are'} missing or damaged: ${first.slice(0, shownMax).join('; ')}${rest === 0 ? '' : `; and ${rest} more`}`,
  }
}
