import { createReadStream, readdirSync, readFileSync, rmSync } from 'node:fs'
import {
  copyFile,
  type FileHandle,
  mkdir,
  open,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises'
import { join } from 'node:path'
import { assert } from '../base/assert.ts'
import type { NeedRoom, UseRoom } from '../base/disk-room.ts'
import { Fault } from '../base/fault.ts'
import { syncPath } from '../base/files.ts'
import { isRecord } from '../base/is-record.ts'
import { makeFolder } from '../base/make-folder.ts'
import { toStorageFault } from './storage-faults.ts'

// Files that arrive in several requests, over restarts. Only whole pieces get to the disk, each changed by itself on
// its way (sealed, or as it is); the rest of a piece waits in memory, and comes again after a restart. The last piece is
// written when its owner says so: until then the file is not whole. A changed piece is never written a second time with
// other bytes, since the nonce of a sealed piece is its number.

/** Makes of a piece what is written, which has `overhead` more bytes. */
export type ChangePiece = (piece: Buffer, at: { number: number; isLast: boolean }) => Buffer

export type PartialFacts = {
  /** Bytes of the whole, as they are sent. */
  readonly length: number
  /** Bytes that a written piece has beside those that were sent. */
  readonly overhead: number
  /** Text of the owner, kept with it. */
  readonly info: string
}

type Kept = PartialFacts & {
  /** Bytes sent of the pieces that are on the disk for sure. */
  readonly durable: number
  /** The last piece is there, too. */
  readonly isWhole: boolean
  readonly touchedAtMs: number
  /** Text of the owner about the end. */
  readonly result: string | null
}

export type PartialOptions = {
  readonly root: string
  readonly pieceBytes: number
  readonly now: () => number
  readonly useRoom: UseRoom
}

/** Bytes between two times at which what was written is made durable. */
const syncBytes = 8 * 1024 * 1024
/** Room on the disk from one of these times to the next; the bytes that reach the bound come in one piece. */
const roomBytes = syncBytes + 1024 * 1024
/** Parts in which a rest waits in memory: each costs more than its bytes where these come one by one. */
const tailPartsMax = 64
const stateName = 'state.json'
const bytesName = 'bytes'

/** Thrown where other bytes come for a piece that was sealed already. Its file cannot go on. */
export class OtherBytes extends Fault {
  constructor() {
    super('CONFLICT', {
      message: 'Other bytes were sent here before, and were sealed; begin the upload anew',
    })
  }
}

/** The partial files of a folder; one process alone uses it. */
export class PartialFiles {
  readonly #options: PartialOptions
  readonly #files = new Map<string, PartialFile>()

  /**
   * Finds what earlier processes have left. A folder without a state was begun by one that died; bytes of a file that has
   * ended were left by one that died just after its end.
   */
  constructor(options: PartialOptions) {
    this.#options = options
    makeFolder(options.root, 0o700)
    for (const id of readdirSync(options.root)) {
      const kept = readState(join(options.root, id))
      if (kept === undefined) rmSync(join(options.root, id), { recursive: true, force: true })
      else this.#files.set(id, new PartialFile({ ...options, id }, kept))
      if (typeof kept?.result === 'string')
        rmSync(join(options.root, id, bytesName), { force: true })
    }
  }

  list(): PartialFile[] {
    return [...this.#files.values()]
  }

  find(id: string): PartialFile | undefined {
    return this.#files.get(id)
  }

  /** Begins a file, durably. */
  async create(id: string, facts: PartialFacts): Promise<PartialFile> {
    const { root, now } = this.#options
    const kept = { ...facts, durable: 0, isWhole: false, touchedAtMs: now(), result: null }
    const file = new PartialFile({ ...this.#options, id }, kept)
    try {
      await mkdir(join(root, id), { mode: 0o700 })
      await writeFile(file.path, '', { mode: 0o600 })
      await file.keep({})
      await syncPath(root, 'r')
    } catch (error) {
      throw toStorageFault(error)
    }
    this.#files.set(id, file)
    return file
  }

  async remove(file: PartialFile): Promise<void> {
    this.#files.delete(file.id)
    await rm(join(this.#options.root, file.id), { recursive: true, force: true })
  }
}

/** One file; its owner calls one at a time. */
export class PartialFile {
  readonly id: string
  readonly #options: PartialOptions & { readonly id: string }
  #kept: Kept
  /** Bytes sent of pieces that are written. */
  #written: number
  #tail: Buffer[] = []
  #tailBytes = 0

  constructor(options: PartialOptions & { readonly id: string }, kept: Kept) {
    this.id = options.id
    this.#options = options
    this.#kept = kept
    this.#written = kept.isWhole ? kept.length : kept.durable
  }

  get facts(): Kept {
    return this.#kept
  }

  /** The bytes as they are written. */
  get path(): string {
    return join(this.#options.root, this.id, bytesName)
  }

  /** Bytes that are there, on the disk or in memory. */
  get offset(): number {
    return this.#written + this.#tailBytes
  }

  /** Takes bytes that come; what was taken stays where the stream fails. PAYLOAD_TOO_LARGE past the length. */
  append(source: AsyncIterable<Buffer>, change: ChangePiece): Promise<void> {
    return this.#options.useRoom((needRoom) => this.#append(source, { change, needRoom }))
  }

  /** Writes the last piece, so that the file at `path` is whole; only `keep` makes that last. */
  async complete(change: ChangePiece): Promise<void> {
    const { length, isWhole } = this.#kept
    assert(this.offset === length, 'all bytes are there')
    if (isWhole) return
    const handle = await this.#openBytes()
    try {
      const piece = Buffer.concat(this.#tail)
      const end = await this.#writeAt(handle, piece, { change, isLast: true })
      await handle.truncate(end)
      await handle.sync()
    } catch (error) {
      throw toStorageFault(error)
    } finally {
      await handle.close()
    }
  }

  /** Reads the bytes as they are written. */
  read(): AsyncIterable<Buffer> {
    return createReadStream(this.path, { highWaterMark: 256 * 1024 })
  }

  /** Forgets what is in memory, so that it comes again. */
  dropTail(): void {
    this.#tail = []
    this.#tailBytes = 0
  }

  /** Goes back to where it was, or to the begin of the piece there: what follows comes again. */
  async rewind(offset: number): Promise<void> {
    const { pieceBytes } = this.#options
    this.dropTail()
    this.#written = Math.min(this.#written, offset - (offset % pieceBytes))
    await this.keep({ durable: Math.min(this.#kept.durable, this.#written) })
  }

  /** Removes the bytes; what is known of the file stays. */
  removeBytes(): Promise<void> {
    return rm(this.path, { force: true })
  }

  /** Makes changes of the state durable. */
  async keep(change: Partial<Kept>): Promise<void> {
    this.#kept = { ...this.#kept, ...change }
    const folder = join(this.#options.root, this.id)
    const draft = join(folder, `${stateName}.draft`)
    await writeFile(draft, JSON.stringify(this.#kept), { mode: 0o600 })
    await syncPath(draft, 'r+')
    await rename(draft, join(folder, stateName))
    await syncPath(folder, 'r')
    if (!this.#kept.isWhole) return
    this.#written = this.#kept.length
    this.dropTail()
  }

  async #append(
    source: AsyncIterable<Buffer>,
    { change, needRoom }: { readonly change: ChangePiece; readonly needRoom: NeedRoom },
  ): Promise<void> {
    const { now } = this.#options
    const { length } = this.#kept
    const handle = await this.#openBytes()
    let unsynced = syncBytes
    let isRoomDue = true
    const sync = async () => {
      try {
        await handle.sync()
        await this.keep({ durable: this.#written, touchedAtMs: now() })
      } catch (error) {
        throw toStorageFault(error)
      }
    }
    try {
      for await (const chunk of source) {
        if (this.offset + chunk.length > length)
          throw new Fault('PAYLOAD_TOO_LARGE', {
            message: `The upload has more than the ${length} bytes that it began with`,
            details: { limit: length },
          })
        if (isRoomDue) needRoom(roomBytes)
        isRoomDue = false
        this.#tail.push(chunk)
        this.#tailBytes += chunk.length
        if (this.#tail.length >= tailPartsMax) this.#joinTail()
        const before = this.#written
        for (const piece of this.#takePieces()) await this.#write(handle, piece, change)
        unsynced += this.#written - before
        if (unsynced < syncBytes) continue
        unsynced = 0
        await sync()
        isRoomDue = true
      }
    } catch (error) {
      throw toStorageFault(error)
    } finally {
      this.#joinTail()
      await sync().finally(() => handle.close())
    }
  }

  /**
   * Opens the bytes for writing. Once they were made a blob, this is another name of the same file, which stays as it
   * is, be the blob in use or not: a copy takes its place here.
   */
  async #openBytes(): Promise<FileHandle> {
    try {
      const { nlink, size } = await stat(this.path)
      if (nlink > 1) {
        await this.#options.useRoom((needRoom) => {
          needRoom(size)
          return this.#copyBytes()
        })
      }
      return await open(this.path, 'r+')
    } catch (error) {
      throw toStorageFault(error)
    }
  }

  async #copyBytes(): Promise<void> {
    const draft = `${this.path}.draft`
    await copyFile(this.path, draft)
    await syncPath(draft, 'r+')
    await rename(draft, this.path)
  }

  #joinTail(): void {
    this.#tail = [Buffer.concat(this.#tail)]
  }

  /** Takes whole pieces off the bytes that wait; the last piece stays. */
  *#takePieces(): Generator<Buffer> {
    const { pieceBytes } = this.#options
    if (this.#tailBytes < pieceBytes) return
    let waiting = Buffer.concat(this.#tail)
    while (waiting.length >= pieceBytes && this.#written + pieceBytes < this.#kept.length) {
      const piece = waiting.subarray(0, pieceBytes)
      waiting = waiting.subarray(pieceBytes)
      this.#tail = [waiting]
      this.#tailBytes = waiting.length
      yield piece
    }
    // A copy, so that a short rest does not hold all that it came with.
    this.#tail = [Buffer.from(waiting)]
  }

  /** Where a piece cannot be written, those behind it come again, too. */
  async #write(handle: FileHandle, piece: Buffer, change: ChangePiece): Promise<void> {
    try {
      await this.#writeAt(handle, piece, { change, isLast: false })
      this.#written += piece.length
    } catch (error) {
      this.dropTail()
      throw error
    }
  }

  /** Returns the place behind the piece. */
  async #writeAt(
    handle: FileHandle,
    piece: Buffer,
    { change, isLast }: { readonly change: ChangePiece; readonly isLast: boolean },
  ): Promise<number> {
    const { pieceBytes } = this.#options
    const { overhead } = this.#kept
    const number = this.#written / pieceBytes
    const bytes = change(piece, { number, isLast })
    const at = number * (pieceBytes + overhead)
    if (overhead > 0) await refuseOther(handle, bytes, at)
    await writeAll(handle, bytes, at)
    return at + bytes.length
  }
}

/**
 * Refuses a piece that was written with other bytes before, be it in part. Bytes that a loss of power took away are
 * zeros.
 */
async function refuseOther(handle: FileHandle, bytes: Buffer, at: number): Promise<void> {
  const { buffer: before, bytesRead } = await handle.read({
    buffer: Buffer.alloc(bytes.length),
    position: at,
  })
  let end = bytesRead
  while (end > 0 && before[end - 1] === 0) end -= 1
  if (!before.subarray(0, end).equals(bytes.subarray(0, end))) throw new OtherBytes()
}

/** A disk that is almost full takes a part, and tells the error with the rest. */
async function writeAll(handle: FileHandle, bytes: Buffer, at: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await handle.write(bytes, done, bytes.length - done, at + done)
    done += bytesWritten
  }
}

function readState(folder: string): Kept | undefined {
  try {
    const kept: unknown = JSON.parse(readFileSync(join(folder, stateName), 'utf8'))
    return isRecord(kept) && isState(kept) ? kept : undefined
  } catch {
    return undefined
  }
}

/** A disk may have damaged what was kept. */
function isState(kept: Readonly<Record<string, unknown>>): kept is Kept {
  const numbers = [kept.length, kept.overhead, kept.durable, kept.touchedAtMs]
  const isEnd = kept.result === null || typeof kept.result === 'string'
  return numbers.every(Number.isFinite) && typeof kept.info === 'string' && isEnd
}
