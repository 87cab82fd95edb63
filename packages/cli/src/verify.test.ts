import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest'
import { runCommand } from './commands.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollbase-verify-'))

afterAll(() => rmSync(folder, { recursive: true, force: true }))
afterEach(() => vi.restoreAllMocks())

async function verify(...args: string[]) {
  const said: string[] = []
  vi.spyOn(console, 'error').mockImplementation((text) => said.push(String(text)))
  vi.spyOn(console, 'log').mockImplementation((text) => said.push(String(text)))
  return { code: await runCommand(['verify', ...args]), said: said.join('\n') }
}

function file(name: string, content: string): string {
  const path = join(folder, name)
  writeFileSync(path, content)
  return path
}

const proof = file('proof.json', '{"type": "tollbase/record-proof@v1"}')

describe('files that cannot be verified at all', () => {
  test.each([
    ['a file that is not there', [join(folder, 'missing')], 'missing: there is no such file'],
    ['a folder', [folder], 'is a folder, not a file'],
    [
      'a member that comes twice',
      [file('twice', '{"type": "a", "type": "b"}')],
      'the member "type" twice',
    ],
    ['garbage', [file('garbage', '\u0000 not json')], 'the document is not JSON'],
    ['another list', [file('list', '[1]')], 'not a JSON object with a `type`'],
    ['another document', [file('package', '{"type": "module"}')], 'known are tollbase/'],
    ['a bad key', [proof, '--key', 'abc'], '--key: a verifier key has the form'],
    ['a missing reply', [proof, '--reply', join(folder, 'gone')], 'gone: there is no such file'],
  ])(
    'a file like this one is refused in one line, with exit code 2: %s',
    async (_, args, expected) => {
      const { code, said } = await verify(...args)
      expect(code).toBe(2)
      expect(said).toContain(expected)
      expect(said.split('\n')).toHaveLength(1)
      const asJson = await verify(...args, '--json')
      expect(asJson.code).toBe(2)
      expect(JSON.parse(asJson.said).error).toContain(expected)
    },
  )
})

test('a document of ours that lacks a part is not valid, and the exit code is 1', async () => {
  const { code, said } = await verify(proof)
  expect(code).toBe(1)
  expect(said).toContain('✗ format: "app" must be a string')
  expect(said).toContain('NOT valid')
})
