import { setTimeout as wait } from 'node:timers/promises'
import type { SmallDisk } from '../faults/small-disk.ts'
import { checkSample } from './check.ts'
import type { Random } from './random.ts'
import type { Shared } from './worker.ts'

const roomyMsMin = 1_000
const roomyMsMax = 5_000
const fullMsMin = 200
const fullMsMax = 4_000
/** Bytes that are left: too few for anything new, too few for the log of the database, and none. */
const mebibytesLeft = [24, 6, 0] as const
const backAgainMs = 90_000

/** Fills the disk and empties it again, at times that follow from its stream, and checks the data each time. */
export class Filler {
  readonly #shared: Shared
  readonly #random: Random
  readonly #disk: SmallDisk

  constructor(shared: Shared, { random, disk }: { random: Random; disk: SmallDisk }) {
    this.#shared = shared
    this.#random = random
    this.#disk = disk
  }

  /** Waits until the time (milliseconds since 1970), or the end of the run. */
  async run(untilMs: number): Promise<void> {
    const { place, tally, markets, isOver } = this.#shared
    const pause = (min: number, max: number) => wait(min + this.#random.integer(max - min))
    while (!isOver() && Date.now() < untilMs) {
      await pause(roomyMsMin, roomyMsMax)
      tally.counts.fullDisks += 1
      this.#disk.fill(this.#random.pick(mebibytesLeft) * 1024 * 1024)
      await pause(fullMsMin, fullMsMax)
      this.#disk.empty()
      await this.#awaitReady()
      await checkSample(place, tally, { markets, random: this.#random })
    }
  }

  /** A database that cannot write its log ends, at last with the service; then another start goes on. */
  async #awaitReady(): Promise<void> {
    const { place, tally } = this.#shared
    const end = Date.now() + backAgainMs
    while (Date.now() < end) {
      if (await this.#hasEnded()) {
        await place.start()
        tally.counts.restarts += 1
      }
      const ready = await place.service.request('GET', '/ready').catch(() => undefined)
      if (ready?.status === 200) return
      await wait(50)
    }
    tally.wrong('the service is not ready again, though the disk has room')
  }

  #hasEnded(): Promise<boolean> {
    const { ended } = this.#shared.place.program()
    return Promise.race([ended.then(() => true), wait(0).then(() => false)])
  }
}
