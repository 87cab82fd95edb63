import { existsSync, readFileSync } from 'node:fs'
import { getPriority } from 'node:os'
import { expect, test, vi } from 'vitest'
import { sql } from '../sql.ts'
import { createTestDatabase } from '../testing.ts'
import { lowerPriority } from './lower-priority.ts'

/** The priority of a process among all, not in its own session alone: that of its group, where Linux makes groups. */
function readPriority(pid: number | undefined): number {
  const path = `/proc/${pid}/autogroup`
  if (!existsSync(path)) return getPriority(pid)
  return Number(/nice (-?\d+)/.exec(readFileSync(path, 'utf8'))?.[1])
}

test('the connections of a pool run behind those that short reads share', async () => {
  const { database, drop } = await createTestDatabase('embedded', {
    pipelines: 1,
    onConnection: lowerPriority,
  })
  const backend = sql`SELECT pg_backend_pid() AS pid`
  const [heavy] = await database.queryHeavy<{ pid: number }>(backend)
  expect(getPriority(heavy?.pid)).toBe(10)
  await vi.waitFor(() => expect(readPriority(heavy?.pid)).toBe(10), { timeout: 10_000 })
  // The pool answers short reads until a shared connection is there.
  await vi.waitFor(async () => {
    const [short] = await database.queryShort<{ pid: number }>(backend)
    expect(getPriority(short?.pid)).toBe(0)
    expect(readPriority(short?.pid)).toBe(0)
  })
  await drop()
})

test('a process that has ended is left alone', async () => {
  await expect(lowerPriority(2 ** 22 - 1)).resolves.toBeUndefined()
})
