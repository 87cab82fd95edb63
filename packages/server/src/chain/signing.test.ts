import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  formatCheckpoint,
  parseVerifierKey,
  verifyCheckpoint,
  verifySignature,
} from '@tollbase/verify/checkpoint'
import { emptyRoot } from '@tollbase/verify/tree'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createSigningKey, loadSigner } from './signing.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tollbase-signing-'))
})
afterAll(() => rm(folder, { recursive: true }))

test('a key is made once, readable by its owner only, even where several ask at once', async () => {
  const path = join(folder, 'new', 'chain-key.pem')
  const signers = await Promise.all(
    Array.from({ length: 5 }, async () => {
      await createSigningKey(path)
      return loadSigner(path, 'data.example')
    }),
  )
  expect(new Set(signers.map((each) => each.vkey)).size).toBe(1)
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  expect(await readdir(join(folder, 'new'))).toEqual(['chain-key.pem'])
  expect((await loadSigner(path, 'data.example')).vkey).toBe(signers[0]?.vkey)
})

test('a signature of the key verifies with the published key', async () => {
  const path = join(folder, 'chain-key.pem')
  await createSigningKey(path)
  const signer = await loadSigner(path, 'data.example')
  const message = Buffer.from('message')
  expect(
    verifySignature(signer.sign(message), message, parseVerifierKey(signer.vkey).publicKey),
  ).toBe(true)
  const note = signer.signNote(
    formatCheckpoint({ origin: 'data.example', size: 0, root: emptyRoot }),
  )
  expect(verifyCheckpoint(note, signer.vkey).ok).toBe(true)
})

test('a file that is no key is refused and left alone', async () => {
  const path = join(folder, 'not-a-key.pem')
  await writeFile(path, 'not a key')
  await expect(loadSigner(path, 'data.example')).rejects.toThrow(`${path} is no signing key`)
  expect(await readFile(path, 'utf8')).toBe('not a key')
})
