import { limits } from '@tollbase/contract/limits'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { realWorld } from '../base/world.ts'
import type { Database } from '../database/database.ts'
import { sql } from '../database/sql.ts'
import { createTestDatabase, type TestDatabase } from '../database/testing.ts'
import type { Applier } from './applier.ts'
import { createTestChain, makeEntries } from './testing.ts'

let shared: TestDatabase
beforeAll(async () => {
  shared = await createTestDatabase()
})
afterAll(() => shared.drop())

describe('an applier loop', () => {
  test('a committed block that was not applied is applied when the chain is opened again, exactly once', async () => {
    const { open, options, applied } = await createTestChain(shared.database)
    const bodies = Array.from({ length: 90 }, (_, index) => `body ${index}`)
    const broken = onBody('body 40', options.applier, 'P0001')
    const chain = await open({ applier: broken })
    for (const body of bodies.slice(0, 40)) await chain.append(makeEntries(body))
    const rest = bodies.slice(40).map((body) => chain.append(makeEntries(body)))
    await Promise.all(rest)
    const bad = await chain.locate(40)
    await expect(chain.whenApplied(bad.height)).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      internal: expect.stringContaining(`block ${bad.height} cannot be applied`),
    })
    expect(chain.failure?.message).toMatch(`block ${bad.height} cannot be applied`)
    expect(chain.watermark().height).toBe(bad.height - 1)
    await expect(chain.append(makeEntries('more'))).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    expect(chain.head().size).toBe(90)
    await chain.close()
    expect(await applied()).toEqual(bodies.slice(0, 40))

    const again = await open()
    expect(again.watermark()).toEqual(
      again.head().height === 0
        ? {}
        : { height: again.head().height, sequence: expect.any(Number) },
    )
    expect(await applied()).toEqual(bodies)
    await again.append(makeEntries('more'))
    await again.close()
    expect(await applied()).toEqual([...bodies, 'more'])
  })

  test('the loop rests after a transaction as long as that took, and not while somebody waits', async () => {
    const { open, options, applied } = await createTestChain(shared.database)
    let now = 0
    const sleeps: number[] = []
    const runs: number[] = []
    const applier: Applier = {
      apply: (tx, blocks) => {
        now += 40
        runs.push(blocks.length)
        return options.applier.apply(tx, blocks)
      },
    }
    const sleep = (ms: number) => {
      sleeps.push(ms)
      return new Promise<void>(() => undefined)
    }
    const chain = await open({ applier, world: { ...realWorld, ticks: () => now, sleep } })
    const first = await chain.append(makeEntries('a'))
    await chain.whenApplied(first.height)
    await chain.append(makeEntries('b'))
    const last = await chain.append(makeEntries('c'))
    expect({ sleeps, runs, applied: await applied() }).toEqual({
      sleeps: [40],
      runs: [1],
      applied: ['a'],
    })
    await chain.whenApplied(last.height)
    expect({ sleeps, runs }).toEqual({ sleeps: [40], runs: [1, 2] })
    expect(await applied()).toEqual(['a', 'b', 'c'])
    await chain.close()
  })

  test('a transaction ends with the block that makes it large, and a caller who waits for that block is told', async () => {
    const { open, options } = await createTestChain(shared.database)
    const gate = held(options.applier)
    const runs: number[] = []
    const applier: Applier = {
      apply: (tx, blocks) => {
        runs.push(blocks.length)
        return gate.applier.apply(tx, blocks)
      },
    }
    const chain = await open({ applier })
    const sizes = [1, 600, 300, 300, 2000, 1, 1]
    for (const size of sizes)
      await chain.append(makeEntries(...Array.from({ length: size }, () => 'x')))
    const applied = chain.whenApplied(sizes.length)
    gate.release()
    await applied
    expect(runs).toEqual([1, 2, 1, 1, 2])
    await chain.close()
  })

  test('memory is read from the tables after the lease was taken and before anything is applied', async () => {
    const { open, options, applied } = await createTestChain(shared.database)
    const chain = await open({ applier: onBody('b', options.applier, 'P0001') })
    await chain.append(makeEntries('a'))
    await chain.append(makeEntries('b'))
    await chain.close()
    let seen: string[] = []
    let holder: unknown
    const prepare = async () => {
      seen = await applied()
      const leases = await shared.database.query(
        sql`SELECT holder FROM operations.chain_lease WHERE chain = ${options.schema}`,
      )
      holder = leases[0]?.holder
    }
    const again = await open({ holder: 'second', prepare })
    expect({ seen, holder }).toEqual({ seen: ['a'], holder: 'second' })
    expect(await applied()).toEqual(['a', 'b'])
    await again.close()
  })

  test('a chain whose applier fails from the start opens for reading and says why', async () => {
    const { open, options } = await createTestChain(shared.database)
    const chain = await open({ applier: onBody('bad', options.applier, 'P0001') })
    await chain.append(makeEntries('bad'))
    await chain.close()
    const again = await open({ applier: onBody('bad', options.applier, 'P0001') })
    expect(again.failure?.message).toMatch('block 1 cannot be applied')
    expect((await again.readBlock(1))?.entry(0)).toMatchObject({ body: 'bad' })
    await again.close()
  })

  test('a conflict that passes is tried again, and memory changes only after the commit', async () => {
    const { open, options, applied } = await createTestChain(shared.database)
    let conflicts = 3
    const committed: number[] = []
    const applier: Applier = {
      apply: async (tx, blocks) => {
        await options.applier.apply(tx, blocks)
        if (conflicts > 0) {
          conflicts -= 1
          await fail(tx.execute.bind(tx), '40001')
        }
        return () => committed.push(...blocks.map((block) => block.height))
      },
    }
    const chain = await open({ applier })
    const { height } = await chain.append(makeEntries('a'))
    await chain.whenApplied(height)
    expect(committed).toEqual([1])
    expect(await applied()).toEqual(['a'])
    await chain.close()
  })

  test('blocks that do not fit in memory are read from the log, in order', async () => {
    const { open, options, applied } = await createTestChain(shared.database)
    const gate = held(options.applier)
    const chain = await open({ applier: gate.applier })
    const bodies = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((name) => name.repeat(7_000_000))
    for (const body of bodies) await chain.append(makeEntries(body))
    expect(chain.lag()).toBe(7)
    gate.release()
    await chain.whenApplied(7)
    expect((await applied()).map((body) => `${body[0]}${body.length}`)).toEqual(
      bodies.map((body) => `${body[0]}${body.length}`),
    )
    await chain.close()
  })

  test('writes are asked to wait once appliers are too far behind, and not before', async () => {
    const { open, options } = await createTestChain(shared.database)
    const gate = held({ apply: async () => undefined })
    const chain = await open({ applier: gate.applier })
    const entries = makeEntries(...Array.from({ length: limits.blockEntriesMax }, () => ''))
    for (let size = 0; size < limits.applierLagEntriesMax; size += entries.length)
      await chain.append(entries)
    expect(chain.lag()).toBe(limits.applierLagEntriesMax)
    await expect(chain.append(makeEntries('x'))).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      retryAfterSeconds: 1,
    })
    gate.release()
    await chain.whenApplied(chain.head().height)
    await chain.append(makeEntries('x'))
    await chain.close()
    expect(options.schema).toBe(chain.origin.split('/')[1])
  })
})

