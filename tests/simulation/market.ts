import type { Database } from '../../packages/server/src/database/database.ts'
import {
  type PaymentEvent,
  type PaymentState,
  paymentTable,
} from '../../packages/server/src/services/payments/claims/payment-states.ts'
import type { Chance } from './chance.ts'
import type { AppKeys } from './found-shop.ts'
import { firstSamples } from './letter-rules.ts'
import { calm, type FaultProfile, Life, Reset, Turns } from './life.ts'
import { noteRestored, type Restore } from './note-restored.ts'
import { PaymentChain } from './payment-chain.ts'
import { formatPair } from './payment-pairs.ts'
import { Prices } from './prices.ts'
import { RemoteFacilitator } from './remote-facilitator.ts'
import { Scheduler } from './scheduler.ts'
import { type Answer, type Asked, sendRequest } from './send-request.ts'
import {
  firstDerive,
  firstPrice,
  foundedMs,
  gasAddress,
  otherNetwork,
  ownNetwork,
  type Running,
  startShop,
} from './shop.ts'

/** The subjects beside buying and selling; each run has some of them. */
export const subjects = [
  ...(['transfers', 'keys', 'names', 'news', 'refunds', 'library', 'channels'] as const),
  ...(['identifiers', 'upto', 'counts', 'fields', 'results', 'exhibits', 'stops'] as const),
  ...(['reversals', 'natives', 'rivals', 'storage', 'signins', 'restores'] as const),
  ...(['settlements'] as const),
]
type Subject = (typeof subjects)[number]
const subjectPerMille = 350
/** The share of what takes many steps of its own. */
const rarePerMille = 150
const rare: readonly Subject[] = [
  'channels',
  'identifiers',
  'upto',
  'counts',
  'fields',
  'results',
  'exhibits',
  'stops',
  'reversals',
  'natives',
  'rivals',
  'storage',
  'signins',
  'restores',
  'settlements',
]

/** The longest time that a client waits for an answer. */
const patienceMs = 45_000
/** The time that an operator gives to requests that are under way. */
const drainMs = 10_000
const dayMs = 24 * 3_600_000
const pricesMax = 10_000n
/** The weak spots: steps between which a payment has left one state and not reached the next. */
const weakSpots = [
  '',
  'INSERT operations.claim',
  'UPDATE operations.claim',
  'WITH operations.claim',
  'WITH operations.signer_lease',
  'INSERT app_1.block',
  'INSERT system.block',
  'COMMIT',
  'eth_sendRawTransaction',
  'eth_call',
  'told settle',
  'UPDATE operations.outgoing_transfer',
  'INSERT operations.outgoing_transfer',
]
/** The same between the steps of a reversal. */
const weakSpotsOfReversals = [
  'move.gone',
  'move.reversed',
  'move.returned',
  'move.freed',
  'move.final',
  'INSERT operations.taken_back',
  'INSERT operations.account_hold',
  'eth_getBlockByNumber',
  'eth_getTransactionReceipt',
]

/**
 * A shop, its two payment networks, and the service in one process after the other: restarted where it dies, and
 * started beside the old process where that is paused for long.
 */
export class Market {
  readonly scheduler: Scheduler
  readonly chance: Chance
  readonly faultProfile: FaultProfile
  readonly subjects: ReadonlySet<Subject>
  readonly chain: PaymentChain
  readonly remote: RemoteFacilitator
  readonly database: Database
  readonly keys: AppKeys
  readonly prices = new Prices(firstPrice)
  readonly derives = new Prices(firstDerive)
  /** The steps at which the seller was told that another sample is there, and the number that there may be. */
  readonly samples = { told: [] as number[], most: firstSamples.length }
  readonly problems: string[] = []
  /** The pairs of a payment's state and an event that happened. */
  readonly pairs = new Set<string>()
  /** The times at which the database was restored, in their order. */
  readonly restores: Restore[] = []
  isRough = true
  readonly #turns = new Turns()
  #serving: Running[] = []
  /** Requests that a process is at work on. */
  readonly #asked = new Map<Running, Set<Promise<unknown>>>()
  #lives: Life[] = []
  #started = 0
  #hasStoodStill = false
  #steps = 0

