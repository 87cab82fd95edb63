import { limits } from '@tollbase/contract/limits'
import { describe, expect, test } from 'vitest'
import { Semaphore } from '../../base/semaphore.ts'
import { realWorld } from '../../base/world.ts'
import { ShortReads } from '../../services/reading/short-reads.ts'
import { runWithConditions } from './run-with-conditions.ts'

type Asked = Parameters<typeof runWithConditions>[0]

describe('the conditions of a batch', () => {
  test('together have less time than others wait who write to the collections, with their waits for turns', async () => {
    const timers: { ms: number; call: () => void }[] = []
    const every = (ms: number, call: () => void) => {
      timers.push({ ms, call })
      return () => undefined
    }
    const semaphore = new Semaphore({
      world: realWorld,
      ...{ atOnceMax: 1, waitingMax: 9, waitingOfApplicationMax: 9, waitingOfCallerMax: 9 },
      waitMs: 60_000,
    })
    const shortReads = new ShortReads({
      world: realWorld,
      boundMs: 100,
      slowForMs: 0,
      atOnceMax: 9,
    })
    const slow = () => Promise.reject(Object.assign(new Error('slow'), { code: '57014' }))
    const asked = {
      caller: { kind: 'operator' },
      requestInfo: { context: { getAbortSignal: () => new AbortController().signal } },
      service: {
        world: { ...realWorld, every },
        queryRunner: { database: { queryShort: slow }, semaphore, shortReads },
      },
    } as unknown as Asked
    const others = { application: 'shop', caller: 'a', rank: 'key' } as const
    semaphore.run(others, () => new Promise(() => undefined)).catch(() => undefined)
    await runWithConditions(asked, 'shop', async (runConditions) => {
      const waiting = runConditions({ text: 'SELECT 1', values: [] })
      await expect.poll(() => semaphore.stats()).toEqual({ running: 1, waiting: 1 })
      for (const { ms, call } of timers) {
        expect(ms).toBe(limits.batchConditionsMs)
        call()
      }
      await expect(waiting).rejects.toMatchObject({ code: 'QUERY_TIMEOUT' })
      expect(semaphore.stats()).toEqual({ running: 1, waiting: 0 })
      await expect(runConditions({ text: 'SELECT 1', values: [] })).rejects.toMatchObject({
        code: 'QUERY_TIMEOUT',
      })
    })
  })
})
