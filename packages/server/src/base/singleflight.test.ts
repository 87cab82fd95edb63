import { expect, test } from 'vitest'
import { Singleflight } from './singleflight.ts'

function makeGate() {
  let open: () => void = () => undefined
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { open, opened }
}

test('the same payment for the same purpose is worked on once, and all share the outcome', async () => {
  const singleflight = new Singleflight()
  const { open, opened } = makeGate()
  let runs = 0
  const work = async () => {
    runs += 1
    await opened
    return runs
  }
  const all = Array.from({ length: 10 }, () => singleflight.run('payment', 'list', work))
  expect(singleflight.has('payment')).toBe(true)
  open()
  expect(await Promise.all(all)).toEqual(all.map(() => 1))
  expect(singleflight.has('payment')).toBe(false)
})

test('work on one payment for different purposes never overlaps, and a failure holds up nobody', async () => {
  const singleflight = new Singleflight()
  let running = 0
  const work = async (fails: boolean) => {
    running += 1
    expect(running).toBe(1)
    await new Promise((resolve) => setTimeout(resolve, 1))
    running -= 1
    if (fails) throw new Error('failed')
    return 'done'
  }
  const all = Array.from({ length: 20 }, (_, at) =>
    singleflight.run('payment', `purpose ${at}`, () => work(at % 3 === 0)).catch(() => 'failed'),
  )
  const outcomes = await Promise.all(all)
  expect(outcomes).toEqual(outcomes.map((_, at) => (at % 3 === 0 ? 'failed' : 'done')))
})

test('different payments do not wait for each other', async () => {
  const singleflight = new Singleflight()
  const { open, opened } = makeGate()
  const slow = singleflight.run('one', 'list', () => opened)
  expect(await singleflight.run('two', 'list', async () => 'done')).toBe('done')
  open()
  await slow
})

test('whoever brings one more task finds the line full; who repeats one of its tasks, or comes for something else, does not', async () => {
  const singleflight = new Singleflight()
  const { open, opened } = makeGate()
  const runs: string[] = []
  const run = (task: string) =>
    singleflight.run('payment', task, async () => {
      runs.push(task)
      await opened
    })
  expect(singleflight.isFull('payment', 'first', 0)).toBe(false)
  const all = ['first', 'second', 'third', 'second', 'first'].map(run)
  const isFull = (task: string) => singleflight.isFull('payment', task, 2)
  expect(['first', 'third', 'fourth'].map(isFull)).toEqual([false, false, true])
  expect(singleflight.isFull('payment', 'fourth', 3)).toBe(false)
  expect(singleflight.isFull('other', 'fourth', 2)).toBe(false)
  // A part that asks nobody takes its turn nevertheless.
  all.push(run('fourth'))
  open()
  await Promise.all(all)
  expect(runs).toEqual(['first', 'second', 'third', 'fourth'])
  expect(singleflight.size).toBe(0)
})
