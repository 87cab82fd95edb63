import type { Database } from '../../packages/server/src/database/database.ts'
import type { Chance } from './chance.ts'
import { calm, Life, Reset, Turns, type Weather } from './life.ts'
import { PaymentChain } from './payment-chain.ts'
import { Prices } from './prices.ts'
import { ToldNetwork } from './remote-facilitator.ts'
import { Scheduler } from './scheduler.ts'
import {
  type Answer,
  type AppKeys,
  type Asked,
  firstDerive,
  firstPrice,
  foundedMs,
  otherNetwork,
  ownNetwork,
  type Running,
  request,
  startShop,
} from './shop.ts'

/** A client waits at most so long for an answer. */
const patienceMs = 45_000
const pricesMax = 10_000n
/** Steps between which a payment is one thing already and not yet the next. */
const soreSpots = [
  '',
  'INSERT operations.claim',
  'UPDATE operations.claim',
  'WITH operations.kept_reply',
  'WITH operations.signer_lease',
  'INSERT app_1.block',
  'INSERT system.block',
  'COMMIT',
  'eth_sendRawTransaction',
  'eth_call',
  'told settle',
]

/**
 * A shop, the two networks that it takes money on, and the service in one process after the other: started again
 * where it dies, and beside the old one where that stands still for long.
 */
export class Market {
  readonly scheduler = new Scheduler(foundedMs + 60_000)
  readonly chance: Chance
  readonly weather: Weather
  readonly chain: PaymentChain
  readonly told: ToldNetwork
  readonly database: Database
  readonly keys: AppKeys
  readonly prices = new Prices(firstPrice)
  readonly derives = new Prices(firstDerive)
  readonly problems: string[] = []
  isRough = true
  readonly #turns = new Turns()
  #serving: Running[] = []
  #lives: Life[] = []
  #started = 0
  #steps = 0

  constructor(parts: { database: Database; keys: AppKeys; chance: Chance }) {
    const { chance } = parts
    this.database = parts.database
    this.keys = parts.keys
    this.chance = chance
    this.weather = weatherOf(chance)
    const shared = { scheduler: this.scheduler, chance, weather: this.weather }
    this.chain = new PaymentChain(ownNetwork, shared)
    this.told = new ToldNetwork(otherNetwork, shared)
  }

  /** Starts a process; once it serves, new requests go to it. */
  start(): void {
    this.#started += 1
    const life = new Life(`p${this.#started}`, {
      scheduler: this.scheduler,
      chance: this.chance,
      weather: this.weather,
      turns: this.#turns,
      onPause: () => {
        // Somebody sees that nothing is answered, and starts another one.
        if (this.chance.happens('another is started', 600))
          this.scheduler.after(2_000, () => this.start())
      },
      onDeath: (dead) => this.#died(dead),
    })
    this.#lives.push(life)
    const { database, chain, told, scheduler } = this
    startShop(life, { database, chain, told }).then(
      (running) => {
        if (!life.alive) return
        scheduler.note(`${life.name} serves`)
        this.#serving.push(running)
      },
      (error: unknown) => life.die(`it did not start: ${String(error)}`),
    )
  }

  /** From now on nothing goes wrong any more. */
  calmDown(): void {
    this.isRough = false
    this.scheduler.note('all is calm')
    Object.assign(this.weather, calm)
  }

  end(): void {
    for (const life of this.#lives) life.die('the run is over')
  }

  /** Sends a request to whatever process serves; undefined where no answer comes back. */
  async send(
    who: string,
    asked: Asked,
    sent: {
      readonly headers: Readonly<Record<string, string>>
      /** Called when the answer leaves the service. */
      readonly onAnswer?: () => void
    },
  ): Promise<Answer | undefined> {
    const { scheduler, chance, weather } = this
    await scheduler.sleep(chance.between(`${who} sends`, 1, 30))
    const running = this.#serving.at(-1)
    if (running === undefined) return undefined
    const patience = chance.happens(`${who} is impatient`, weather.outside)
      ? chance.between(`${who} waits`, 1, 5_000)
      : patienceMs
    const answer = await Promise.race([
      request(running, asked, sent.headers).catch((error: unknown) => {
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
    if (answer?.bug !== undefined) this.wrong(`${who} met an error of ours: ${textOf(answer.bug)}`)
    return answer
  }

  /** A new price by which the seller may go from now on. */
  newPrice(): bigint {
    return BigInt(this.chance.between('price', 1, Number(pricesMax / 500n))) * 500n
  }

  /** What comes after what, as its people see it. */
  step(): number {
    this.#steps += 1
    return this.#steps
  }

  wrong(problem: string): void {
    this.scheduler.note(`WRONG ${problem}`)
    this.problems.push(problem)
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

/** Some runs are rough, some calm, some rough in one way only. */
function weatherOf(chance: Chance): Weather {
  const rough = (what: string, most: number) =>
    chance.happens(`weather ${what}`, 600) ? chance.between(`weather ${what}`, 1, most) : 0
  return {
    crash: rough('crash', 12),
    lost: rough('lost', 12),
    slow: rough('slow', 60),
    pause: rough('pause', 2),
    outside: rough('outside', 150),
    sore: chance.pick('weather sore', soreSpots),
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