describe('the dependents of the tables', () => {
  test('a dependent is brought on when that is due, in a transaction without blocks', async () => {
    const { open, options, applied } = await createTestChain(shared.database)
    const followed = following(options.applier, () => performance.now() + 30)
    const chain = await open({ applier: followed.applier })
    const { height } = await chain.append(makeEntries('a'))
    await chain.whenApplied(height)
    expect(followed.runs).toEqual([[1, false]])
    await expect
      .poll(() => followed.runs)
      .toEqual([
        [1, false],
        [0, true],
      ])
    await chain.whenCaughtUp()
    expect(await applied()).toEqual(['a'])
    await chain.close()
  })

  test('a dependent is brought on at once where somebody waits, with the blocks that are there', async () => {
    const { open, options } = await createTestChain(shared.database)
    const followed = following(options.applier, later)
    const gate = held(followed.applier)
    const chain = await open({ applier: gate.applier })
    await chain.whenCaughtUp()
    const first = await chain.append(makeEntries('a'))
    gate.release()
    await chain.whenApplied(first.height)
    const appended = chain.append(makeEntries('b'))
    await Promise.all([chain.whenCaughtUp(), chain.whenCaughtUp()])
    await chain.whenApplied((await appended).height)
    await chain.whenCaughtUp()
    expect(followed.runs[0]).toEqual([1, false])
    expect(followed.runs.at(-1)?.[1]).toBe(true)
    await chain.close()
  })

  test('a dependent keeps no block waiting, and is left to the next opening when the chain is closed', async () => {
    const { open, options, applied } = await createTestChain(shared.database)
    const followed = following(options.applier, later)
    const chain = await open({ applier: followed.applier })
    for (const body of ['a', 'b', 'c']) {
      await chain.append(makeEntries(body))
      await expect.poll(applied).toContain(body)
    }
    await chain.close()
    await chain.whenCaughtUp()
    expect(followed.runs.every(([, catchUp]) => catchUp === false)).toBe(true)
  })

  test('a dependent that fails for a moment is tried again; where it fails for good, the chain says so and nobody waits', async () => {
    const { open, options } = await createTestChain(shared.database)
    const followed = following(options.applier, later)
    const states = ['40001', '40001', '', 'P0001', 'P0001']
    const applier: Applier = {
      ...followed.applier,
      apply: async (tx, blocks, step) => {
        const state = step?.catchUp === true ? states.shift() : ''
        if (state !== undefined && state !== '') await fail(tx.execute.bind(tx), state)
        return followed.applier.apply(tx, blocks, step)
      },
    }
    const chain = await open({ applier })
    await chain.whenApplied((await chain.append(makeEntries('a'))).height)
    await chain.whenCaughtUp()
    expect(states).toHaveLength(2)
    await chain.whenApplied((await chain.append(makeEntries('b'))).height)
    await chain.whenCaughtUp()
    expect(chain.failure?.message).toMatch('what follows the tables cannot be applied')
    await chain.close()
  })

  test('a dependent is durable once it is there: where no block comes with it, nothing would tell that a crash has lost it', async () => {
    const { open, options } = await createTestChain(shared.database)
    const followed = following(options.applier, later)
    const relaxed: unknown[] = []
    const database: Database = {
      ...shared.database,
      transaction: (work, options) =>
        shared.database.transaction((tx) => {
          relaxed.push(options?.relaxed)
          return work(tx)
        }, options),
    }
    const chain = await open({ applier: followed.applier, relaxedTables: true, database })
    await chain.whenApplied((await chain.append(makeEntries('a'))).height)
    await chain.whenCaughtUp()
    expect(followed.runs).toEqual([
      [1, false],
      [0, true],
    ])
    expect(relaxed.slice(-2)).toEqual([true, false])
    await chain.close()
  })

  test('a dependent keeps nobody waiting while the storage takes no writes, and closing does not wait for it', async () => {
    const { open, options } = await createTestChain(shared.database)
    const followed = following(options.applier, later)
    let refusals = 0
    const applier: Applier = {
      ...followed.applier,
      apply: async (tx, blocks, step) => {
        if (step?.catchUp === true) {
          refusals += 1
          await fail(tx.execute.bind(tx), '53100')
        }
        return followed.applier.apply(tx, blocks, step)
      },
    }
    const chain = await open({ applier })
    await chain.whenApplied((await chain.append(makeEntries('a'))).height)
    await chain.whenCaughtUp()
    expect(refusals).toBe(1)
    await chain.close()
    expect(chain.failure).toBeUndefined()
  })
})

