import { setTimeout as wait } from 'node:timers/promises'
import { killDatabase } from '../support/kill.ts'
import { checkBooks, checkSample } from './check.ts'
import type { Random } from './random.ts'
import type { Shared } from './worker.ts'

const betweenKillsMsMin = 1_000
const betweenKillsMsMax = 6_000
/** PostgreSQL that dies more often than this within a minute stays down, by design. */
const databaseKillsMax = 4
const auditEvery = 6
const backAgainMs = 60_000

/** Kills service, database, or both, at times that follow from its stream, and checks the data after each kill. */
export class Killer {
  readonly #shared: Shared
  readonly #random: Random
  #databaseKills = 0
  #processKills = 0

  constructor(shared: Shared, random: Random) {
    this.#shared = shared
    this.#random = random
  }

  /** Waits until the time (milliseconds since 1970), or the end of the run. */
  async run(untilMs: number): Promise<void> {
    while (!this.#shared.isOver()) {
      const pause = betweenKillsMsMin + this.#random.integer(betweenKillsMsMax - betweenKillsMsMin)
      const kind = this.#random.integer(10)
      await wait(Math.min(pause, Math.max(0, untilMs - Date.now())))
      if (Date.now() >= untilMs) return
      if (kind < 4 && this.#databaseKills < databaseKillsMax) await this.#killDatabase()
      else await this.#killService(kind >= 8)
      const { place, tally, markets } = this.#shared
      await checkSample(place, tally, { markets, random: this.#random })
    }
  }

  async #killDatabase(): Promise<void> {
    const { place, tally } = this.#shared
    this.#databaseKills += 1
    tally.counts.databaseKills += 1
    killDatabase(place.dataDir)
    const end = Date.now() + backAgainMs
    while (Date.now() < end) {
      const ready = await place.service.request('GET', '/ready').catch(() => undefined)
      if (ready?.status === 200) return
      await wait(50)
    }
    tally.wrong('the database did not come back')
  }

  async #killService(withDatabase: boolean): Promise<void> {
    const { place, tally } = this.#shared
    tally.counts[withDatabase ? 'bothKills' : 'serviceKills'] += 1
    if (withDatabase) killDatabase(place.dataDir)
    await place.program().end('SIGKILL')
    this.#processKills += 1
    if (this.#processKills % auditEvery === 0) await checkBooks(place, tally)
    await place.start()
    this.#databaseKills = 0
    tally.counts.restarts += 1
  }
}