  constructor(parts: {
    database: Database
    keys: AppKeys
    chance: Chance
    /** A subject that the run has, whatever chance says, or several, with commas between them. */
    subject?: string | undefined
  }) {
    const { chance } = parts
    this.database = parts.database
    this.keys = parts.keys
    this.chance = chance
    this.faultProfile = drawFaultProfile(chance)
    const wanted = parts.subject?.split(',') ?? []
    this.subjects = new Set(
      subjects.filter(
        (one) => chance.happens(`subject ${one}`, getPerMille(one)) || wanted.includes(one),
      ),
    )
    if (this.subjects.has('channels') && chance.happens('channels see a stop', 500))
      this.subjects = new Set([...this.subjects, 'stops'])
    // Only the library keeps files.
    if (this.subjects.has('storage')) this.subjects = new Set([...this.subjects, 'library'])
    if (this.subjects.has('reversals')) this.#drawWeatherOfReversals()
    // A day may end meanwhile, on which limits of keys and quotas begin anew.
    const countsDays = this.subjects.has('keys') || this.subjects.has('exhibits')
    const isLate =
      (countsDays && chance.happens('late in the day', 600)) || this.subjects.has('storage')
    this.scheduler = new Scheduler(foundedMs + (isLate ? dayMs - 30_000 : 60_000))
    const shared = { scheduler: this.scheduler, chance, faultProfile: this.faultProfile }
    const needFinal: readonly Subject[] = ['reversals', 'natives', 'transfers']
    const hasFinal = needFinal.some((one) => this.subjects.has(one))
    this.chain = new PaymentChain(ownNetwork, { ...shared, sender: gasAddress, hasFinal })
    this.remote = new RemoteFacilitator(otherNetwork, shared)
  }

