import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { getBundle } from '../support/bundle.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollbase-serve-'))
const first = tollbase('serve', '--port', '0', '--data-dir', join(folder, 'first'))
let url = ''

type Run = {
  readonly child: ChildProcessByStdio<null, Readable, Readable>
  readonly output: { out: string; err: string }
}

function tollbase(...args: string[]): Run {
  const child = spawn(process.execPath, [getBundle('packages/cli/src/main.ts'), ...args], {
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

async function untilReady({ child, output }: Run): Promise<void> {
  const ended = once(child, 'close')
  while (!output.out.includes('tollbase listening on')) {
    if (child.exitCode !== null) throw new Error(output.err)
    await Promise.race([once(child.stdout, 'data'), ended])
  }
}

/** Starts the service on the folder, and ends it when it is ready; gives what it wrote to stderr. */
async function startOnce(dataDir: string, command = 'serve', ...more: string[]): Promise<string> {
  const run = tollbase(command, '--port', '0', '--data-dir', dataDir, ...more)
  await untilReady(run)
  run.child.kill('SIGTERM')
  await once(run.child, 'close')
  return run.output.err
}

beforeAll(async () => {
  await untilReady(first)
  url = /^tollbase listening on (http:\/\/127\.0\.0\.1:\d+)$/m.exec(first.output.out)?.[1] ?? ''
})

afterAll(() => {
  first.child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

describe('tollbase serve', () => {
  test('the program says in one line on stdout where it listens, and listens there', async () => {
    expect((await fetch(`${url}/ready`)).status).toBe(200)
    const lines = first.output.out.trimEnd().split('\n')
    expect(lines.at(-1)).toBe(`tollbase listening on ${url}`)
    expect(lines.filter((line) => line.startsWith('{'))).toEqual([])
  })

  test('the program refuses a port that is taken, and names it', async () => {
    const { port } = new URL(url)
    const said = await refused('serve', '--port', port, '--data-dir', join(folder, 'second'))
    expect(said).toContain(`tollbase: --port ${port}: another program listens there already`)
  })

  test('the program refuses a data folder that is in use, and says by whom', async () => {
    const said = await refused('serve', '--port', '0', '--data-dir', join(folder, 'first'))
    expect(said).toContain(`is in use by the process ${first.child.pid}`)
  })

  test('the program refuses a taken port before it starts a database', async () => {
    const { port } = new URL(url)
    const dataDir = join(folder, 'never')
    await refused('serve', '--port', port, '--data-dir', dataDir)
    expect(existsSync(dataDir)).toBe(false)
  })

  test('the program refuses a host that is none of this machine, and a data folder that is a file, before it starts a database', async () => {
    const dataDir = join(folder, 'never')
    const flags = ['serve', '--port', '0', '--data-dir', dataDir]
    const host = await refused(...flags, '--host', '192.0.2.1')
    expect(host).toContain('--host 192.0.2.1: cannot be listened on')
    expect(host).toContain('such as 127.0.0.1')
    expect(existsSync(dataDir)).toBe(false)
    writeFileSync(dataDir, '')
    expect(await refused(...flags)).toContain('it is a file, or in one, and not a folder')
    rmSync(dataDir)
  })

  test.runIf(process.platform === 'linux')(
    'the program refuses a data folder that its file system does not make, and does not try for ever',
    async () => {
      const said = await refused('serve', '--port', '0', '--data-dir', '/proc/tollbase/data')
      expect(said).toContain('--data-dir /proc/tollbase/data cannot be used: its file system makes')
    },
  )

  test('the program refuses to go on without the key that its chains are signed with, and makes no new one', async () => {
    const dataDir = join(folder, 'lost-key')
    await startOnce(dataDir)
    const key = join(dataDir, 'signing-key.pem')
    const kept = readFileSync(key)
    rmSync(key)
    const lost = await refused('serve', '--port', '0', '--data-dir', dataDir)
    expect(lost).toContain(
      `${key}, the service's signing key, is missing; restore it from a backup`,
    )
    expect(existsSync(key)).toBe(false)
    copyFileSync(join(folder, 'first', 'signing-key.pem'), key)
    const others = await refused('serve', '--port', '0', '--data-dir', dataDir)
    expect(others).toContain('data folder and database belong to different services')
    writeFileSync(key, kept)
    await startOnce(dataDir)
  })

  test('the program refuses a devnet that lost its chain, and one of another database', async () => {
    const dataDir = join(folder, 'devnet')
    const flags = ['dev', '--port', '0', '--data-dir', dataDir]
    await startOnce(dataDir, 'dev')
    const devnet = join(dataDir, 'devnet')
    renameSync(join(devnet, 'state.json'), join(folder, 'state.json'))
    expect(await refused(...flags)).toContain('the state of the devnet is gone')
    rmSync(devnet, { recursive: true })
    expect(await refused(...flags)).toContain(
      'data folder and database belong to different services',
    )
  })

  test.each([
    ['json', /^\{"level":30,/m],
    ['pretty', /^\[\d\d:\d\d:\d\d\.\d{3}\] INFO.*: PostgreSQL is running/m],
  ])(
    'the program writes its log as %s where that is asked for, and warns of nothing when it ends in order',
    async (format, expected) => {
      const err = await startOnce(join(folder, 'logs'), 'serve', '--log-format', format)
      expect(err).toMatch(expected)
      expect(err).not.toMatch(/"level":[456]0|WARN|ERROR/)
    },
  )

  test('the program never tells the password of a database that it cannot reach', async () => {
    const database = 'postgres://user:secret@127.0.0.1:1/none'
    const said = await refused('serve', '--data-dir', folder, '--database-url', database)
    expect(said).toContain('--database-url: no server listens at 127.0.0.1:1')
    expect(said).not.toContain('secret')
  })

  test('a Ctrl-C that npm passes on, so that it comes twice, ends the program in order', async () => {
    const dataDir = join(folder, 'twice')
    const run = tollbase('serve', '--port', '0', '--data-dir', dataDir)
    await untilReady(run)
    const ended = once(run.child, 'close')
    run.child.kill('SIGINT')
    await new Promise((resolve) => setTimeout(resolve, 10))
    run.child.kill('SIGINT')
    expect(await ended).toEqual([0, null])
    expect(run.output.err).not.toContain('did not drain')
  })

  test('the program ends at once, with exit code 0, when it is told to', async () => {
    const toldAt = Date.now()
    first.child.kill('SIGTERM')
    const [code] = await once(first.child, 'close')
    expect(code).toBe(0)
    expect(first.output.err).not.toContain('did not drain')
    expect(Date.now() - toldAt).toBeLessThan(15_000)
  })
})
