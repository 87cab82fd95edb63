import { generateKeyPairSync, sign } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeSigner } from '@tollbase/server/chain/signing'
import { formatCheckpoint, formatNote, parseCheckpoint } from '@tollbase/verify/checkpoint'
import {
  encodeCosignedMessage,
  formatCosignature,
  formatWitnessKey,
  parseWitnessKey,
} from '@tollbase/verify/cosignature'
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

test('no text of a document reaches the terminal as a command', async () => {
  const { privateKey } = generateKeyPairSync('ed25519')
  const { vkey } = makeSigner(privateKey, 'service.example/shop')
  const text = JSON.stringify({ type: 'tollbase/record-proof@v1', app: '\u001b[8m\nvalid' })
  const forged = file('forged', text.replace('"app"', '"key":"\\u001b[2K\\nforged: valid","app"'))
  for (const args of [
    [forged],
    [forged, '--key', vkey],
    [file('other', '{"type":"\\u001b[8m"}')],
  ]) {
    const { code, said } = await verify(...args)
    expect(code).not.toBe(0)
    expect(said).not.toContain('\u001b')
    expect(said).not.toContain('\nforged: valid')
  }
})

describe('files that cannot be verified at all', () => {
  test.each([
    [
      'a file that is not there',
      [join(folder, 'missing')],
      'missing cannot be read: there is no such file',
    ],
    ['a folder', [folder], 'is a folder, not a file'],
    [
      'a member that comes twice',
      [file('twice', '{"type": "a", "type": "b"}')],
      'the member "type" twice',
    ],
    ['garbage', [file('garbage', '\u0000 not json')], 'the document is not JSON'],
    ['another list', [file('list', '[1]')], 'not a JSON object with a `type`'],
    ['another document', [file('package', '{"type": "module"}')], 'known are tollbase/'],
    [
      'a refusal of the service',
      [file('refusal', '{"error": "There is no receipt x\\u001b", "code": "RECEIPT_NOT_FOUND"}')],
      'it holds no document, but a refusal of the service (RECEIPT_NOT_FOUND: There is no receipt x\ufffd)',
    ],
    ['a bad key', [proof, '--key', 'abc'], '--key: a verifier key has the form'],
    [
      'a missing reply',
      [proof, '--reply', join(folder, 'gone')],
      'gone cannot be read: there is no such file',
    ],
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

describe('the note of a checkpoint', () => {
  const service = generateKeyPairSync('ed25519')
  const signer = makeSigner(service.privateKey, 'service.example/shop')
  const root = new Uint8Array(32).fill(7)
  const note = signer.signNote(formatCheckpoint({ origin: 'service.example/shop', size: 12, root }))
  const cosign = (name: string) => {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519')
    const raw = new Uint8Array(publicKey.export({ format: 'der', type: 'spki' }).subarray(-32))
    const vkey = formatWitnessKey(name, raw)
    const time = 1_700_000_000
    const text = note.slice(0, note.indexOf('\n\n') + 1)
    const message = encodeCosignedMessage(text, time)
    const signature = new Uint8Array(sign(null, message, privateKey))
    const line = formatCosignature(parseWitnessKey(vkey), { time, signature })
    const { signatures } = parseCheckpoint(note)
    return { vkey, note: formatNote(text, [...signatures, line]) }
  }
  const [witness, other] = [cosign('witness.example'), cosign('other.example')]

  test('is valid by the key of the log, and with --witness by the witness that is named alone', async () => {
    const plain = file('plain.note', note)
    const signed = file('signed.note', witness.note)
    const at = ['--key', signer.vkey]
    const valid = await verify(plain, ...at)
    expect(valid).toMatchObject({ code: 0, said: expect.stringContaining('12 entries') })
    expect(valid.said).toContain('witness, unchecked')
    expect((await verify(plain, ...at, '--witness', witness.vkey)).code).toBe(1)
    const both = await verify(signed, ...at, '--witness', witness.vkey)
    expect(both).toMatchObject({ code: 0, said: expect.stringContaining('witness.example signed') })
    expect((await verify(signed, ...at, '--witness', witness.vkey, other.vkey)).code).toBe(1)
    const forged = file('forged.note', witness.note.replace('\n12\n', '\n13\n'))
    expect((await verify(forged, ...at, '--witness', witness.vkey)).code).toBe(1)
    expect((await verify(signed, '--key', other.vkey)).code).toBe(2)
    expect((await verify(signed, '--witness', witness.vkey)).code).toBe(2)
    expect((await verify(signed, ...at, '--witness', signer.vkey)).said).toContain('--witness:')
    const asked = await verify(proof, ...at, '--witness', witness.vkey)
    expect(asked).toMatchObject({ code: 2, said: expect.stringContaining('for the note') })
  })
})
