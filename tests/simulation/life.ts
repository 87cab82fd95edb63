import type { World } from '../../packages/server/src/base/world.ts'
import type { Database, Queryable } from '../../packages/server/src/database/database.ts'
import { CommitUnknownError } from '../../packages/server/src/database/errors.ts'
import type { Chance } from './chance.ts'
import type { Scheduler } from './scheduler.ts'

/** The roughness of a run; per mille of steps. */
export type FaultProfile = {
  crash: number
  /** Connections to the database, lost before or after the statement took effect. */
  lost: number
  /** Steps that take long. */
  slow: number
  /** Steps at which the process is paused for longer than its leases last. */
  pause: number
  /** Calls of the outside world that fail, and faults of the outside world itself. */
  outside: number
  /** Ends of the process between two steps of a move's reversal. */
  move?: number
  /** The step with the most faults: one that a run of even chances would seldom hit. */
  weakSpot: string
}

export const calm: FaultProfile = { crash: 0, lost: 0, slow: 0, pause: 0, outside: 0, weakSpot: '' }

const weakCrash = 150
const weakLost = 200

/** The error of a lost connection, in pg's words. */
export class Lost extends Error {
  constructor() {
    super('Connection terminated unexpectedly')
  }
}

/** The error that a client of a dead server sees. */
export class Reset extends Error {
  constructor() {
    super('the connection was reset')
  }
}

type Common = {
  readonly scheduler: Scheduler
  readonly chance: Chance
  readonly faultProfile: FaultProfile
  readonly turns: Turns
  /** Called with the process that is paused. */
  readonly onPause: (life: Life) => void
  readonly onDeath: (life: Life) => void
}

type CommitFate = 'lost after' | 'dies after' | undefined

const never = new Promise<never>(() => undefined)
const noTurn = () => undefined

/**
 * One process from start to end. All that it does to the outside are steps; it may die at any of them, before or
 * after the step took effect. From then on nothing that it still does has any effect, and nothing that it remembers
 * is left.
 */
export class Life {
  readonly name: string
  readonly world: World
  /** Rejects when the process dies. */
  readonly ended: Promise<never>
  readonly #common: Common
  #alive = true
  #wakesAt = 0
  #end: (error: Error) => void = () => undefined

