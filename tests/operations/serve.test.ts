import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bundled } from '../support/bundle.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollbase-serve-'))
const first = tollbase('serve', '--port', '0', '--data-dir', join(folder, 'first'))
let url = ''

type Run = {
  readonly child: ChildProcessByStdio<null, Readable, Readable>
  readonly output: { out: string; err: string }
}

function tollbase(...args: string[]): Run {
  const child = spawn(process.execPath, [bundled('bin/tollbase.js'), ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output = { out: '', err: '' }
  child.stdout.on('data', (text) => {
    output.out += text
  })
  child.stderr.on('data', (text) => {
    output.err += text
  })
  return { child, output }
}

async function refused(...args: string[]): Promise<string> {
  const { child, output } = tollbase(...args)
  const [code] = await once(child, 'close')
  expect(code).toBe(2)
  expect(output.err).not.toContain('    at ')
  return output.err
}

beforeAll(async () => {
  while (!first.output.out.includes('tollbase listening on')) {
    if (first.child.exitCode !== null) throw new Error(first.output.err)
    await once(first.child.stdout, 'data')
  }
  url = /^tollbase listening on (http:\/\/127\.0\.0\.1:\d+)$/m.exec(first.output.out)?.[1] ?? ''
})

afterAll(() => {
  first.child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

describe('tollbase serve', () => {
  test('says in one line on stdout where it listens, and does', async () => {
    expect((await fetch(`${url}/ready`)).status).toBe(200)
    const lines = first.output.out.trimEnd().split('\n')
    expect(lines.at(-1)).toBe(`tollbase listening on ${url}`)
    expect(lines.filter((line) => line.startsWith('{'))).toEqual([])
  })

  test('refuses a port that is taken, and names it', async () => {
    const { port } = new URL(url)
    const said = await refused('serve', '--port', port, '--data-dir', join(folder, 'second'))
    expect(said).toContain(`tollbase: --port ${port}: another program listens there already`)
  })

  test('refuses a data folder that is in use, and says by whom', async () => {
    const said = await refused('serve', '--port', '0', '--data-dir', join(folder, 'first'))
    expect(said).toContain(`is in use by the process ${first.child.pid}`)
  })

  test('never tells the password of a database that it cannot reach', async () => {
    const database = 'postgres://user:secret@127.0.0.1:1/none'
    const said = await refused('serve', '--data-dir', folder, '--database-url', database)
    expect(said).toContain('--database-url: the server cannot be reached')
    expect(said).not.toContain('secret')
  })

  test('ends at once, with exit code 0, when it is told to', async () => {
    const toldAt = Date.now()
    first.child.kill('SIGTERM')
    const [code] = await once(first.child, 'close')
    expect(code).toBe(0)
    expect(first.output.err).not.toContain('did not drain')
    expect(Date.now() - toldAt).toBeLessThan(15_000)
  })
})
