import { createHash } from 'node:crypto'
import { setImmediate as awaitRound } from 'node:timers/promises'
import { limits } from '@tollbase/contract/limits'
import { requirePresent } from '../../base/assert.ts'
import { awaitTurn } from '../../base/await-turn.ts'
import { ConcurrencyLimit } from '../../base/concurrency-limit.ts'
import type { NeedRoom, UseRoom } from '../../base/disk-room.ts'
import { Fault } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import { Mutex } from '../../base/mutex.ts'
import { hasPlace, type PlaceBounds } from '../../base/shared-room.ts'
import type { World } from '../../base/world.ts'
import type { BlobStore } from '../../blobs/blob-store.ts'
import { type ChangePiece, type PartialFile, PartialFiles } from '../../blobs/partial-files.ts'
import { isEncrypted } from '../../model/encrypted-collections.ts'
import type { Collection } from '../../model/readable.ts'
import {
  type FileSealing,
  openSegments,
  sealSegment,
  segmentBytes,
  segmentOverhead,
} from '../../sealing/segments.ts'
import type { Tenant } from '../applications/tenants.ts'
import { type EndedBounds, EndedUploads } from './ended-uploads.ts'
import type { ReceivedBlob } from './sealed-blobs.ts'

/** Names and metadata of an upload, as its client said them at the beginning. */
export type UploadDetails = {
  readonly contentType: string
  readonly filename: string | undefined
  readonly metadata: string | undefined
}

export type UploadTarget = { readonly tenant: Tenant; readonly collection: string }

/** The form in which an upload began. */
type Begun = {
  readonly application: number
  readonly collection: string
  /** The collection whose keys seal it; null where it is not sealed. */
  readonly sealedBy: string | null
}

/** The facts that are kept of an upload beside its bytes; details of an encrypted collection are an envelope. */
type Info = Begun & { readonly details: string }

export type OpenedUpload = {
  readonly file: PartialFile
  readonly sealing: FileSealing | undefined
  readonly details: UploadDetails
}

type Turn = { readonly mutex: Mutex; abort: (() => void) | undefined }

/** A part is for applications that have none open: one that begins costs nothing, and stays open for a day. */
const placesOfUploads: PlaceBounds = {
  max: limits.openUploadsMax,
  ofHolderMax: limits.openUploadsOfApplicationMax,
  forNew: limits.openUploadsMax / 4,
}

const idPattern = /^upload_[0-9a-f]{32}$/

/**
 * Uploads that come in several requests. They outlive restarts, and are given up when nothing comes for a day
 * (`limits.openUploadMs`).
 */
export class ResumableUploads {
  readonly #world: World
  readonly #files: PartialFiles
  readonly #needRoom: NeedRoom
  readonly #turns = new Map<string, Turn>()
  readonly #creating = new Mutex()
  /** Beginnings that wait for their turn; those that are refused there are no open uploads. */
  readonly #waiting: ConcurrencyLimit
  readonly #places: PlaceBounds
  /** Those that have not ended: their details are long, and are not read where they are counted. */
  readonly #open = new Map<PartialFile, Begun>()
  readonly #ended: EndedUploads

  constructor(options: {
    readonly root: string
    readonly world: World
    readonly needRoom: NeedRoom
    readonly useRoom: UseRoom
    /** Bounds on uploads that are open, by application; those of the contract when not given. */
    readonly places?: PlaceBounds
    /** Bounds on uploads that have ended; the same. */
    readonly ended?: EndedBounds
  }) {
    const { root, world, needRoom, useRoom, places = placesOfUploads } = options
    this.#places = places
    this.#waiting = new ConcurrencyLimit(places)
    this.#world = world
    this.#needRoom = needRoom
    const now = () => world.now()
    this.#files = new PartialFiles({ root, pieceBytes: segmentBytes, now, useRoom })
    this.#ended = new EndedUploads(options.ended)
    const files = this.#files.list()
    for (const file of files.sort((a, b) => a.facts.touchedAtMs - b.facts.touchedAtMs)) {
      const begun = findBegun(file)
      if (begun === undefined) continue
      if (file.facts.result === null) this.#open.set(file, begun)
      else this.#ended.add(file.id, begun.application)
    }
  }

