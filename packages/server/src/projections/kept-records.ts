import { limits } from '@tollbase/contract/limits'

/** A key or an authorization: it dies when it is revoked, and at its end. Times are RFC 3339. */
type Mortal = {
  readonly app_id: string
  readonly revoked_at: string | null
  readonly expires_at: string | null
}

type Kept<R> = {
  readonly id: string
  readonly record: R
  /** Bytes of memory that it stands for. */
  readonly bytes: number
  /** The leaf of its first entry, by which lists are sorted. */
  readonly place: number
  readonly endMs: number
}

type OfApplication = {
  readonly ids: Set<string>
  /** Those that are known to be dead. The others count as live, also for a while after their end. */
  readonly dead: Set<string>
  liveBytes: number
  deadBytes: number
  /** No record that counts as live ends before it. */
  nextEndMs: number
  /** Live bytes from which ends are looked for; it grows with what stays, so that a look is rare. */
  lookAt: number
  hasForgotten: boolean
}

type KeptRecordsOptions<R> = {
  readonly now: () => number
  /** Called with a dead record that leaves the memory. */
  readonly onForgotten: (record: R) => void
  /** Bytes of all applications beyond which no dead record stays. */
  readonly bytesMax?: number
}

const { deadKeysBytesMax } = limits
/** A look at the ends of 250,000 records takes some hundred milliseconds. */
const lookEveryMs = 10_000
/** A record takes some 400 bytes beside its texts, and these some bytes each beside their characters. */
const [recordBytes, bytesPerChar] = [512, 1.5]

/**
 * The records of keys, or of authorizations, that are in memory: all live ones, and of each application those of the dead
 * that died last, of so many bytes together. Dead ones can be made without end, and all of them stay in their table.
 */
export class KeptRecords<R extends Mortal> {
  readonly #byId = new Map<string, Kept<R>>()
  readonly #byApp = new Map<string, OfApplication>()
  /** Dead before their entry is committed, so that no request slips in between; each with the number of its kills. */
  readonly #dying = new Map<string, number>()
  readonly #options: KeptRecordsOptions<R>
  readonly #bytesMax: number
  /** Bytes of all applications, live and dead. */
  #bytes = 0
  /** Time of the last look at what has ended of all applications. */
  #lookedAtMs = Number.NEGATIVE_INFINITY

  constructor(options: KeptRecordsOptions<R>) {
    this.#options = options
    this.#bytesMax = options.bytesMax ?? Number.POSITIVE_INFINITY
  }

  get(id: string): R | undefined {
    return this.#byId.get(id)?.record
  }

