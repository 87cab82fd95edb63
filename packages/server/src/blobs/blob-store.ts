import { createHash } from 'node:crypto'
import { createReadStream, readFileSync, rmSync } from 'node:fs'
import { type FileHandle, link, open, rename, stat, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { awaitTurn } from '../base/await-turn.ts'
import type { NeedRoom, UseRoom } from '../base/disk-room.ts'
import { makeFolder } from '../base/make-folder.ts'
import { Mutex } from '../base/mutex.ts'
import type { World } from '../base/world.ts'
import {
  type BlobPlace,
  type BlobShelf,
  findFile,
  formatPlace,
  type StoredFile,
} from './blob-shelf.ts'
import { IntactFiles } from './intact-files.ts'
import { toStorageFault } from './storage-faults.ts'

export type BlobStoreOptions = {
  /** The folder for files that are on their way, of which one process alone uses it. */
  readonly incoming: string
  /** Keeps the files that have arrived. */
  readonly shelf: BlobShelf
  readonly world: World
  readonly useRoom: UseRoom
}

/** Throws where a folder that has so many bytes may not have so many more. */
export type RefuseOverQuota = (bytes: { readonly before: number; readonly more: number }) => void

/** Makes other bytes of those that come; the file and its name are made of these. */
export type ChangeBytes = (chunks: AsyncIterable<Buffer>) => AsyncIterable<Buffer>

/** Bytes that have arrived whole and are not a blob yet; its holder ends it by `publish` or `discard`. */
export type ReceivedFile = {
  readonly sha256: string
  readonly size: number
  /** Makes it the file of a folder, durably; it is not removed before `discard`, though nobody may name it yet. */
  readonly publish: (folder: number, refuseOverQuota: RefuseOverQuota) => Promise<void>
  /** Deletes what was not published, and lets go of what was. */
  readonly discard: () => Promise<void>
}

/** Bytes that are written between two looks at the room on the disk. */
const roomBytes = 8 * 1024 * 1024
/** Bytes that wait for the disk in memory, for each file. */
const writeBufferBytes = 1024 * 1024
const readBufferBytes = 256 * 1024
const idBytes = 16
/** Notes that are formatted in one turn of the event loop. */
const notesOfTurn = 1_000

/**
 * Files that are named by the hash of their bytes. `receive` is the only place that writes bytes, and `find` the only one
 * that reads them; the shelf has those that are whole.
 */
export class BlobStore {
  readonly #options: BlobStoreOptions
  /** Files of a folder are taken in and removed one at a time; a store that does not answer for one stops no other. */
  readonly #names = new Map<number, Mutex>()
  /** The last who puts the file of a place on the shelf: of those who bring the same one, each after the other. */
  readonly #putting = new Map<string, Promise<void>>()
  /** Files that nobody named when they were last looked at, and since when; `keepNotes` keeps it over a restart. */
  readonly #unnamed: Map<string, number>
  /** True where names came or went since the notes were written. */
  #areNotesDue = false
  /** The number of those who hold a file that was published, and that they will name. */
  readonly #held = new Map<string, number>()
  readonly #intact: IntactFiles
  /** Bytes of folders, as far as somebody asked. */
  readonly #sizes = new Map<number, number>()

  /** Sweeps away files that a process that died has received by half; one process alone uses the folder. */
  constructor(options: BlobStoreOptions) {
    this.#options = options
    const { incoming } = options
    rmSync(incoming, { recursive: true, force: true })
    makeFolder(incoming)
    this.#intact = new IntactFiles(() => options.world.now())
    this.#unnamed = readNotes(this.#notesPath)
  }

  /**
   * Writes down since when nobody has named files, so that their time goes on over a restart. A file that came again
   * since the last call may be noted for too long; a row names it by then, or its upload was not acknowledged.
   */
  async keepNotes(): Promise<void> {
    if (!this.#areNotesDue) return
    this.#areNotesDue = false
    try {
      const draft = `${this.#notesPath}.new`
      await writeFile(draft, await formatNotes([...this.#unnamed]), { mode: 0o600, flush: true })
      await rename(draft, this.#notesPath)
    } catch (error) {
      this.#areNotesDue = true
      throw error
    }
  }

  /**
   * Reads a stream into a file of its own, as it is or changed on its way; throws STORAGE_FULL, or the error of the
   * stream, and leaves nothing.
   */
  receive(source: Readable, change?: ChangeBytes): Promise<ReceivedFile> {
    const path = this.#makePath()
    return this.#options.useRoom(async (needRoom) => {
      try {
        const handle = await open(path, 'wx', 0o600)
        try {
          return this.#makeReceived(path, await write(source, handle, { change, needRoom }))
        } finally {
          await handle.close()
        }
      } catch (error) {
        await remove(path)
        throw toStorageFault(error)
      }
    })
  }

  /** Takes a file that is whole and stays where it is, on the same disk; its bytes are read once, for their hash. */
  async adopt(source: string): Promise<ReceivedFile> {
    const path = this.#makePath()
    try {
      await link(source, path)
      return this.#makeReceived(path, await hashFile(path))
    } catch (error) {
      await remove(path)
      throw toStorageFault(error)
    }
  }

  /** Measures the bytes of a folder's files. */
  measure(folder: number): Promise<number> {
    return this.#runInTurn(folder, () => this.#measure(folder))
  }

  /** Finds a file of this size, or as it is (see `findFile`); that it is intact is remembered for some minutes. */
  async find(place: BlobPlace, size?: number): Promise<StoredFile | undefined> {
    const { shelf } = this.#options
    const file = await findFile(shelf, place, size)
    if (file === undefined) return undefined
    const isIntact = async () =>
      // Between the look that found it and a sale its money may have been waited for.
      (await findFile(shelf, place, size)) !== undefined &&
      this.#intact.check(formatPlace(place), file.isIntact)
    return { ...file, isIntact }
  }

  /** Lists the files of a folder. */
  list(folder: number): AsyncGenerator<{ sha256: string; size: number }> {
    return this.#options.shelf.list(folder)
  }

  /**
   * Says whether somebody names this file. One that nobody has named for so long is removed, unless the same bytes
   * are published anew; true where it was.
   */
  sweep(
    place: BlobPlace,
    seen: { readonly isNamed: boolean; readonly graceMs: number },
  ): Promise<boolean> {
    const { shelf } = this.#options
    const path = formatPlace(place)
    return this.#runInTurn(place.folder, async () => {
      if (seen.isNamed) return this.#dropNote(path) && false
      const now = this.#options.world.now()
      const sinceMs = this.#unnamed.get(path) ?? this.#addNote(path, now)
      if (now < sinceMs + seen.graceMs) return false
      const size = (await shelf.findSize(place)) ?? 0
      await shelf.remove(place)
      this.#noteChange(place.folder, -size)
      return this.#dropNote(path)
    })
  }

  /**
   * Removes those of a folder's files that nobody names, at once, and returns the bytes of what was removed. `listNamed`
   * is called while none of them is published or removed. Files that are held stay.
   */
  removeUnnamed(
    folder: number,
    hashes: readonly string[],
    listNamed: (hashes: readonly string[]) => Promise<readonly string[]>,
  ): Promise<number> {
    const { shelf } = this.#options
    return this.#runInTurn(folder, async () => {
      const free = hashes.filter((sha256) => !this.#held.has(formatPlace({ folder, sha256 })))
      const named = new Set(await listNamed(free))
      let bytes = 0
      for (const sha256 of free.filter((one) => !named.has(one))) {
        const place = { folder, sha256 }
        const size = (await shelf.findSize(place)) ?? 0
        await shelf.remove(place)
        this.#noteChange(folder, -size)
        this.#dropNote(formatPlace(place))
        bytes += size
      }
      return bytes
    })
  }

  #makeReceived(
    path: string,
    { sha256, size }: { readonly sha256: string; readonly size: number },
  ): ReceivedFile {
    const held: string[] = []
    return {
      sha256,
      size,
      publish: (folder, refuseOverQuota) => {
        const place = { folder, sha256 }
        held.push(formatPlace(place))
        this.#hold(formatPlace(place), 1)
        return this.#publish({ path, refuseOverQuota }, place)
      },
      discard: async () => {
        for (const name of held.splice(0)) this.#hold(name, -1)
        await remove(path)
      },
    }
  }

  #runInTurn<T>(folder: number, work: () => Promise<T>): Promise<T> {
    const mutex = this.#names.get(folder) ?? new Mutex()
    this.#names.set(folder, mutex)
    return mutex.run(work)
  }

  #hold(name: string, more: 1 | -1): void {
    const count = (this.#held.get(name) ?? 0) + more
    if (count === 0) this.#held.delete(name)
    else this.#held.set(name, count)
  }

  #addNote(path: string, sinceMs: number): number {
    this.#unnamed.set(path, sinceMs)
    this.#areNotesDue = true
    return sinceMs
  }

  /** Forgets since when nobody has named a file; true where that was known. */
  #dropNote(path: string): boolean {
    const isKnown = this.#unnamed.delete(path)
    if (isKnown) this.#areNotesDue = true
    return isKnown
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

  /** Puts a file on the shelf, after those who bring the same one. */
  async #publish(received: Received, place: BlobPlace): Promise<void> {
    const name = formatPlace(place)
    const before = this.#putting.get(name) ?? Promise.resolve()
    const putting = before.catch(() => undefined).then(() => this.#put(received, place))
    this.#putting.set(name, putting)
    try {
      await putting
    } finally {
      if (this.#putting.get(name) === putting) this.#putting.delete(name)
    }
  }

  /**
   * A file that is there already needs no room. One is taken in at a time, and counts from then on, so that many that come
   * at once do not each see the room of all.
   */
  async #put({ path, refuseOverQuota }: Received, place: BlobPlace): Promise<void> {
    const { shelf } = this.#options
    const more = await this.#runInTurn(place.folder, async () => {
      const [added, replaced] = [(await stat(path)).size, (await shelf.findSize(place)) ?? 0]
      const bytes = added - replaced
      if (bytes > 0) refuseOverQuota({ before: await this.#measure(place.folder), more: bytes })
      this.#dropNote(formatPlace(place))
      this.#noteChange(place.folder, bytes)
      return bytes
    })
    try {
      await shelf.put(path, place)
    } catch (error) {
      this.#noteChange(place.folder, -more)
      throw error
    }
  }

  get #notesPath(): string {
    return join(this.#options.incoming, '..', 'unnamed.json')
  }

  #makePath(): string {
    const { incoming, world } = this.#options
    return join(incoming, world.randomBytes(idBytes).toString('hex'))
  }
}