/** Fails with the SQLSTATE, raised by the database, where a block has this body. */
function onBody(body: string, applier: Applier, state: string): Applier {
  return {
    apply: async (tx, blocks) => {
      const done = await applier.apply(tx, blocks)
      const meets = blocks.some((block) => block.entries.some((entry) => entry.body === body))
      if (meets) await fail(tx.execute.bind(tx), state)
      return done
    },
  }
}

async function fail(
  execute: (statement: ReturnType<typeof sql>) => Promise<number>,
  state: string,
): Promise<void> {
  await execute(
    sql`DO ${sql.literal(`BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = '${state}'; END`)}`,
  )
}

/** Applies nothing until it is released. */
function held(applier: Applier) {
  let release: () => void = () => undefined
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  const waiting: Applier = {
    ...applier,
    apply: async (tx, blocks, step) => {
      await released
      return applier.apply(tx, blocks, step)
    },
  }
  return { applier: waiting, release }
}

/** Runs after the test. */
const later = () => performance.now() + 60_000

/**
 * An applier whose dependents are behind after each run that does not catch up, until `dueAt`; runs as [blocks,
 * catchUp].
 */
function following(applier: Applier, dueAt: () => number) {
  const runs: (readonly [number, boolean | undefined])[] = []
  let at: number | undefined
  const follower: Applier = {
    apply: async (tx, blocks, step) => {
      runs.push([blocks.length, step?.catchUp])
      if (blocks.length > 0) await applier.apply(tx, blocks)
      return () => {
        at = step?.catchUp === true ? undefined : dueAt()
      }
    },
    catchUpAt: () => at,
  }
  return { applier: follower, runs }
}