  /** CONFLICT where an application may have no further upload open now. */
  refuseWithoutPlace({ application: { number } }: Tenant): void {
    const open = this.#listOpen()
    const own = open.filter(([, one]) => one.application === number)
    if (!hasPlace(this.#places, { total: open.length, own: own.length }))
      throw new Fault('CONFLICT', {
        message: 'Too many uploads are open; finish or cancel some of them',
        details: { limit: this.#places.ofHolderMax },
      })
  }

  /**
   * Begins an upload; CONFLICT where too many are open, or its collection changes its encryption meanwhile.
   * `refuseOverQuota` throws where its length, beside what is open already, does not fit; it waits for nothing, as uploads
   * of all applications begin one after the other. It is asked before anything is waited for, and in that turn.
   */
  async create(
    { tenant, collection }: UploadTarget,
    upload: {
      readonly length: number
      readonly details: UploadDetails
      readonly refuseOverQuota: (openBytes: number) => void
    },
  ): Promise<PartialFile> {
    const { number: application } = tenant.application
    const id = `upload_${this.#world.randomBytes(16).toString('hex')}`
    const known = tenant.data.catalog.byName.get(collection)
    const sealer = known !== undefined && isEncrypted(known) ? known : undefined
    const begun: Begun = { application, collection, sealedBy: sealer?.id ?? null }
    const { details } = upload
    const judge = () => {
      this.refuseWithoutPlace(tenant)
      const open = this.#listOpen()
      this.#needRoom(sumMissing(open.map(([one]) => one)) + upload.length)
      const own = open.filter(([, one]) => one.application === application)
      upload.refuseOverQuota(own.reduce((sum, [{ facts }]) => sum + facts.length, 0))
    }
    judge()
    const sealed = sealer && (await sealDetails(tenant, { id, collection: sealer, details }))
    const leave = this.#waiting.occupy(String(application))
    const begin = async () => {
      // Many may have waited for one that was written: they are not all judged in one turn of the event loop.
      await awaitRound()
      judge()
      const info: Info = { ...begun, details: sealed ?? JSON.stringify(details) }
      const file = await this.#files.create(id, {
        length: upload.length,
        overhead: sealer === undefined ? 0 : segmentOverhead,
        info: JSON.stringify(info),
      })
      this.#open.set(file, begun)
      return file
    }
    const file = await this.#creating.run(begin).finally(leave)
    // A change of encryption before this has not found it among those that are open.
    await this.#requireAsBegun(tenant, file, begun)
    return file
  }

  /** Finds the upload; 404 where this collection has none of this id, or it is past its time. */
  require({ tenant, collection }: UploadTarget, id: string): PartialFile {
    const file = idPattern.test(id) ? this.#files.find(id) : undefined
    if (file !== undefined && !this.#isPast(file)) {
      const begun = findBegun(file)
      if (begun?.application === tenant.application.number && begun.collection === collection)
        return file
    }
    throw new Fault('UPLOAD_NOT_FOUND', { message: `There is no upload ${id} to ${collection}` })
  }

  /**
   * Runs the work on an upload, one at a time. A request that comes later ends the one that still waits for bytes: its
   * client has most likely lost that connection.
   */
  run<T>(id: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const turn = this.#turns.get(id) ?? { mutex: new Mutex(), abort: undefined }
    this.#turns.set(id, turn)
    turn.abort?.()
    return turn.mutex.run(async () => {
      const leaving = new AbortController()
      turn.abort = () => leaving.abort()
      try {
        return await work(leaving.signal)
      } finally {
        turn.abort = undefined
      }
    })
  }

  /**
   * Opens the names and the key of an upload. One whose collection is encrypted by now, or is so no more, or is another
   * one, cannot go on: its bytes are removed, and 409 says so.
   */
  async open({ tenant }: UploadTarget, file: PartialFile): Promise<OpenedUpload> {
    const { details, ...begun } = parseInfo(file)
    await this.#requireAsBegun(tenant, file, begun)
    const known = begun.sealedBy === null ? undefined : tenant.data.catalog.byId.get(begun.sealedBy)
    if (known?.kind !== 'collection')
      return { file, sealing: undefined, details: JSON.parse(details) }
    const stored = { key: file.id, body: details }
    const sealing = await tenant.sealer.openFileSealing(known, stored)
    const [opened = stored] = await tenant.sealer.open(known, [stored])
    return { file, sealing, details: JSON.parse(opened.body) }
  }

  /** Makes the whole bytes of an upload a blob that has arrived; they stay until the upload is removed. */
  async take(store: BlobStore, { file, sealing }: OpenedUpload): Promise<ReceivedBlob> {
    await file.complete(makeChange(sealing))
    const size = file.facts.length
    const adopted = await store.adopt(file.path)
    try {
      const contentSha256 =
        sealing === undefined ? adopted.sha256 : await hashContent(file, sealing)
      return { file: adopted, size, contentSha256 }
    } catch (error) {
      await adopted.discard()
      throw error
    }
  }

  /** Keeps an upload whose bytes are all there until somebody pays for it. */
  async keepWhole({ file, sealing }: OpenedUpload): Promise<void> {
    await file.complete(makeChange(sealing))
    await file.keep({ isWhole: true, touchedAtMs: this.#world.now() })
  }

  /**
   * Notes what an upload has become, which is remembered for a day, or until others of its application have ended, and
   * removes its bytes. Names, metadata and the key of the bytes are in the row from now on, and go when it is erased.
   */
  async keepResult(file: PartialFile, result: string): Promise<void> {
    const info: Info = { ...parseInfo(file), details: '' }
    // Its blob is stored, also where the disk refuses the note.
    this.#open.delete(file)
    const touchedAtMs = this.#world.now()
    await file.keep({ isWhole: true, result, info: JSON.stringify(info), touchedAtMs })
    await file.removeBytes()
    this.#ended.add(file.id, info.application)
    await this.#dropExcess()
  }

  /** Gives an upload up, with its bytes. */
  remove(file: PartialFile): Promise<void> {
    this.#turns.delete(file.id)
    this.#open.delete(file)
    this.#ended.delete(file.id)
    return this.#files.remove(file)
  }

  async #dropExcess(): Promise<void> {
    for (let id = this.#ended.findExcess(); id !== undefined; id = this.#ended.findExcess()) {
      this.#ended.delete(id)
      const file = this.#files.find(id)
      if (file !== undefined) await this.remove(file)
    }
  }

  /** Removes uploads that are past their time; says how many. */
  async sweep(): Promise<number> {
    // An earlier program had no bound on these.
    await this.#dropExcess()
    const past = this.#files.list().filter((file) => this.#isPast(file))
    for (const file of past)
      await this.run(file.id, async () => {
        // A request may have come just before.
        if (this.#isPast(file)) await this.remove(file)
      })
    return past.length
  }

  /** Lists the numbers of the applications that have open uploads; at most as many as `limits.openUploadsMax`. */
  listApplications(): ReadonlySet<number> {
    return new Set(this.#listOpen().map(([, { application }]) => application))
  }

  /** Removes an application's uploads that cannot go on, as the encryption of their collections has changed. */
  async removeChanged(tenant: Tenant): Promise<void> {
    const { number } = tenant.application
    // One that was removed meanwhile has no turn any more.
    for (const [file, begun] of this.#listOpen())
      if (begun.application === number && !isAsBegun(tenant, begun) && this.#open.has(file))
        await this.run(file.id, async () => {
          // One that has ended meanwhile keeps its note.
          if (this.#open.has(file)) await this.remove(file)
        })
  }

  async #requireAsBegun(tenant: Tenant, file: PartialFile, begun: Begun): Promise<void> {
    if (isAsBegun(tenant, begun)) return
    await this.remove(file)
    throw new Fault('CONFLICT', {
      message: `The encryption of ${begun.collection} has changed since this upload began; begin it anew`,
    })
  }

  #listOpen(): (readonly [PartialFile, Begun])[] {
    return [...this.#open].filter(([file]) => !this.#isPast(file))
  }

  #isPast({ facts }: PartialFile): boolean {
    return this.#world.now() > facts.touchedAtMs + limits.openUploadMs
  }
}

/** Says whether a collection has the form that it had when an upload to it began. */
function isAsBegun({ data: { catalog } }: Tenant, { collection, sealedBy }: Begun): boolean {
  const known = catalog.byName.get(collection)
  if (sealedBy === null)
    return known === undefined ? !catalog.encryption.private_app : !isEncrypted(known)
  return known?.id === sealedBy && isEncrypted(known)
}

/** Seals pieces where there is a key. */
export function makeChange(sealing: FileSealing | undefined): ChangePiece {
  return (piece, at) => (sealing === undefined ? piece : sealSegment(piece, sealing, at))
}

/** The envelope of an upload's details has the key of its bytes, as that of a blob's row has. */
async function sealDetails(
  { sealer }: Tenant,
  {
    id,
    collection: { id: collectionId, collection_type },
    details,
  }: { readonly id: string; readonly collection: Collection; readonly details: UploadDetails },
): Promise<string> {
  const collection = { id: collectionId, collection_type }
  await sealer.prepare(collection)
  // Many may have waited for the same keys.
  await awaitTurn()
  const { key: fileKey } = sealer.makeFileSealing()
  const record = { key: id, deleted: false, body: JSON.stringify(details), fileKey }
  const [sealed] = await sealer.seal(collection, [record])
  return requirePresent(sealed, 'the sealed details').body
}

async function hashContent(file: PartialFile, sealing: FileSealing): Promise<string> {
  const size = file.facts.length
  const hash = createHash('sha256')
  const span = { size, start: 0, end: size - 1 }
  for await (const piece of openSegments(file.read(), sealing, span)) hash.update(piece)
  return hash.digest('hex')
}

function sumMissing(files: readonly PartialFile[]): number {
  return files.reduce((sum, { facts, offset }) => sum + facts.length - offset, 0)
}

/** Finds how an upload began; undefined where its text on the disk is damaged: then nobody finds it, and its day passes. */
function findBegun(file: PartialFile): Begun | undefined {
  try {
    const { details: _, ...begun } = parseInfo(file)
    return begun
  } catch {
    return undefined
  }
}

function parseInfo({ facts }: PartialFile): Info {
  const value: unknown = JSON.parse(facts.info)
  const info = requirePresent(isRecord(value) ? value : undefined, 'the info of an upload')
  return {
    application: Number(info.application),
    collection: String(info.collection),
    sealedBy: typeof info.sealedBy === 'string' ? info.sealedBy : null,
    details: String(info.details),
  }
}
