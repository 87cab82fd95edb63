import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { isLocked, lockFolder } from './lock.ts'
import { findStartTime, isAlive } from './process-info.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lock-test-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const deadPid = async (): Promise<number> => {
  const child = spawn('true')
  await once(child, 'exit')
  return child.pid ?? 0
}

test('a folder has one user: the second is refused, naming the folder and the process', () => {
  const unlock = lockFolder(folder)
  expect(isLocked(folder)).toBe(true)
  expect(() => lockFolder(folder)).toThrow(
    `the data folder ${folder} is in use by the process ${process.pid}`,
  )
  unlock()
  expect(isLocked(folder)).toBe(false)
  lockFolder(folder)()
  expect(readdirSync(folder)).toEqual([])
})

test('the lock of a dead process, of a later process with its id, and an unreadable one are taken over', async () => {
  for (const content of [
    `${await deadPid()} 1\n`,
    `${process.pid} 1\n`,
    '',
    'nonsense',
    '0 1',
    '-1 1',
  ]) {
    writeFileSync(join(folder, 'lock'), content)
    expect(isLocked(folder)).toBe(false)
    const unlock = lockFolder(folder)
    expect(readFileSync(join(folder, 'lock'), 'utf8')).toBe(
      `${process.pid} ${findStartTime(process.pid)}\n`,
    )
    unlock()
    expect(readdirSync(folder)).toEqual([])
  }
})

test('releasing a lock that another process has taken over leaves it', () => {
  const unlock = lockFolder(folder)
  writeFileSync(join(folder, 'lock'), '1 1\n')
  unlock()
  expect(readFileSync(join(folder, 'lock'), 'utf8')).toBe('1 1\n')
})

test('a process that has ended but was not collected is not alive', async () => {
  const parent = spawn('/bin/sh', ['-c', 'sleep 0 & echo $!; exec sleep 5'])
  const [line] = await once(parent.stdout, 'data')
  await new Promise((resolve) => setTimeout(resolve, 100))
  expect(isAlive(Number(String(line)))).toBe(false)
  expect(isAlive(parent.pid ?? 0)).toBe(true)
  parent.kill('SIGKILL')
})
