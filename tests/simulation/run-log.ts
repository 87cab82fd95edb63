import { Chance } from './chance.ts'
import { Log } from './log.ts'
import { checkLog, checkProjection } from './log-checks.ts'
import { openCopy, type Place, type Result } from './place.ts'

const checkEveryMs = 4_000

/** One run of a chain: rough for a while, then calm until all is applied. */
export async function runLog(seed: string, place: Place): Promise<Result> {
  const copy = await place.createCopy('log')
  const database = await openCopy(copy)
  const log = new Log({ database, chance: new Chance(seed) })
  const { scheduler, problems } = log
  let isOver = false
  try {
    log.start()
    const look = async () => {
      while (!isOver) {
        await scheduler.sleep(checkEveryMs)
        for (const problem of await scheduler.held(() => checkProjection(database)))
          log.wrong(problem)
      }
    }
    play(log).then(
      () => {
        isOver = true
      },
      (error: unknown) => log.wrong(String(error)),
    )
    look().catch((error: unknown) => log.wrong(String(error)))
    await scheduler.run(() => isOver || problems.length > 0)
    log.end()
    // The unfinished work of the last process is rolled back first.
    await scheduler.run(() => true)
    const late = problems.length === 0 ? await checkLog(log) : []
    return { problems: [...problems, ...late], trace: scheduler.trace }
  } catch (error) {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
    return { problems: [...problems, text], trace: scheduler.trace }
  } finally {
    await database.close()
    await place.drop(copy)
  }
}

async function play(log: Log): Promise<void> {
  const { chance, scheduler } = log
  const count = chance.between('writers', 2, 4)
  const writing = Array.from({ length: count }, (_, at) => write(log, `w${at + 1}`))
  await Promise.race([Promise.all(writing), scheduler.sleep(60_000)])
  log.calmDown()
  await Promise.all(writing)
  // The time lets paused processes end, and leases expire that were not given back.
  await scheduler.sleep(60_000)
  for (let n = 0; n < 5; n++) {
    if (await log.append('last', [`last ${n}`])) break
    await scheduler.sleep(5_000)
    if (n === 4) log.wrong('nothing can be appended in the end')
  }
  await scheduler.sleep(5_000)
}

async function write(log: Log, who: string): Promise<void> {
  const { chance, scheduler } = log
  const count = chance.between(`${who} writes`, 5, 30)
  for (let n = 0; n < count; n++) {
    await scheduler.sleep(
      chance.happens(`${who} hurries`, 600)
        ? chance.below(`${who} rests`, 10)
        : chance.below(`${who} rests long`, 2_500),
    )
    const size = chance.happens(`${who} has much`, 60) ? 150 : chance.between(`${who} has`, 1, 6)
    await log.append(
      who,
      Array.from({ length: size }, (_, at) => `${who} ${n} ${at}`),
    )
  }
}
