import { getPriority } from 'node:os'
import { expect, test, vi } from 'vitest'
import { sql } from '../sql.ts'
import { createTestDatabase } from '../testing.ts'
import { lowerPriority } from './lower-priority.ts'

test('the connections of a pool run behind those that short reads share', async () => {
  const { database, drop } = await createTestDatabase('embedded', {
    pipelines: 1,
    onConnection: lowerPriority,
  })
  const backend = sql`SELECT pg_backend_pid() AS pid`
  const [heavy] = await database.queryHeavy<{ pid: number }>(backend)
  expect(getPriority(heavy?.pid)).toBe(10)
  // The pool answers short reads until a shared connection is there.
  await vi.waitFor(async () => {
    const [short] = await database.queryShort<{ pid: number }>(backend)
    expect(getPriority(short?.pid)).toBe(0)
  })
  await drop()
})

test('a process that has ended is left alone', () => {
  expect(() => lowerPriority(2 ** 22 - 1)).not.toThrow()
})
