import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { getBundle } from '@tollbase/testing/bundle'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { realWorld } from '../base/world.ts'
import { KeyCommandError, KeyCommandRunner } from './key-command.ts'

describe('KeyCommandRunner', () => {
  const app = 'shop'
  let folder: string

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'tollbase-key-command-'))
    writeFileSync(join(folder, 'manager-key'), randomBytes(32).toString('base64'))
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  const make = (program: string, list: readonly string[], timeoutMs = 10_000) =>
    new KeyCommandRunner(
      { ...{ id: 'k1', program, arguments: list, timeoutMs }, cacheMs: 1_000, unwrapOnly: false },
      realWorld,
    )
  const shell = (text: string, timeoutMs?: number) => make('sh', ['-c', text], timeoutMs)

  test('a key that the example program wraps opens again, for its owner alone', async () => {
    const runner = make(process.execPath, ['examples/key-command.mjs', join(folder, 'manager-key')])
    const plain = randomBytes(32)
    const wrapped = await runner.wrap(plain, { owner: 'one', app })
    expect(wrapped.masterKey).toBe('command:k1')
    expect(wrapped.wrapped.includes(plain.toString('base64'))).toBe(false)
    const [opened, refused] = await Promise.allSettled([
      runner.unwrap(wrapped, { owner: 'one', app }),
      runner.unwrap(wrapped, { owner: 'other', app }),
    ])
    expect(opened).toEqual({ status: 'fulfilled', value: plain })
    expect(refused.status).toBe('rejected')
  })

  test('whatever a program does wrong is told with what to do, without the key, and nobody waits longer than its time', async () => {
    const plain = Buffer.alloc(32, 7)
    const secret = plain.toString('base64')
    const wrong: readonly [KeyCommandRunner, string][] = [
      [make('./no-such-program', []), 'cannot be started'],
      [shell('echo no such vault >&2; exit 3'), 'ended with 3: no such vault'],
      [shell('exit 1'), 'it said nothing on stderr'],
      [shell('cat'), 'printed no JSON object with a text "wrapped"'],
      [shell('echo []'), 'printed no JSON object'],
      [shell(`echo '{"wrapped":""}'`), 'printed no JSON object'],
      [shell('yes'), 'printed more than'],
      [shell('sleep 60 & sleep 60', 100), 'did not end within 0.1 seconds'],
    ]
    await Promise.all(
      wrong.map(async ([runner, problem]) => {
        const error: unknown = await runner.wrap(plain, { owner: 'o', app }).catch((one) => one)
        expect(error).toBeInstanceOf(KeyCommandError)
        const { message } = error as KeyCommandError
        expect(message).toContain(problem)
        expect(message).toContain('docs/encryption.md')
        expect(message).not.toContain(secret)
      }),
    )
    const wrapped = { masterKey: 'command:k1', wrapped: Buffer.from('w') }
    const short = shell(`echo '{"key":"AAAA"}'`).unwrap(wrapped, { owner: 'o', app })
    await expect(short).rejects.toThrow('32 bytes in base64')
  })

  test('an application whose many keys wait for the program keeps no other one waiting', async () => {
    const runner = shell(`sleep 0.1; echo '{"key":"${Buffer.alloc(32).toString('base64')}"}'`)
    const wrapped = { masterKey: 'command:k1', wrapped: Buffer.from('w') }
    let ended = 0
    const many = Array.from({ length: 40 }, async () => {
      await runner.unwrap(wrapped, { owner: 'o', app: 'many' })
      ended += 1
    })
    await runner.unwrap(wrapped, { owner: 'o', app: 'other' })
    expect(ended).toBeLessThan(20)
    await Promise.all(many)
  })

  test('where the process may open no further files, the call is refused, and the process goes on', async () => {
    const script = `
      import { openSync } from 'node:fs'
      const { KeyCommandRunner } = await import(process.argv[1])
      const command = { id: 'k1', program: 'true', arguments: [], timeoutMs: 1_000 }
      const runner = new KeyCommandRunner(command, { every: () => () => undefined })
      try { for (;;) openSync('/dev/null') } catch {}
      const refused = await runner.wrap(Buffer.alloc(32), { owner: 'o', app: 'shop' }).catch((error) => error)
      await new Promise(setImmediate)
      console.log(refused.message)`
    const { stdout } = await promisify(execFile)('sh', [
      ...['-c', 'ulimit -n 64; exec "$0" --input-type=module -e "$1" "$2"', process.execPath],
      ...[script, getBundle('packages/server/src/sealing/key-command.ts')],
    ])
    expect(stdout).toContain('cannot be started: spawn true EMFILE')
  })
})
