import { Fault } from '../../packages/server/src/base/fault.ts'
import type { Chain } from '../../packages/server/src/chain/chain.ts'
import type { Appended } from '../../packages/server/src/chain/committer.ts'
import { openChain } from '../../packages/server/src/chain/open-chain.ts'
import { makeSigner } from '../../packages/server/src/chain/signing.ts'
import type { Database } from '../../packages/server/src/database/database.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import type { Chance } from './chance.ts'
import { calm, type FaultProfile, Life, Turns } from './life.ts'
import { Scheduler } from './scheduler.ts'
import { signingKey } from './shop.ts'
import { logSchema, summarize } from './summary.ts'

export const logOrigin = 'simulated/log'
export const logSigner = makeSigner(signingKey, logOrigin)

/** One call of append and its outcome, as its writer knows it. */
export type Written = {
  readonly bodies: readonly string[]
  readonly calledAt: number
  /** The time of the acknowledgement, counted in acknowledgements and calls. */
  readonly acknowledgedAt: number
  readonly place: Appended
}

const startMs = Date.UTC(2026, 0, 1)
const leaseTtlMs = 3_000
const patienceMs = 30_000

type Open = { readonly life: Life; readonly chain: Chain }

/** A chain whose producer dies, is paused, loses its connections, and is replaced while it may still be there. */
export class Log {
  readonly scheduler = new Scheduler(startMs)
  readonly chance: Chance
  readonly faultProfile: FaultProfile
  readonly database: Database
  readonly problems: string[] = []
  readonly written: Written[] = []
  /** Trees that the service vouched for. */
  readonly heads: { readonly size: number; readonly root: string }[] = []
  readonly #turns = new Turns()
  #order = 0
  #lives: Life[] = []
  #open: Open[] = []
  #started = 0

  constructor(parts: { database: Database; chance: Chance }) {
    this.database = parts.database
    this.chance = parts.chance
    const rough = (what: string, most: number) =>
      this.chance.happens(`weather ${what}`, 700)
        ? this.chance.between(`weather ${what}`, 1, most)
        : 0
    this.faultProfile = {
      crash: rough('crash', 20),
      lost: rough('lost', 40),
      slow: rough('slow', 100),
      pause: rough('pause', 20),
      outside: 0,
      weakSpot: this.chance.pick('weather sore', [
        'INSERT app_1.block',
        'INSERT app_1.block',
        'COMMIT',
      ]),
    }
  }

  start(): void {
    this.#started += 1
    const { scheduler, chance } = this
    const life = new Life(`p${this.#started}`, {
      scheduler,
      chance,
      faultProfile: this.faultProfile,
      turns: this.#turns,
      onPause: () => {
        if (chance.happens('another is started', 700)) scheduler.after(1_000, () => this.start())
      },
      onDeath: (dead) => this.#died(dead),
    })
    this.#lives.push(life)
    const { world } = life
    openChain({
      database: life.database(this.database),
      schema: logSchema,
      origin: logOrigin,
      signer: logSigner,
      world,
      holder: life.name,
      applier: summarize,
      leaseTtlMs,
    }).then(
      (chain) => {
        if (!life.alive) return
        scheduler.note(`${life.name} is open at ${chain.head().height}`)
        this.#open.push({ life, chain })
        world.every(1_000, () => {
          if (chain.failure === undefined) return
          if (!isExpected(chain.failure))
            this.wrong(`the chain stopped: ${describeError(chain.failure)}`)
          life.die(`its chain stopped: ${chain.failure.message}`)
        })
      },
      (error: unknown) => life.die(`it did not open: ${String(error)}`),
    )
  }

  calmDown(): void {
    this.scheduler.note('all is calm')
    Object.assign(this.faultProfile, calm)
  }

  /** Ends paused processes: the run waits for none. */
  end(): void {
    for (const life of this.#lives) life.die('the run is over')
  }

  wrong(problem: string): void {
    this.scheduler.note(`WRONG ${problem}`)
    this.problems.push(problem)
  }

  /** Picks the process for new requests, or now and then one that should not be there any more. */
  #target(who: string): Open | undefined {
    const alive = this.#open.filter(({ life }) => life.alive)
    const isStale = alive.length > 1 && this.chance.happens(`${who} uses an old address`, 200)
    return isStale ? alive[0] : alive.at(-1)
  }

  /** Makes one call of append and waits for its projection; true where it was acknowledged. */
  async append(who: string, bodies: readonly string[]): Promise<boolean> {
    const { scheduler, chance } = this
    const target = this.#target(who)
    if (target === undefined) return false
    const { life, chain } = target
    this.#order += 1
    const calledAt = this.#order
    const entries = bodies.map((body) => ({ header: { type: 'record' }, body }))
    const place = await this.#patiently(life, chain.append(entries))
    if (place === undefined) return false
    this.#order += 1
    this.written.push({ bodies, calledAt, acknowledgedAt: this.#order, place })
    const { size, root } = chain.head()
    this.heads.push({ size, root })
    scheduler.note(`${who} appended ${bodies.length} at ${place.height}.${place.sequence}`)
    if (!chance.happens(`${who} waits`, 300)) return true
    const isApplied = await this.#patiently(
      life,
      chain.whenApplied(place.height).then(() => true),
    )
    if (isApplied === true) await this.#mustShow(place)
    return true
  }

  async #patiently<T>(life: Life, work: Promise<T>): Promise<T | undefined> {
    const { scheduler } = this
    try {
      const patience = scheduler.sleep(patienceMs).then(() => undefined)
      return await Promise.race([work, life.ended, patience])
    } catch (error) {
      if (life.alive && !isExpected(error)) this.wrong(`an append failed: ${describeError(error)}`)
      return undefined
    }
  }

  async #mustShow({ height }: Appended): Promise<void> {
    const [row] = await this.scheduler.held(() =>
      this.database.query<{ height: bigint }>(
        sql`SELECT height FROM ${sql.id(logSchema, 'watermark')}`,
      ),
    )
    if (Number(row?.height ?? 0) < height)
      this.wrong(`height ${height} was said to be applied, and the watermark is ${row?.height}`)
  }

  #died(life: Life): void {
    this.#lives = this.#lives.filter((one) => one !== life)
    this.#open = this.#open.filter((one) => one.life !== life)
    if (this.#lives.length > 0 || this.problems.length > 0) return
    this.scheduler.after(this.chance.between('restart', 50, 2_000), () => {
      if (this.#lives.length === 0) this.start()
    })
  }
}

/**
 * The errors of a caller that may try again, and the error that tells a producer that it is not the producer any
 * more.
 */
function isExpected(error: unknown): boolean {
  if (error instanceof Fault) return error.code === 'UNAVAILABLE'
  return (
    error instanceof Error &&
    /another producer has moved the watermark|the chain was closed before/.test(error.message)
  )
}

function describeError(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