  constructor(name: string, common: Common) {
    const { scheduler, chance } = common
    this.name = name
    this.#common = common
    this.ended = new Promise<never>((_, reject) => {
      this.#end = reject
    })
    this.ended.catch(() => undefined)
    this.world = {
      now: () => scheduler.now,
      ticks: () => scheduler.now,
      idle: () => scheduler.now,
      randomBytes: (count) => chance.bytes(`bytes of ${name}`, count),
      sleep: (ms) => new Promise((resolve) => this.#later(ms, resolve)),
      failpoint: (point) => {
        const { move = 0, weakSpot } = this.#common.faultProfile
        if (!point.startsWith('move.')) return
        if (chance.happens(`${point} crash`, point === weakSpot ? weakCrash : move))
          this.die(`at ${point}`)
      },
      every: (ms, call) => {
        let stopped = false
        const tick = () => {
          if (stopped) return
          call()
          this.#later(ms, tick)
        }
        this.#later(ms, tick)
        return () => {
          stopped = true
        }
      },
    }
  }

  get alive(): boolean {
    return this.#alive
  }

  /** Resolves once the process is not paused: what is sent to it meanwhile waits. */
  whenAwake(): Promise<void> {
    const ms = this.#wakesAt - this.#common.scheduler.now
    return ms <= 0 ? Promise.resolve() : new Promise((resolve) => this.#later(ms, resolve))
  }

  die(reason: string): void {
    if (!this.#alive) return
    this.#common.scheduler.note(`${this.name} dies: ${reason}`)
    this.#alive = false
    this.#end(new Reset())
    this.#common.onDeath(this)
  }

  /**
   * Runs one step to the outside, at some time soon. Its outcome is the result of the work; or the process dies, or
   * the answer is lost: `lost` makes the error, and is undefined where no answer can be lost.
   */
  step<T>(
    name: string,
    work: () => Promise<T>,
    trouble: { latency: [number, number]; lost: (() => Error) | undefined; perMille: number },
  ): Promise<T> {
    const { scheduler, chance, faultProfile } = this.#common
    const slow = chance.happens(`${name} slow`, faultProfile.slow)
    const ms = slow
      ? chance.between(`${name} takes`, 50, 3000)
      : chance.between(`${name} takes`, ...trouble.latency)
    return new Promise((resolve, reject) => {
      const act = () => {
        const fate = this.#drawFate(name, trouble)
        scheduler.note(`${this.name} ${name}${fate === undefined ? '' : ` (${fate})`}`)
        if (fate === 'dies before') return this.die('crash')
        if (fate === 'lost before') return reject(trouble.lost?.())
        void scheduler.held(work).then(
          (result) => {
            if (fate === 'dies after') return this.die('crash')
            if (!this.#alive) return
            if (fate === 'lost after') return reject(trouble.lost?.())
            resolve(result)
          },
          (error: unknown) => {
            if (this.#alive) reject(error)
          },
        )
      }
      this.#later(ms, () => {
        if (
          !chance.happens(
            `${name} pause`,
            faultProfile.pause * (name === faultProfile.weakSpot ? 10 : 1),
          )
        )
          return act()
        // The step waits for the pause too, and then meets a world that has gone on.
        this.#pause()
        this.#later(0, act)
      })
    })
  }

  /**
   * The database as this process sees it. Transactions of all processes take turns, as their row locks make them; one
   * that reads a snapshot waits for nobody.
   */
  database(inner: Database): Database {
    return {
      query: (statement, options) =>
        this.#statement(statement.text, () => inner.query(statement, options)),
      queryShort: (statement) => this.#statement(statement.text, () => inner.query(statement)),
      queryHeavy: (statement) => this.#statement(statement.text, () => inner.query(statement)),
      execute: (statement) => this.#statement(statement.text, () => inner.execute(statement)),
      transaction: async (work, options) => {
        const over = options?.isolation === undefined ? await this.#common.turns.take() : noTurn
        return this.#transaction((inside) => inner.transaction(inside, options), work, over)
      },
      useDedicatedSession: () => Promise.reject(new Error('nothing that is simulated works apart')),
      major: inner.major,
      observe: () => () => undefined,
      stats: () => ({ total: 0, idle: 0, waiting: 0 }),
      close: async () => undefined,
    }
  }

  #statement<T>(text: string, work: () => Promise<T>): Promise<T> {
    const trouble = { ...databaseTrouble, perMille: this.#common.faultProfile.lost }
    return this.step(getStatementName(text), work, trouble)
  }

  async #transaction<T>(
    begin: (inside: (tx: Queryable) => Promise<T>) => Promise<T>,
    work: (tx: Queryable) => Promise<T>,
    over: () => void,
  ): Promise<T> {
    // Held whenever the database works: around BEGIN, the statements, and COMMIT or ROLLBACK.
    let release = this.#common.scheduler.hold()
    let fate: CommitFate
    const done = begin(async (tx) => {
      release()
      try {
        const result = await this.#within(tx, work)
        fate = await this.#commitFate()
        return result
      } finally {
        release = this.#common.scheduler.hold()
      }
    })
    const outcome = await done.then(
      (result) => ({ result }),
      (error: unknown) => ({ error }),
    )
    if (fate === 'dies after') this.die('crash')
    over()
    release()
    if (!this.#alive) return never
    if ('error' in outcome) throw outcome.error
    if (fate === 'lost after') throw unknownCommit()
    return outcome.result
  }

  /** Runs the work of a transaction, until the process dies; if its connection is lost, the whole transaction is. */
  async #within<T>(tx: Queryable, work: (tx: Queryable) => Promise<T>): Promise<T> {
    if (!this.#alive) throw new Reset()
    let isLost = false
    let before: Promise<unknown> = Promise.resolve()
    // The statements run in sequence, as on the connection.
    const send = <R>(text: string, statement: () => Promise<R>): Promise<R> => {
      const sent = before.then(() => sendNow(text, statement))
      before = sent.catch(() => undefined)
      return sent
    }
    const sendNow = async <R>(text: string, statement: () => Promise<R>): Promise<R> => {
      if (isLost) throw new Lost()
      try {
        return await this.#statement(text, statement)
      } catch (error) {
        if (error instanceof Lost) isLost = true
        throw error
      }
    }
    const inside = work({
      query: (statement, options) => send(statement.text, () => tx.query(statement, options)),
      execute: (statement) => send(statement.text, () => tx.execute(statement)),
    })
    const result = await Promise.race([inside, this.ended])
    if (isLost) throw new Lost()
    return result
  }

  /** Decides the fate of a COMMIT; throws where it never arrives. */
  async #commitFate(): Promise<CommitFate> {
    const { chance, scheduler, faultProfile } = this.#common
    const ms = chance.between('COMMIT takes', ...databaseTrouble.latency)
    await Promise.race([new Promise<void>((resolve) => this.#later(ms, resolve)), this.ended])
    const fate = this.#drawFate('COMMIT', { ...databaseTrouble, perMille: faultProfile.lost * 3 })
    scheduler.note(`${this.name} COMMIT${fate === undefined ? '' : ` (${fate})`}`)
    if (fate === 'dies before') {
      this.die('crash')
      throw new Reset()
    }
    if (fate === 'lost before') throw unknownCommit()
    return fate
  }

  #drawFate(name: string, trouble: { lost: (() => Error) | undefined; perMille: number }) {
    const { chance, faultProfile } = this.#common
    const isWeak = name === faultProfile.weakSpot
    if (chance.happens(`${name} crash`, isWeak ? weakCrash : faultProfile.crash))
      return chance.pick(`${name} dies`, ['dies before', 'dies after'] as const)
    const perMille = isWeak ? weakLost : trouble.perMille
    if (trouble.lost !== undefined && chance.happens(`${name} lost`, perMille))
      return chance.pick(`${name} fails`, ['lost before', 'lost after'] as const)
    return undefined
  }

  /** Pauses the process, as on a machine that is suspended: longer than a lease, shorter than a session. */
  #pause(): void {
    const { scheduler, chance } = this.#common
    const ms = chance.between('pause lasts', 3_000, 40_000)
    this.#wakesAt = scheduler.now + ms
    scheduler.note(`${this.name} stands still for ${ms} ms`)
    this.#common.onPause(this)
  }

  #later(ms: number, run: () => void): void {
    const { scheduler } = this.#common
    scheduler.after(ms, () => {
      if (!this.#alive) return
      if (this.#wakesAt > scheduler.now) this.#later(this.#wakesAt - scheduler.now, run)
      else run()
    })
  }
}

/** Runs transactions in sequence, in the order in which they ask. */
export class Turns {
  #last: Promise<void> = Promise.resolve()

  /** Resolves with the function that ends the turn. */
  async take(): Promise<() => void> {
    const before = this.#last
    let over: () => void = () => undefined
    this.#last = new Promise((resolve) => {
      over = resolve
    })
    await before
    return over
  }
}

const databaseTrouble = { latency: [0, 3] as [number, number], lost: () => new Lost() }

function unknownCommit(): Error {
  return new CommitUnknownError('the connection was lost during COMMIT')
}

/** Returns a statement's name in the trace: its verb, and its table. */
function getStatementName(text: string): string {
  const verb = /^\s*(\w+)/.exec(text)?.[1] ?? ''
  const table = /\b(?:INTO|UPDATE|FROM)\s+("[^"]+"(?:\."[^"]+")?|[\w.]+)/.exec(text)?.[1] ?? ''
  return `${verb} ${table.replaceAll('"', '')}`.trim()
}
