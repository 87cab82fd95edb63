import { expect, test } from 'vitest'
import { realWorld, type World } from '../../base/world.ts'
import { catchUp } from './view-sources.ts'

test('a reader does not wait for ever for a live view to be brought on', async () => {
  const waits: number[] = []
  const world: World = {
    ...realWorld,
    every: (ms, call) => {
      waits.push(ms)
      queueMicrotask(call)
      return () => undefined
    },
  }
  const chain = { whenCaughtUp: () => new Promise<void>(() => undefined) }
  const data = { waiting: { isBehind: ({ id }: { id: string }) => id === 'slow' } }
  await catchUp(world, { chain, data }, { id: 'slow' })
  expect(waits).toEqual([1_000])
  await catchUp(world, { chain, data }, { id: 'quick' })
  expect(waits).toHaveLength(1)
})
