import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getBundle } from '@tollbase/testing/bundle'
import { takeShare } from '@tollbase/testing/by-commit'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { startProgram } from '../support/program.ts'
import { send } from '../support/service.ts'

/** Each test waits for several commands, each with its database. */
vi.setConfig({ testTimeout: 300_000 })

const root = mkdtempSync(join(tmpdir(), 'tollbase-long-work-'))
const at = (name: string) => join(root, name)
/** The service that the work is about, and the empty one that an application moves to. */
const [home, other] = [at('home'), at('other')]
const records = 4_000
let key = ''

beforeAll(async () => {
  const program = startProgram(home)
  const url = await program.url
  const headers = readOperator(home)
  const made = await send(url, {
    ...{ method: 'POST', path: '/api/apps', headers },
    body: { name: 'shop', app_id: 'shop' },
  })
  const own = { 'x-app-key': made.body.app_key }
  for (let from = 0; from < records; from += 500) {
    const data = Array.from({ length: 500 }, (_, n) => ({
      id: `r${from + n}`,
      text: 'x'.repeat(300),
    }))
    const body = { root: 'shop::items', data }
    const stored = await send(url, { method: 'POST', path: '/store', headers: own, body })
    expect(stored.status).toBe(202)
  }
  for (let n = 0; n < 20; n++) {
    const form = new FormData()
    form.append('blob', new Blob([`picture ${n} `.repeat(20_000)]), 'picture')
    const path = `${url}/api/apps/shop/blobs/pictures?wait=true`
    expect((await fetch(path, { method: 'POST', body: form, headers: own })).status).toBe(200)
  }
  const checkpoint = { method: 'GET', path: '/api/apps/shop/chain/checkpoint', headers: own }
  key = (await send(url, checkpoint)).body.key
  expect(await program.end('SIGTERM')).toBe(0)
  const empty = startProgram(other)
  await empty.url
  expect(await empty.end('SIGTERM')).toBe(0)
}, 120_000)
afterAll(() => rmSync(root, { recursive: true, force: true }))

function readOperator(dataDir: string) {
  return { authorization: `Bearer ${readFileSync(join(dataDir, 'operator-key'), 'utf8').trim()}` }
}

type Ended = { readonly code: number | null; readonly ms: number; readonly output: string }

/** Runs a command of the program, to its end or to a kill -9 after some time. */
async function run(args: readonly string[], killAfterMs?: number): Promise<Ended> {
  const startedAt = performance.now()
  const child = spawn(process.execPath, [getBundle('packages/cli/src/main.ts'), ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  const timer =
    killAfterMs === undefined ? undefined : setTimeout(() => child.kill('SIGKILL'), killAfterMs)
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  clearTimeout(timer)
  return { code, ms: performance.now() - startedAt, output }
}

/** The parts of a command's time after which it is killed; a first run takes longer than those after it. */
const parts = [0.2, 0.3, 0.4, 0.5, 0.6, 0.7]

/**
 * Kills a command again and again, each time later, and then lets it end: it must not need anything but to be run
 * again. `undo` makes room for one that was done before it could be killed, and refuses to be run once more.
 */
async function killAndRepeat(
  args: readonly string[],
  fullMs: number,
  undo?: () => void,
): Promise<Ended> {
  let killed = 0
  // One that was faster this time is killed sooner.
  for (const part of takeShare(parts, 3))
    for (let afterMs = fullMs * part; afterMs > 50; afterMs /= 2) {
      const ended = await run(args, afterMs)
      if (ended.code === null) {
        killed += 1
        break
      }
      // It was killed before and is done now: some commands refuse to be run once more.
      if (killed > 0) return ended
      undo?.()
    }
  expect(killed, 'a kill in the middle').toBeGreaterThan(0)
  return run(args)
}

async function expectEqual(dataDir: string): Promise<void> {
  const { code, output } = await run(['audit', '--data-dir', dataDir])
  expect(code, output).toBe(0)
}

test('F1: a rebuild that is killed again and again leaves the tables as they were, and ends when it is run again', async () => {
  const args = ['rebuild', '--data-dir', home]
  const { ms: fullMs, code } = await run(args)
  expect(code).toBe(0)
  expect((await killAndRepeat(args, fullMs)).code).toBe(0)
  await expectEqual(home)
})

test('F11: a backup that is killed again and again is whole when it is run again, and so is its restore', async () => {
  for (const name of ['first', 'keys', 'backup', 'whole', 'restored'])
    rmSync(at(name), { recursive: true, force: true })
  const to = ['--to', at('backup'), '--keys-to', at('keys')]
  const first = await run([
    'backup',
    '--data-dir',
    home,
    '--to',
    at('first'),
    '--keys-to',
    at('keys'),
  ])
  expect(first.code, first.output).toBe(0)
  const made = await killAndRepeat(['backup', '--data-dir', home, ...to], first.ms)
  expect(made.code, made.output).toBe(0)
  const from = ['--from', at('backup'), '--keys', at('keys')]
  const whole = await run(['restore', ...from, '--data-dir', at('whole')])
  expect(whole.code, whole.output).toBe(0)
  const args = ['restore', ...from, '--data-dir', at('restored')]
  const remove = () => rmSync(at('restored'), { recursive: true, force: true })
  const restored = await killAndRepeat(args, whole.ms, remove)
  // A kill after the last step finds it done.
  if (restored.code !== 0) expect(restored.output).toMatch(/the folder holds a service's data/)
  await expectEqual(at('restored'))
})

test('F11: an export that is killed leaves a folder that is named and never imported; an import that is killed is run again', async () => {
  const exportTo = (name: string) => [
    ...['export-app', '--app', 'shop', '--data-dir', home],
    ...['--to', at(name)],
  ]
  const first = await run(exportTo('moved'))
  expect(first.code, first.output).toBe(0)
  await run(exportTo('half'), first.ms * 0.8)
  const isHalf = existsSync(at('half')) && !readdirSync(at('half')).includes('application.json')
  const importFrom = (name: string) => [
    ...['import-app', '--from', at(name), '--key', key],
    ...['--data-dir', other],
  ]
  if (isHalf) {
    const again = await run(exportTo('half'))
    if (again.code !== 0) expect(again.output).toMatch(/the folder holds .*; name an empty one/)
    else rmSync(at('half'), { recursive: true })
    expect((await run(importFrom('half'))).code).toBe(2)
  }
  const imported = await killAndRepeat(importFrom('moved'), first.ms)
  // A kill after the last step finds it done.
  if (imported.code !== 0) expect(imported.output).toMatch(/shop/)
  await expectEqual(other)
  const program = startProgram(other)
  const url = await program.url
  const found = await send(url, {
    ...{ method: 'GET', path: '/api/apps/shop', headers: readOperator(other) },
  })
  expect([found.status, found.body.status]).toEqual([200, 'active'])
  expect(await program.end('SIGTERM')).toBe(0)
})
