import { DatabaseError } from 'pg'
import { expect, test } from 'vitest'
import { Gatherer } from './gatherer.ts'

const mebibyte = 1024 * 1024

/** Runs all of these at once; gives the batches that they came in. */
async function gather(
  weights: readonly number[],
  run: (batch: readonly number[]) => void = () => undefined,
) {
  const batches: (readonly number[])[] = []
  const gatherer = new Gatherer(
    async (batch: readonly number[]) => {
      batches.push(batch)
      run(batch)
      return batch
    },
    (weight) => weight,
  )
  const outcomes = await Promise.allSettled(weights.map((weight) => gatherer.add(weight)))
  return { batches, outcomes }
}

function makeError(code: string): DatabaseError {
  return Object.assign(new DatabaseError('refused', 0, 'error'), { code, severity: 'ERROR' })
}

test('large ones are few to a batch, and one that is larger than a batch is one of its own', async () => {
  const eight = Array.from({ length: 40 }, () => 8 * mebibyte)
  const { batches } = await gather([...eight, 1, 40 * mebibyte, 1])
  expect(Math.max(...batches.slice(0, 20).map(({ length }) => length))).toBe(2)
  expect(batches.flat()).toEqual([...eight, 1, 40 * mebibyte, 1])
  expect(batches.slice(-3)).toEqual([[1], [40 * mebibyte], [1]])
  expect((await gather(Array.from({ length: 300 }, () => 1))).batches).toHaveLength(3)
})

test('one that the database refuses is refused alone; where a lock takes too long, nobody waits for it twice', async () => {
  const refusesTwo = await gather([1, 2, 3], (batch) => {
    if (batch.includes(2)) throw makeError('22P05')
  })
  expect(refusesTwo.outcomes.map(({ status }) => status)).toEqual([
    'fulfilled',
    'rejected',
    'fulfilled',
  ])
  const isSlow = await gather([1, 2, 3], () => {
    throw makeError('57014')
  })
  expect(isSlow.batches).toHaveLength(1)
  expect(isSlow.outcomes.map(({ status }) => status)).toEqual(Array(3).fill('rejected'))
})

test('the next batch begins before those of the last one go on, and they do not wait for its end', async () => {
  const order: string[] = []
  const ends: (() => void)[] = []
  const gatherer = new Gatherer(async (batch: readonly string[]) => {
    order.push(`run ${batch.join(' ')}`)
    await new Promise<void>((resolve) => ends.push(resolve))
    return batch
  })
  const add = (one: string) => gatherer.add(one).then(() => order.push(`told ${one}`))
  const begun = async (count: number) => {
    while (ends.length < count) await new Promise(setImmediate)
  }
  const first = add('a')
  await begun(1)
  const others = [add('b'), add('c')]
  ends[0]?.()
  await first
  expect(order).toEqual(['run a', 'run b c', 'told a'])
  ends[1]?.()
  await Promise.all(others)
  expect(order.slice(3)).toEqual(['told b', 'told c'])
})