  /** Makes the weather between the steps of a reversal. */
  #drawWeatherOfReversals(): void {
    const { chance } = this
    if (chance.happens('weather of reversals', 600))
      this.faultProfile.move = chance.between('weather of reversals', 1, 120)
    if (chance.happens('reversals are sore', 500))
      this.faultProfile.weakSpot = chance.pick('sore of reversals', weakSpotsOfReversals)
  }

  /** Starts a process; once it serves, new requests go to it. */
  start(): void {
    this.#started += 1
    const life = new Life(`p${this.#started}`, {
      scheduler: this.scheduler,
      chance: this.chance,
      faultProfile: this.faultProfile,
      turns: this.#turns,
      onPause: () => {
        // The operator sees that nothing is answered, and starts another process.
        if (this.chance.happens('another is started', 600))
          this.scheduler.after(2_000, () => this.start())
      },
      onDeath: (dead) => this.#died(dead),
    })
    this.#lives.push(life)
    const { database, chain, remote, scheduler } = this
    const onStep = (state: PaymentState, event: PaymentEvent) => {
      if (life.alive) this.#noteStep(state, event)
    }
    const givesRefunds = this.subjects.has('refunds')
    const hasChannels = this.subjects.has('channels')
    const hasUpto = this.subjects.has('upto')
    const watchesMoves = this.subjects.has('reversals')
    const takesNatives = this.subjects.has('natives')
    const settlesForOthers = this.subjects.has('settlements')
    const chargesFolder = this.subjects.has('storage') ? this.keys.libraryFolder : undefined
    const has = { givesRefunds, hasChannels, hasUpto, watchesMoves, takesNatives, chargesFolder }
    const parts = { database, chain, remote, onStep, settlesForOthers, ...has }
    startShop(life, parts).then(
      (running) => {
        if (!life.alive) return
        scheduler.note(`${life.name} serves`)
        this.#serving.push(running)
      },
      (error: unknown) => life.die(`it did not start: ${String(error)}`),
    )
  }

  /**
   * Stops the service in order, as its operator does: what was asked is answered, or waits no longer than he does. Then
   * another process starts. False where none serves.
   */
  async stop(): Promise<boolean> {
    const running = this.#serving.at(-1)
    if (running === undefined) return false
    const { life } = running
    this.scheduler.note(`${life.name} is told to stop`)
    this.#serving = this.#serving.filter((one) => one !== running)
    const answered = Promise.allSettled(this.#asked.get(running) ?? [])
    await Promise.race([answered, this.scheduler.sleep(drainMs)])
    await Promise.race([running.stop(), life.ended.catch(() => undefined)])
    life.die('it has stopped')
    return true
  }

  /** Ends all faults. */
  calmDown(): void {
    this.isRough = false
    this.scheduler.note('all is calm')
    Object.assign(this.faultProfile, calm)
  }

  end(): void {
    for (const life of this.#lives) life.die('the run is over')
  }

  /** Everything stands still for so long, as after a power cut; then a process starts. */
  standStill(ms: number): void {
    for (const life of this.#lives) life.die('the power is off')
    this.scheduler.leap(ms)
    this.#hasStoodStill = true
  }

  /** The database is restored from a backup: whatever the service did since, it is told not to know. */
  async restore(): Promise<void> {
    for (const life of this.#lives) life.die('the database is restored')
    this.restores.push(await this.scheduler.held(() => noteRestored(this)))
  }

  /** A day passes in which nobody asks for anything, as for processes that are suspended. */
  passDay(ms: number): void {
    this.scheduler.note('a day passes')
    this.scheduler.leap(ms)
    this.#hasStoodStill = true
  }

  /** The processes that were started until now. */
  get started(): number {
    return this.#started
  }

  get hasStoodStill(): boolean {
    return this.#hasStoodStill
  }

  /** Sends a request to a serving process; undefined where no answer comes back. */
  async send(
    who: string,
    asked: Asked,
    sent: {
      readonly headers: Readonly<Record<string, string>>
      /** Called with the name of the process that the request comes to. */
      readonly onAsk?: (process: string) => void
      /** Called when the answer leaves the service. */
      readonly onAnswer?: () => void
    },
  ): Promise<Answer | undefined> {
    const { scheduler, chance, faultProfile } = this
    await scheduler.sleep(chance.between(`${who} sends`, 1, 30))
    const running = this.#serving.at(-1)
    if (running === undefined) return undefined
    sent.onAsk?.(running.life.name)
    const patience = chance.happens(`${who} is impatient`, faultProfile.outside)
      ? chance.between(`${who} waits`, 1, 5_000)
      : patienceMs
    const answer = await Promise.race([
      this.#ask(running, asked, sent.headers).catch((error: unknown) => {
        if (error instanceof Reset) return undefined
        throw error
      }),
      scheduler.sleep(patience).then(() => undefined),
    ])
    sent.onAnswer?.()
    await scheduler.sleep(chance.between(`${who} hears`, 1, 30))
    scheduler.note(
      `${who} ${asked.path}: ${answer ? `${answer.status} ${answer.code ?? ''}` : 'no answer'}`,
    )
    if (answer?.bug !== undefined)
      this.wrong(`${who} met an error of ours: ${describeError(answer.bug)}`)
    return answer
  }

  /** Sends a request, which the process is at work on until it is answered, whether or not anybody waits for that. */
  #ask(running: Running, ...sent: [Asked, Readonly<Record<string, string>>]): Promise<Answer> {
    const under = this.#asked.get(running) ?? new Set()
    this.#asked.set(running, under)
    const answering = sendRequest(running, ...sent).finally(() => under.delete(answering))
    under.add(answering)
    return answering
  }

  /** Draws a new price for the seller. */
  newPrice(): bigint {
    return BigInt(this.chance.between('price', 1, Number(pricesMax / 500n))) * 500n
  }

  /** Numbers the events in the order in which the market's people see them. */
  step(): number {
    this.#steps += 1
    return this.#steps
  }

  wrong(problem: string): void {
    this.scheduler.note(`WRONG ${problem}`)
    this.problems.push(problem)
  }

  /** Work in the background hides its errors, so a step that cannot happen is noticed here. */
  #noteStep(state: PaymentState, event: PaymentEvent): void {
    this.pairs.add(formatPair(state, event))
    const rule = paymentTable[state][event]
    if ('impossible' in rule)
      this.wrong(`a payment that is ${state} was ${event}: ${rule.impossible}`)
  }

  #died(life: Life): void {
    this.#lives = this.#lives.filter((one) => one !== life)
    this.#serving = this.#serving.filter((one) => one.life !== life)
    if (this.#lives.length > 0 || this.problems.length > 0) return
    this.scheduler.after(this.chance.between('restart', 100, 3_000), () => {
      if (this.#lives.length === 0) this.start()
    })
  }
}

/** Returns the share of runs that have a subject, per mille. */
function getPerMille(subject: Subject): number {
  return rare.includes(subject) ? rarePerMille : subjectPerMille
}

/** Draws a fault profile: some runs are rough, some calm, some rough in one way only. */
function drawFaultProfile(chance: Chance): FaultProfile {
  const rough = (what: string, most: number) =>
    chance.happens(`weather ${what}`, 600) ? chance.between(`weather ${what}`, 1, most) : 0
  return {
    crash: rough('crash', 12),
    lost: rough('lost', 12),
    slow: rough('slow', 60),
    pause: rough('pause', 2),
    outside: rough('outside', 150),
    weakSpot: chance.pick('weather sore', weakSpots),
  }
}

function describeError(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
