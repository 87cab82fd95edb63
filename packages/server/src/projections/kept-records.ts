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
}

type OfApplication = {
  readonly ids: Set<string>
  bytes: number
  /** Bytes from which dead records are looked for; it grows with what stays, so that a look is rare. */
  lookAt: number
  hasForgotten: boolean
}

type KeptRecordsOptions<R> = {
  readonly now: () => number
  /** Called with a dead record that leaves the memory. */
  readonly onForgotten: (record: R) => void
}

const { deadKeysBytesMax } = limits
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

  constructor(options: KeptRecordsOptions<R>) {
    this.#options = options
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
    return (this.#dying.get(id) ?? 0) <= ownKills && hasNotEnded(record, nowMs)
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
    const before = this.#byId.get(id)
    const bytes = recordBytes + bytesPerChar * chars
    this.#byId.set(id, { id, record, bytes, place: before?.place ?? place })
    const of = this.#byApp.get(record.app_id) ?? makeOfApplication()
    this.#byApp.set(record.app_id, of)
    of.ids.add(id)
    of.bytes += bytes - (before?.bytes ?? 0)
    if (of.bytes > of.lookAt) this.#forgetDead(record.app_id, of)
  }

  #forgetDead(appId: string, of: OfApplication): void {
    const nowMs = this.#options.now()
    const dead = this.listByApp(appId)
      .filter(({ record }) => !hasNotEnded(record, nowMs))
      .map((kept) => ({ kept, diedMs: computeDeath(kept.record) }))
      .sort((one, other) => other.diedMs - one.diedMs)
    let bytes = 0
    for (const { kept } of dead) {
      bytes += kept.bytes
      if (bytes <= deadKeysBytesMax) continue
      this.#byId.delete(kept.id)
      this.#dying.delete(kept.id)
      of.ids.delete(kept.id)
      of.bytes -= kept.bytes
      of.hasForgotten = true
      this.#options.onForgotten(kept.record)
    }
    of.lookAt = of.bytes + Math.max(deadKeysBytesMax, of.bytes / 2)
  }
}

type AliveOptions = { readonly nowMs: number; readonly ownKills?: number }

function makeOfApplication(): OfApplication {
  return { ids: new Set(), bytes: 0, lookAt: 2 * deadKeysBytesMax, hasForgotten: false }
}

function hasNotEnded({ revoked_at: revokedAt, expires_at: end }: Mortal, nowMs: number): boolean {
  return revokedAt === null && (end === null || Date.parse(end) > nowMs)
}

function computeDeath({ revoked_at: revokedAt, expires_at: end }: Mortal): number {
  // An end that cannot be read has always been over.
  return Date.parse(revokedAt ?? end ?? '') || 0
}
