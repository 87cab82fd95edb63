import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { requirePresent } from '../base/assert.ts'
import { realWorld } from '../base/world.ts'
import { CommitUnknownError } from '../database/errors.ts'
import { createTestDatabase, type TestDatabase } from '../database/testing.ts'
import type { Watermark } from './block-store.ts'
import type { Chain } from './chain.ts'
import { createTestChain, makeEntries } from './testing.ts'

describe('the position that readers of the tables have', () => {
  let shared: TestDatabase
  beforeAll(async () => {
    shared = await createTestDatabase()
  })
  afterAll(() => shared.drop())

  test('the position is certain before a commit and after it is known, never in between, and is another object after each', async () => {
    const { open } = await createTestChain(shared.database)
    const seen: (readonly [string, Watermark | undefined])[] = []
    let chain: Chain | undefined
    const reach = (point: string) => {
      if (point.startsWith('applier.')) seen.push([point, chain?.stillPosition()])
    }
    chain = await open({ world: { ...realWorld, failpoint: reach } })
    const before = requirePresent(chain.stillPosition(), 'a position')
    expect(before).toMatchObject({ height: 0, leaf: 0 })
    expect(chain.stillPosition()).toBe(before)
    await chain.append(makeEntries('a', 'b'))
    await chain.whenApplied(1)
    const after = requirePresent(chain.stillPosition(), 'a position')
    expect(after).toEqual({ height: 1, sequence: 1, leaf: 2 })
    expect(after).toEqual(expect.objectContaining(chain.watermark()))
    expect(chain.stillPosition()).toBe(after)
    expect(seen).toEqual([
      ['applier.beforeCommit', undefined],
      ['applier.afterCommit', undefined],
    ])
    await chain.close()
  })

  test('the position is not certain from a commit of unknown outcome until it is known', async () => {
    const { open, options } = await createTestChain(shared.database)
    const { database } = options
    let chain: Chain | undefined
    const seen: unknown[] = []
    const world = {
      ...realWorld,
      sleep: (ms: number) => {
        seen.push(chain?.stillPosition())
        return realWorld.sleep(ms)
      },
    }
    let isLost = false
    const losing = {
      ...database,
      transaction: async <T>(...of: Parameters<typeof database.transaction<T>>) => {
        const result = await database.transaction(...of)
        if (chain === undefined || isLost) return result
        isLost = true
        throw new CommitUnknownError('the connection broke')
      },
    }
    chain = await open({ world, database: losing })
    await chain.append(makeEntries('a'))
    await chain.whenApplied(1)
    expect(seen).toEqual([undefined])
    expect(chain.stillPosition()).toMatchObject({ height: 1 })
    await chain.close()
  })

  test('the position is not certain once another process could have the chain, and after the chain is closed', async () => {
    const { open } = await createTestChain(shared.database)
    let shiftMs = 0
    const world = {
      ...realWorld,
      every: () => () => undefined,
      now: () => realWorld.now() + shiftMs,
    }
    const chain = await open({ world, leaseTtlMs: 600_000 })
    expect(chain.stillPosition()).toBeDefined()
    shiftMs = 390_000
    expect(chain.stillPosition()).toBeDefined()
    shiftMs = 400_001
    expect(chain.stillPosition()).toBeUndefined()
    // Every append renews the lease first.
    await chain.append(makeEntries('a'))
    await chain.whenApplied(1)
    expect(chain.stillPosition()).toMatchObject({ height: 1 })
    const closing = chain.close()
    expect(chain.stillPosition()).toBeUndefined()
    await closing
    expect(chain.stillPosition()).toBeUndefined()
  })
})
