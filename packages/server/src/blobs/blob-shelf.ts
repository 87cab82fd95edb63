import { createHash } from 'node:crypto'
import { pipeline as compose, Readable, Transform } from 'node:stream'
import { assert } from '../base/assert.ts'
import { Fault } from '../base/fault.ts'

/** The place of a file: a folder of numbers, and the hash of its bytes, which is its name. */
export type BlobPlace = { readonly folder: number; readonly sha256: string }

/** The bytes of a file from the first to the last of them, both included. */
export type ByteRange = { readonly start: number; readonly end: number }

/** Keeps whole files, each under the hash of its bytes: a folder of the disk, or a bucket. */
export type BlobShelf = {
  /** Names it for its operator, without secrets. */
  readonly name: string
  /** The bytes of a file; undefined where it is not there. */
  readonly findSize: (place: BlobPlace) => Promise<number | undefined>
  readonly read: (place: BlobPlace, range?: ByteRange) => Readable
  /**
   * Makes the file of this path the one of the place, durably, and takes it from where it was. One that is there already
   * is replaced by the same bytes.
   */
  readonly put: (path: string, place: BlobPlace) => Promise<void>
  /** Removes a file, which may be gone. */
  readonly remove: (place: BlobPlace) => Promise<void>
  /** Lists the files of a folder, or of all folders. */
  readonly list: (folder?: number) => AsyncGenerator<BlobPlace & { readonly size: number }>
}

/** A file that is there. */
export type StoredFile = {
  /**
   * Reads its bytes, from the first to the last of a range (both included). Read whole, the stream fails with BLOB_GONE
   * before its last bytes where they are not those that the name promises.
   */
  readonly read: (range?: ByteRange) => Readable
  /** Reads the file and says whether its bytes are those that its name promises. */
  readonly isIntact: () => Promise<boolean>
}

const hashPattern = /^[0-9a-f]{64}$/

/** Returns true for a name that a file may have. */
export function isFileName(name: string): boolean {
  return hashPattern.test(name)
}

/** Formats the path of a file below the folder of all files, or in a bucket: `<folder>/<first two digits>/<hash>`. */
export function formatPlace({ folder, sha256 }: BlobPlace): string {
  assert(Number.isSafeInteger(folder) && folder >= 0, 'a folder is a number')
  assert(isFileName(sha256), 'a file is named by a hash')
  return `${folder}/${sha256.slice(0, 2)}/${sha256}`
}

/** Parses what `formatPlace` made; undefined for any other path. */
export function parsePlace(path: string): BlobPlace | undefined {
  const [, folder, digits, sha256 = ''] = /^(\d+)\/([0-9a-f]{2})\/([0-9a-f]{64})$/.exec(path) ?? []
  return digits === sha256.slice(0, 2) && folder !== undefined
    ? { folder: Number(folder), sha256 }
    : undefined
}

/**
 * Finds the file of a blob; undefined where it is not there, or has lost bytes: its name is the hash of all of them, and
 * an answer that ends before its stated length would leave its connection in disorder. A caller that does not know the
 * size gets the file as it is.
 */
export async function findFile(
  shelf: Pick<BlobShelf, 'findSize' | 'read' | 'name'>,
  place: BlobPlace,
  knownSize?: number,
): Promise<StoredFile | undefined> {
  const found = await shelf.findSize(place)
  const size = knownSize ?? found
  if (found === undefined || found !== size) return undefined
  const readWhole = () =>
    // The reader hears of an error by the stream that it has.
    compose(shelf.read(place), makeHashCheck(shelf.name, place), () => undefined)
  return {
    read: (range) => {
      if (range === undefined || (range.start === 0 && range.end === size - 1)) return readWhole()
      if (range.end < range.start) return Readable.from([])
      return shelf.read(place, range)
    },
    isIntact: async () => {
      try {
        for await (const _ of readWhole());
        return true
      } catch (error) {
        if (error instanceof Fault && error.code === 'BLOB_GONE') return false
        throw error
      }
    },
  }
}

export function makeGoneFault(sha256: string, internal: string): Fault {
  return new Fault('BLOB_GONE', { details: { blob_id: `blob_${sha256}` }, internal })
}

/** Passes bytes on, the last ones only where all of them have this hash. */
function makeHashCheck(shelf: string, place: BlobPlace): Transform {
  const hash = createHash('sha256')
  let held: Buffer | undefined
  return new Transform({
    transform: (chunk: Buffer, _, done) => {
      hash.update(chunk)
      const before = held
      held = chunk
      done(null, before)
    },
    flush: (done) => {
      if (hash.digest('hex') === place.sha256) done(null, held)
      else
        done(
          makeGoneFault(place.sha256, `the bytes of ${shelf}: ${formatPlace(place)} have changed`),
        )
    },
  })
}
