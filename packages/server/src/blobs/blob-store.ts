import { createHash } from 'node:crypto'
import { createReadStream, mkdirSync, rmSync } from 'node:fs'
import { type FileHandle, link, mkdir, open, readdir, rename, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline as compose, Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { assert } from '../base/assert.ts'
import { Fault } from '../base/fault.ts'
import { findErrorCode, findStatus, syncPath } from '../base/files.ts'
import { Mutex } from '../base/mutex.ts'
import type { World } from '../base/world.ts'
import { toStorageFault } from './storage-faults.ts'

export type BlobStoreOptions = {
  /** The folder of all files. */
  readonly root: string
  readonly world: World
  /** Throws where so many more bytes do not fit on the disk. */
  readonly needRoom: (bytes: number) => void
}

/** The place of a file: a folder of numbers, and the hash of its bytes, which is its name. */
export type BlobPlace = { readonly folder: number; readonly sha256: string }

/** Throws where a folder that has so many bytes may not have so many more. */
export type Admit = (bytes: { readonly before: number; readonly more: number }) => void

/** Makes other bytes of those that come; the file and its name are made of these. */
export type ChangeBytes = (chunks: AsyncIterable<Buffer>) => AsyncIterable<Buffer>

/** Bytes that have arrived whole and are not a blob yet; its holder ends it by `publish` or `discard`. */
export type ReceivedFile = {
  readonly sha256: string
  readonly size: number
  /** Makes it the file of a folder, durably. */
  readonly publish: (folder: number, admit: Admit) => Promise<void>
  /** Deletes what was not published. */
  readonly discard: () => Promise<void>
}

/** A file that is there. */
export type StoredFile = {
  /**
   * Reads its bytes, from the first to the last of a range (both included). Read whole, the stream fails with BLOB_GONE
   * before its last bytes where they are not those that the name promises.
   */
  readonly read: (range?: { readonly start: number; readonly end: number }) => Readable
  /** Reads the file and says whether its bytes are those that its name promises. */
  readonly isIntact: () => Promise<boolean>
}

/** Bytes that are written between two looks at the room on the disk. */
const roomBytes = 8 * 1024 * 1024
/** Bytes that wait for the disk in memory, for each file. */
const writeBufferBytes = 1024 * 1024
const readBufferBytes = 256 * 1024
const idBytes = 16
const incoming = 'incoming'
const hashPattern = /^[0-9a-f]{64}$/

/**
 * Files that are named by the hash of their bytes: `<root>/<folder>/<first two digits>/<hash>`. `receive` is the only
 * place that writes bytes, and `find` the only one that reads them.
 */
export class BlobStore {
  readonly #options: BlobStoreOptions
  /** A file is replaced or removed by one at a time. */
  readonly #names = new Mutex()
  /** Files that nobody named when they were last looked at, and since when. */
  readonly #unnamed = new Map<string, number>()
  /** Bytes of folders, as far as somebody asked. */
  readonly #sizes = new Map<number, number>()

  /** Sweeps away files that a process that died has received by half; one process alone uses the folder. */
  constructor(options: BlobStoreOptions) {
    this.#options = options
    const folder = join(options.root, incoming)
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder, { recursive: true })
  }

  /**
   * Reads a stream into a file of its own, as it is or changed on its way; throws STORAGE_FULL, or the error of the
   * stream, and leaves nothing.
   */
  async receive(source: Readable, change?: ChangeBytes): Promise<ReceivedFile> {
    const { root, world } = this.#options
    const path = join(root, incoming, world.randomBytes(idBytes).toString('hex'))
    const discard = () => unlink(path).catch(() => undefined)
    try {
      const handle = await open(path, 'wx', 0o600)
      try {
        const { sha256, size } = await this.#write(source, handle, change)
        const publish = (folder: number, admit: Admit) =>
          this.#publish({ path, admit }, { folder, sha256 })
        return { sha256, size, publish, discard }
      } finally {
        await handle.close()
      }
    } catch (error) {
      await discard()
      throw toStorageFault(error)
    }
  }

  /** Takes a file that is whole and stays where it is, on the same disk; its bytes are read once, for their hash. */
  async adopt(source: string): Promise<ReceivedFile> {
    const { root, world } = this.#options
    const path = join(root, incoming, world.randomBytes(idBytes).toString('hex'))
    const discard = () => unlink(path).catch(() => undefined)
    try {
      await link(source, path)
      const { sha256, size } = await hashFile(path)
      const publish = (folder: number, admit: Admit) =>
        this.#publish({ path, admit }, { folder, sha256 })
      return { sha256, size, publish, discard }
    } catch (error) {
      await discard()
      throw toStorageFault(error)
    }
  }

  /** Measures the bytes of a folder's files. */
  measure(folder: number): Promise<number> {
    return this.#names.run(() => this.#measure(folder))
  }

  /** Finds a file of this size (see `findFile`). */
  find(place: BlobPlace, size: number): Promise<StoredFile | undefined> {
    return findFile(this.#options.root, place, size)
  }

  /** Lists the files of a folder. */
  async *list(folder: number): AsyncGenerator<{ sha256: string; size: number }> {
    const root = join(this.#options.root, String(folder))
    for (const shard of await listNames(root)) {
      for (const sha256 of await listNames(join(root, shard))) {
        const found = hashPattern.test(sha256) && (await findStatus(join(root, shard, sha256)))
        if (found) yield { sha256, size: found.size }
      }
    }
  }

  /**
   * Says whether somebody names this file. One that nobody has named for so long is removed, unless the same bytes
   * are published anew; true where it was.
   */
  sweep(
    place: BlobPlace,
    seen: { readonly isNamed: boolean; readonly graceMs: number },
  ): Promise<boolean> {
    const path = getPath(this.#options.root, place)
    return this.#names.run(async () => {
      if (seen.isNamed) return this.#unnamed.delete(path) && false
      const now = this.#options.world.now()
      const sinceMs = this.#unnamed.get(path) ?? now
      this.#unnamed.set(path, sinceMs)
      if (now < sinceMs + seen.graceMs) return false
      const size = (await findStatus(path))?.size ?? 0
      await unlink(path)
      this.#noteChange(place.folder, -size)
      return this.#unnamed.delete(path)
    })
  }

  #noteChange(folder: number, bytes: number): void {
    const known = this.#sizes.get(folder)
    if (known !== undefined) this.#sizes.set(folder, known + bytes)
  }

  /** Measures the bytes of a folder, once, while no file of it is replaced or removed; they are kept from then on. */
  async #measure(folder: number): Promise<number> {
    const known = this.#sizes.get(folder)
    if (known !== undefined) return known
    let sum = 0
    for await (const { size } of this.list(folder)) sum += size
    this.#sizes.set(folder, sum)
    return sum
  }

  async #write(
    source: Readable,
    handle: FileHandle,
    change: ChangeBytes = (chunks) => chunks,
  ): Promise<{ sha256: string; size: number }> {
    const hash = createHash('sha256')
    const { needRoom } = this.#options
    let size = 0
    let roomFor = 0
    const measure = async function* (chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) {
        size += chunk.length
        if (size > roomFor) {
          needRoom(roomBytes)
          roomFor = size + roomBytes
        }
        hash.update(chunk)
        yield chunk
      }
    }
    // The stream closes the file, after the last of its bytes has gone to the disk.
    await pipeline(
      source,
      change,
      measure,
      handle.createWriteStream({ highWaterMark: writeBufferBytes }),
    )
    return { sha256: hash.digest('hex'), size }
  }

  /**
   * The bytes are durable before their name is, and the name before anybody is told. A file that is there already is
   * replaced by the same bytes, and needs no room. One is admitted at a time, so that many that come at once do not
   * each see the room of all.
   */
  async #publish(
    received: { readonly path: string; readonly admit: Admit },
    place: BlobPlace,
  ): Promise<void> {
    const path = getPath(this.#options.root, place)
    const shard = join(path, '..')
    try {
      await syncPath(received.path, 'r+')
      const made = await mkdir(shard, { recursive: true })
      await this.#names.run(async () => {
        const [added, replaced] = [await findStatus(received.path), await findStatus(path)]
        const more = (added?.size ?? 0) - (replaced?.size ?? 0)
        if (more > 0) received.admit({ before: await this.#measure(place.folder), more })
        this.#unnamed.delete(path)
        await rename(received.path, path)
        this.#noteChange(place.folder, more)
      })
      await syncPath(shard, 'r')
      if (made === undefined) return
      await syncPath(join(shard, '..'), 'r')
      await syncPath(this.#options.root, 'r')
    } catch (error) {
      throw toStorageFault(error)
    }
  }
}

function getPath(root: string, { folder, sha256 }: BlobPlace): string {
  assert(Number.isSafeInteger(folder) && folder >= 0, 'a folder is a number')
  assert(hashPattern.test(sha256), 'a file is named by a hash')
  return join(root, String(folder), sha256.slice(0, 2), sha256)
}

/**
 * Finds the file of a blob below the folder of all files; undefined where it is not there, or has lost bytes: its name is
 * the hash of all of them, and an answer that ends before its stated length would leave its connection in disorder.
 * A caller that does not know the size gets the file as it is.
 */
export async function findFile(
  root: string,
  place: BlobPlace,
  knownSize?: number,
): Promise<StoredFile | undefined> {
  const path = getPath(root, place)
  const found = await findStatus(path)
  const size = knownSize ?? found?.size
  if (found === undefined || found.size !== size) return undefined
  const readWhole = () => {
    const source = createReadStream(path, { highWaterMark: readBufferBytes })
    // The reader hears of an error by the stream that it has.
    return compose(source, makeHashCheck(path, place.sha256), () => undefined)
  }
  return {
    read: (range) => {
      if (range === undefined || (range.start === 0 && range.end === size - 1)) return readWhole()
      if (range.end < range.start) return Readable.from([])
      return createReadStream(path, { ...range, highWaterMark: readBufferBytes })
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
function makeHashCheck(path: string, sha256: string): Transform {
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
      if (hash.digest('hex') === sha256) done(null, held)
      else done(makeGoneFault(sha256, `the bytes of ${path} have changed`))
    },
  })
}

async function hashFile(path: string): Promise<{ sha256: string; size: number }> {
  const hash = createHash('sha256')
  let size = 0
  const chunks: AsyncIterable<Buffer> = createReadStream(path, { highWaterMark: readBufferBytes })
  for await (const chunk of chunks) {
    hash.update(chunk)
    size += chunk.length
  }
  return { sha256: hash.digest('hex'), size }
}

async function listNames(folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    if (findErrorCode(error) === 'ENOENT') return []
    throw error
  }
}
