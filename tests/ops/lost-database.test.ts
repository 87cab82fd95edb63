import { mkdtemp, readFile, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { findProcess } from '../../packages/server/src/devnet/anvil.ts'
import { startProgram } from '../support/program.ts'

let dataDir: string
beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'tollbase-'))
})
afterAll(() => rm(dataDir, { recursive: true, force: true }))

test('a database that is gone for good ends the service and its chain, with a sentence and not a stack', async () => {
  const program = startProgram(dataDir, ['--devnet'])
  await program.url
  const chain = JSON.parse(await readFile(join(dataDir, 'devnet', 'anvil.json'), 'utf8'))
  expect(findProcess(chain.pid)).toBeDefined()
  const folder = join(dataDir, 'postgres')
  const [postmaster] = (await readFile(join(folder, 'postmaster.pid'), 'utf8')).split('\n')
  await rename(folder, `${folder}-away`)
  process.kill(Number(postmaster), 'SIGKILL')
  expect(await program.ended).toBe(1)
  expect(program.output()).toContain('something did not end in order')
  expect(program.output()).not.toMatch(/^ +at /m)
  expect(findProcess(chain.pid)).toBeUndefined()
})
