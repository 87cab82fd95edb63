import { Fault } from '../base/fault.ts'
import { isHolderGone } from '../base/lease-holder.ts'
import type { Log } from '../base/log.ts'
import type { World } from '../base/world.ts'
import type { Database } from '../database/database.ts'
import { sql } from '../database/sql.ts'

/** Time for which a lease holds if it is not renewed. */
export const leaseTtlMsDefault = 10_000

export type LeaseOptions = {
  readonly database: Database
  /** The chain's schema. */
  readonly chain: string
  /** Names this process among all that share the database. */
  readonly holder: string
  readonly world: World
  readonly log: Log
  /** Time that a lease outlives its last renewal. */
  readonly ttlMs: number
}

/** The committed size of a chain. */
export type ChainSize = {
  readonly height: number
  /** Bytes of the bodies of all blocks. */
  readonly bytes: number
}

const retryMs = 200

/**
 * Takes the lease. Waits for another holder's lease to expire, at most its time to live, unless that holder is
 * known to be dead; then UNAVAILABLE names it. A block is written under the epoch of its holder, so an earlier one writes
 * nothing more from the moment that this returns, whatever its clock says (`insertBlock`).
 */
export async function acquireLease(options: LeaseOptions): Promise<Lease> {
  const { world, ttlMs } = options
  const deadline = world.now() + ttlMs + retryMs
  for (let dead = ''; ; ) {
    const lease = await take(options, dead)
    if (lease !== undefined) return lease
    if (world.now() >= deadline) throw await heldByAnother(options)
    const holder = await readHolder(options)
    dead = isHolderGone(holder) ? holder : ''
    if (dead === '') await world.sleep(retryMs)
  }
}

export class Lease {
  /** Rises with each acquisition of the chain. */
  readonly epoch: number
  /** The size that the chain had, at least, when the lease was last renewed. */
  readonly sizeBefore: ChainSize
  readonly #options: LeaseOptions
  #size: () => ChainSize
  #expiresAt: number
  #stopRenewing: () => void = () => undefined

  constructor(
    options: LeaseOptions,
    taken: { readonly epoch: number; readonly expiresAt: number; readonly size: ChainSize },
  ) {
    this.#options = options
    this.epoch = taken.epoch
    this.sizeBefore = taken.size
    this.#size = () => taken.size
    this.#expiresAt = taken.expiresAt
  }

  /**
   * Renews in the background until `release`, and notes the chain's size each time; calls back once where another
   * holder took it.
   */
  keep({ onLost, size }: { onLost: (error: Fault) => void; size: () => ChainSize }): void {
    this.#size = size
    const renew = async () => {
      try {
        await this.#renew()
      } catch (error) {
        if (error instanceof Fault) {
          this.#stopRenewing()
          onLost(error)
        } else {
          this.#options.log.warn(
            { error: String(error), chain: this.#options.chain },
            'a chain lease was not renewed',
          )
        }
      }
    }
    this.#stopRenewing = this.#options.world.every(this.#options.ttlMs / 3, () => void renew())
  }

  /** Throws where the chain is not surely ours any more: nothing may be produced then. */
  async ensure(): Promise<void> {
    if (!this.isSure()) await this.#renew()
  }

  /** Throws where another holder has taken the chain, whatever the clocks say. */
  confirm(): Promise<void> {
    return this.#renew()
  }

  /**
   * True where no other holder can have taken the chain, even by a clock that is ahead of ours by a third of the
   * time to live.
   */
  isSure(): boolean {
    const { world, ttlMs } = this.#options
    return this.#expiresAt - world.now() >= ttlMs / 3
  }

  /** Lets the next holder in at once. */
  async release(): Promise<void> {
    this.#stopRenewing()
    const { database, chain, holder } = this.#options
    const { height, bytes } = this.#size()
    await database.execute(
      sql`UPDATE operations.chain_lease
        SET expires_at_ms = 0, height = ${height}, body_bytes = ${bytes}
        WHERE chain = ${chain} AND holder = ${holder} AND epoch = ${this.epoch}`,
    )
  }

  async #renew(): Promise<void> {
    const { database, chain, holder, world, ttlMs } = this.#options
    const expiresAt = world.now() + ttlMs
    const { height, bytes } = this.#size()
    const changed = await database.execute(
      sql`UPDATE operations.chain_lease
        SET expires_at_ms = ${expiresAt}, height = ${height}, body_bytes = ${bytes}
        WHERE chain = ${chain} AND holder = ${holder} AND epoch = ${this.epoch}`,
    )
    if (changed !== 1) throw await heldByAnother(this.#options)
    this.#expiresAt = expiresAt
  }
}

/** Tries once to take the lease; `over` is a holder that is known to be dead. */
async function take(options: LeaseOptions, over: string): Promise<Lease | undefined> {
  const { database, chain, holder, world, ttlMs } = options
  const now = world.now()
  const [row] = await database.query<{ epoch: bigint; height: bigint; body_bytes: bigint }>(
    sql`INSERT INTO operations.chain_lease AS lease (chain, holder, epoch, expires_at_ms)
      VALUES (${chain}, ${holder}, 1, ${now + ttlMs})
      ON CONFLICT (chain) DO UPDATE
        SET holder = excluded.holder, epoch = lease.epoch + 1, expires_at_ms = excluded.expires_at_ms
        WHERE lease.holder IN (excluded.holder, ${over}) OR lease.expires_at_ms <= ${now}
      RETURNING epoch, height, body_bytes`,
  )
  if (row === undefined) return undefined
  const size = { height: Number(row.height), bytes: Number(row.body_bytes) }
  return new Lease(options, { epoch: Number(row.epoch), expiresAt: now + ttlMs, size })
}

async function heldByAnother(options: LeaseOptions): Promise<Fault> {
  const { chain, ttlMs } = options
  const holder = await readHolder(options)
  return new Fault('UNAVAILABLE', {
    message: `The chain ${chain} is held by ${holder}.`,
    details: { chain, holder },
    retryAfterSeconds: Math.ceil(ttlMs / 1000),
  })
}

async function readHolder({ database, chain }: LeaseOptions): Promise<string> {
  const [row] = await database.query<{ holder: string }>(
    sql`SELECT holder FROM operations.chain_lease WHERE chain = ${chain}`,
  )
  return row?.holder ?? 'nobody'
}