  listByApp(appId: string): Kept<R>[] {
    const ids = this.#byApp.get(appId)?.ids ?? []
    return [...ids].flatMap((id) => this.#byId.get(id) ?? [])
  }

  /** Returns true where dead records of the application are in their table alone. */
  hasForgotten(appId: string): boolean {
    return this.#byApp.get(appId)?.hasForgotten ?? false
  }

  /** `ownKills` are the kills that do not count: those of the caller itself. */
  isAlive(id: string, record: R, { nowMs, ownKills = 0 }: AliveOptions): boolean {
    return (this.#dying.get(id) ?? 0) <= ownKills && computeEnd(record) > nowMs
  }

  /** The record is dead from this moment; the returned function takes that back, once, if its entry was not committed. */
  kill(id: string): () => void {
    this.#dying.set(id, (this.#dying.get(id) ?? 0) + 1)
    let isKilled = true
    return () => {
      if (!isKilled) return
      isKilled = false
      const others = (this.#dying.get(id) ?? 0) - 1
      if (others > 0) this.#dying.set(id, others)
      else this.#dying.delete(id)
    }
  }

  set(id: string, record: R, { chars, place }: { readonly chars: number; readonly place: number }) {
    const of = this.#byApp.get(record.app_id) ?? makeOfApplication()
    this.#byApp.set(record.app_id, of)
    const before = this.#byId.get(id)
    if (before !== undefined) this.#addBytes(of, before, -1)
    const bytes = recordBytes + bytesPerChar * chars
    const endMs = computeEnd(record)
    const kept = { id, record, bytes, place: before?.place ?? place, endMs }
    this.#byId.set(id, kept)
    of.ids.add(id)
    if (endMs <= this.#options.now()) of.dead.add(id)
    else {
      of.dead.delete(id)
      of.nextEndMs = Math.min(of.nextEndMs, endMs)
    }
    this.#addBytes(of, kept, 1)
    if (of.liveBytes > of.lookAt) this.#noteEnded(of)
    this.#forgetDead(of, this.#bytes > this.#bytesMax ? 0 : deadKeysBytesMax)
  }

  /**
   * Finds what has no room for one more record of an application: the application itself, whose live ones have so many
   * bytes, or all of them together. It may have no more than stays free, so that a few never take everything.
   */
  findFull(appId: string, bytesMax: number): 'application' | 'all' | undefined {
    const of = this.#byApp.get(appId) ?? makeOfApplication()
    if (of.liveBytes >= bytesMax) this.#noteEnded(of)
    if (of.liveBytes >= bytesMax) return 'application'
    if (this.#leavesRoom(of)) return undefined
    // Whoever has ended some of its own, as the refusal says, needs no look at all others.
    this.#forgetEnded(of)
    if (this.#leavesRoom(of)) return undefined
    const nowMs = this.#options.now()
    // The clock may have been set back.
    if (Math.abs(nowMs - this.#lookedAtMs) < lookEveryMs) return 'all'
    this.#lookedAtMs = nowMs
    for (const one of this.#byApp.values()) this.#forgetEnded(one)
    return this.#leavesRoom(of) ? undefined : 'all'
  }

  #forgetEnded(of: OfApplication): void {
    this.#noteEnded(of)
    this.#forgetDead(of, 0)
  }

  #leavesRoom({ liveBytes }: OfApplication): boolean {
    return liveBytes <= this.#bytesMax - this.#bytes
  }

  #addBytes(of: OfApplication, { id, bytes }: Kept<R>, sign: 1 | -1): void {
    this.#bytes += sign * bytes
    if (of.dead.has(id)) of.deadBytes += sign * bytes
    else of.liveBytes += sign * bytes
  }

  /** Notes which records have ended; it looks at all that count as live, but only after the end of one. */
  #noteEnded(of: OfApplication): void {
    const nowMs = this.#options.now()
    if (of.nextEndMs > nowMs) return
    of.nextEndMs = Number.POSITIVE_INFINITY
    for (const id of of.ids) {
      const kept = this.#byId.get(id)
      if (kept === undefined || of.dead.has(id)) continue
      if (kept.endMs > nowMs) {
        of.nextEndMs = Math.min(of.nextEndMs, kept.endMs)
        continue
      }
      this.#addBytes(of, kept, -1)
      of.dead.add(id)
      this.#addBytes(of, kept, 1)
    }
    of.lookAt = of.liveBytes + Math.max(deadKeysBytesMax, of.liveBytes / 2)
  }

  /** Once the dead have twice these bytes, those that died first leave the memory. */
  #forgetDead(of: OfApplication, bytesMax: number): void {
    if (of.deadBytes <= 2 * bytesMax) return
    const dead = [...of.dead]
      .flatMap((id) => this.#byId.get(id) ?? [])
      .map((kept) => ({ kept, diedMs: computeDeath(kept.record) }))
      .sort((one, other) => other.diedMs - one.diedMs)
    let bytes = 0
    for (const { kept } of dead) {
      bytes += kept.bytes
      if (bytes <= bytesMax) continue
      this.#addBytes(of, kept, -1)
      of.dead.delete(kept.id)
      of.ids.delete(kept.id)
      this.#byId.delete(kept.id)
      this.#dying.delete(kept.id)
      of.hasForgotten = true
      this.#options.onForgotten(kept.record)
    }
  }
}

type AliveOptions = { readonly nowMs: number; readonly ownKills?: number }

function makeOfApplication(): OfApplication {
  return {
    ids: new Set(),
    dead: new Set(),
    liveBytes: 0,
    deadBytes: 0,
    nextEndMs: Number.POSITIVE_INFINITY,
    lookAt: deadKeysBytesMax,
    hasForgotten: false,
  }
}

/** Computes the time from which a record is dead: 0 where it is revoked, or its end cannot be read. */
function computeEnd({ revoked_at: revokedAt, expires_at: end }: Mortal): number {
  if (revokedAt !== null) return 0
  return end === null ? Number.POSITIVE_INFINITY : Date.parse(end) || 0
}

function computeDeath({ revoked_at: revokedAt, expires_at: end }: Mortal): number {
  // An end that cannot be read has always been over.
  return Date.parse(revokedAt ?? end ?? '') || 0
}
