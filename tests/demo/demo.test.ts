import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, describe, expect, test } from 'vitest'
import { getBundle } from '../support/bundle.ts'

const run = promisify(execFile)
const repository = new URL('../..', import.meta.url)
/** The demo makes its data folder in here. */
const folder = mkdtempSync(join(tmpdir(), 'tollbase-demo-test-'))
const options = { cwd: repository, env: { ...process.env, TMPDIR: folder }, timeout: 60_000 }

afterAll(() => rmSync(folder, { recursive: true, force: true }))

function tollbase(...args: string[]) {
  return run(process.execPath, [getBundle('packages/cli/src/main.ts'), ...args], options)
}

describe('tollbase demo', () => {
  test('the demo plays all its steps within a minute, and everything holds', async () => {
    const { stdout } = await tollbase('demo', '--rows', '3000', '--keep')
    expect(stdout).toMatch(/\n11\/11 [\s\S]*✓ equal: /)
    expect(stdout).toContain('All 11 steps held')
    expect(stdout).not.toContain('\x1b')
    expect(stdout).not.toContain('✗ Step')
  })

  test('the demo leaves receipts and a proof that `tollbase verify` accepts, and accepts for nothing else', async () => {
    const [kept = ''] = readdirSync(folder).filter((name) => name.startsWith('tollbase-demo-'))
    const file = (name: string) => join(folder, kept, name)
    const keyIn = (name: string) => ['--key', readFileSync(file(name), 'utf8')]
    const verifyReceipt = (reply: string) =>
      tollbase('verify', file('receipt-1.json'), ...keyIn('receipt-key'), '--reply', file(reply))
    expect((await verifyReceipt('reply-1.json')).stdout).toContain('receipt-1.json: valid')
    const proof = await tollbase('verify', file('record-proof.json'), ...keyIn('record-key'))
    expect(proof.stdout).toContain('record-proof.json: valid')
    for (const name of ['receipt-1.json', 'record-proof.json'])
      await expect(tollbase('verify', file(name))).rejects.toMatchObject({
        code: 2,
        stdout: '',
        stderr: expect.stringMatching(/not verified.*--key/),
      })
    const another = verifyReceipt('reply-2.json')
    await expect(another).rejects.toMatchObject({
      code: 1,
      stdout: expect.stringContaining('✗ reply: the receipt is for another reply'),
    })
    rmSync(join(folder, kept), { recursive: true, force: true })
  })

  test('a demo that is interrupted stops what it started and leaves nothing behind', async () => {
    const playing = tollbase('demo')
    playing.child.stdout?.on('data', (text) => {
      if (String(text).includes(' 2/11 ')) setTimeout(() => playing.child.kill('SIGINT'), 1000)
    })
    await expect(playing).rejects.toMatchObject({ code: 130 })
    const left = readdirSync(folder).filter((name) => name.startsWith('tollbase-demo-'))
    expect(left.filter((name) => existsSync(join(folder, name)))).toEqual([])
  })
})
