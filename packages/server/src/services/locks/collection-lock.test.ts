import { expect, test } from 'vitest'
import type { World } from '../../base/world.ts'
import { realWorld } from '../../base/world.ts'
import { CollectionLock } from './collection-lock.ts'

/** A world whose timers run when the test says so. */
function makeHandWorld() {
  const timers = new Set<() => void>()
  const world: World = {
    ...realWorld,
    every: (_, call) => {
      timers.add(call)
      return () => timers.delete(call)
    },
  }
  const passTime = () => {
    for (const call of [...timers]) call()
  }
  return { world, timers, pass: passTime }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

function makeWork() {
  let end: () => void = () => undefined
  const done = new Promise<void>((resolve) => {
    end = resolve
  })
  return { run: () => done, end }
}

test('a writer who appends waits for the exclusive work, and goes before the next work', async () => {
  const { world, timers } = makeHandWorld()
  const lock = new CollectionLock(world)
  const order: string[] = []
  const note = (name: string) => async () => {
    order.push(name)
  }
  const first = makeWork()
  const running = lock.run(['a', 'b'], first.run)
  const second = lock.run(['b', 'c'], note('second'))
  const entered = ['a', 'b', 'c'].map((name) => lock.enter(name, note(name)))
  expect(order).toEqual(['c'])
  first.end()
  await Promise.all([running, second, ...entered])
  expect(order).toEqual(['c', 'a', 'b', 'second'])
  expect(timers.size, 'nothing is left behind').toBe(0)
})

test('exclusive work that fails frees what it had', async () => {
  const lock = new CollectionLock(realWorld)
  const failing = lock.run(['a'], () => Promise.reject(new Error('it broke')))
  const entered = lock.enter('a', async () => 'in')
  await expect(failing).rejects.toThrow('it broke')
  expect(await entered).toBe('in')
})

test('nobody waits for ever, and work that was told so is not done later', async () => {
  const { world, pass: passTime } = makeHandWorld()
  const lock = new CollectionLock(world)
  const stuck = makeWork()
  const running = lock.run(['a'], stuck.run)
  let appended = 0
  const late = lock.enter('a', async () => {
    appended += 1
  })
  const next = lock.run(['a'], async () => 'ran')
  const refused = [late, next].map((one) =>
    expect(one).rejects.toMatchObject({ code: 'UNAVAILABLE' }),
  )
  await turn()
  passTime()
  await Promise.all(refused)
  stuck.end()
  await running
  await turn()
  expect(appended).toBe(0)
})
