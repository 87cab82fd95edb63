import { expect, test } from 'vitest'
import { readSource } from './source-text.ts'

test('of statements that come together, one is read in each round of the event loop', async () => {
  const sql = 'SELECT name FROM shop::prices'
  await readSource(sql)
  let read = 0
  const all = Promise.all(
    Array.from({ length: 10 }, async () => {
      await readSource(sql)
      read += 1
    }),
  )
  for (let before = 0; before < 10; before = read) {
    await new Promise((resolve) => setImmediate(resolve))
    expect(read - before).toBeLessThanOrEqual(1)
  }
  await all
})