type Received = { readonly path: string; readonly refuseOverQuota: RefuseOverQuota }

/** None where there are no notes, or they cannot be read: then the time begins anew. */
function readNotes(path: string): Map<string, number> {
  try {
    const notes: unknown = JSON.parse(readFileSync(path, 'utf8'))
    const pairs = Array.isArray(notes) ? notes : []
    return new Map(pairs.map(([name, sinceMs]) => [String(name), Number(sinceMs)]))
  } catch {
    return new Map()
  }
}

/** Formats them some at a time: there may be as many as somebody uploads and deletes. */
async function formatNotes(notes: readonly (readonly [string, number])[]): Promise<string> {
  const texts: string[] = []
  for (let at = 0; at < notes.length; at += notesOfTurn) {
    texts.push(JSON.stringify(notes.slice(at, at + notesOfTurn)).slice(1, -1))
    await awaitTurn()
  }
  return `[${texts.join(',')}]`
}

async function remove(path: string): Promise<void> {
  await unlink(path).catch(() => undefined)
}

async function write(
  source: Readable,
  handle: FileHandle,
  {
    change = (chunks) => chunks,
    needRoom,
  }: { readonly change?: ChangeBytes | undefined; readonly needRoom: NeedRoom },
): Promise<{ sha256: string; size: number }> {
  const hash = createHash('sha256')
  let size = 0
  let roomFor = 0
  const measure = async function* (chunks: AsyncIterable<Buffer>) {
    for await (const chunk of chunks) {
      if (size + chunk.length > roomFor) {
        // Bytes in the buffer have no room on the disk yet.
        needRoom(roomBytes + writeBufferBytes)
        roomFor = size + roomBytes
      }
      size += chunk.length
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
