import { setTimeout as wait } from 'node:timers/promises'
import { insist, openPlace, type Place } from '../faults/place.ts'
import type { SmallDisk } from '../faults/small-disk.ts'
import type { Market } from '../support/market.ts'
import { checkAll, checkBooks } from './check.ts'
import { Filler } from './filler.ts'
import { Killer } from './killer.ts'
import { Memory } from './memory.ts'
import { makeRandom } from './random.ts'
import { createWorkerBuyer, openSoakMarket } from './scene.ts'
import { Tally } from './tally.ts'
import { type Shared, Worker } from './worker.ts'

export type SoakOptions = {
  readonly minutes: number
  /** An unsigned number of 32 bits. */
  readonly seed: number
  /** Receives the lines of progress. */
  readonly line: (text: string) => void
  /** Ends the load early; the checks are made nevertheless. */
  readonly signal?: AbortSignal
  /** Holds the data, and is filled and emptied all the time; without it, processes are killed. */
  readonly disk?: SmallDisk
}

export type SoakResult = {
  readonly violations: readonly string[]
  readonly counts: Tally['counts']
  readonly memory: string
}

const workers = 6
const progressMs = 5_000
const sampleMs = 1_000
/** The part of the time in which nothing is killed or full, so that one process lives long enough to be measured. */
const calmPart = 0.25
const harmStream = 1_000

/**
 * Runs a mixed load with kills, or on a disk that is full at times, on a service of its own, then checks the result.
 * Throws where the service does not start.
 */
export async function runSoak(options: SoakOptions): Promise<SoakResult> {
  const place = await openPlace(options.disk?.folder)
  const tally = new Tally()
  const memory = new Memory()
  try {
    await runLoad(place, { ...options, tally, memory })
  } finally {
    await place.close()
  }
  return { violations: tally.violations, counts: tally.counts, memory: memory.summary() }
}

async function runLoad(
  place: Place,
  options: SoakOptions & { tally: Tally; memory: Memory },
): Promise<void> {
  const { tally, memory, seed, line } = options
  const market = (n: number) => openSoakMarket(place, `soak-${n}`)
  const markets: Shared['markets'] = [await market(1), await market(2), await market(3)]
  const startedAt = Date.now()
  const endAt = startedAt + options.minutes * 60_000
  const isOver = () => Date.now() >= endAt || options.signal?.aborted === true
  const shared: Shared = { place, tally, markets, isOver }
  const buyers = await Promise.all(Array.from({ length: workers }, () => createWorkerBuyer(place)))
  const clients = buyers.map(
    (buyer, n) => new Worker(shared, { name: `w${n}`, random: makeRandom(seed, n), buyer }),
  )
  const watching = watch(shared, memory, line)
  const calmAt = endAt - (endAt - startedAt) * calmPart
  const random = makeRandom(seed, harmStream)
  const { disk } = options
  const harm =
    disk === undefined ? new Killer(shared, random) : new Filler(shared, { random, disk })
  await Promise.all([harm.run(calmAt), ...clients.map((client) => client.run())])
  await watching
  line('the load is over; checking')
  await Promise.all(clients.map((client) => client.finish()))
  for (const one of markets) await whenApplied(place, tally, one)
  await checkAll(place, tally, { markets, buyers })
  const received = await place.onChain(place.payTo)
  const code = await place.program().end('SIGTERM')
  if (code !== 0) tally.wrong(`the service ended with ${code}: ${place.program().output()}`)
  await checkBooks(place, tally, received)
}

async function watch(
  { place, tally, isOver }: Shared,
  memory: Memory,
  line: (text: string) => void,
): Promise<void> {
  let toldAt = Date.now()
  while (!isOver()) {
    await wait(sampleMs)
    memory.sample(place.program().pid)
    if (Date.now() - toldAt < progressMs) continue
    toldAt = Date.now()
    line(progress(tally))
  }
}

/** Once the tables show this write, they show all before it. */
async function whenApplied(place: Place, tally: Tally, market: Market): Promise<void> {
  const id = 'the-last'
  tally.noteSent(market.appId, [id])
  const raw = JSON.stringify({ root: `${market.appId}::open`, data: [{ id, n: 0 }] })
  const headers = market.headers
  const reply = await insist(place.service, {
    method: 'POST',
    path: '/store?wait=true',
    raw,
    headers,
  })
  if (tally.good('the last store', reply) !== undefined)
    tally.noteAcknowledged(market.appId, [{ id, n: 0 }])
}

function progress({ counts, violations }: Tally): string {
  const kills = counts.serviceKills + counts.databaseKills + counts.bothKills
  return [
    `stores ${counts.stores}`,
    `acknowledged records ${counts.acknowledged}`,
    `paid reads ${counts.paidReads}`,
    `paid writes ${counts.paidWrites}`,
    `repeated ${counts.repeated}`,
    `kills ${kills}`,
    `full disks ${counts.fullDisks}`,
    `restarts ${counts.restarts}`,
    `violations ${violations.length}`,
  ].join(', ')
}
