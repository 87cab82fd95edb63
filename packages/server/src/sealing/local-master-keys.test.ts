import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createMasterKeyFile, readKeyFile } from './key-file.ts'
import { parseMasterKeys, unwrapKey, wrapKey } from './local-master-keys.ts'

const makeText = () => randomBytes(32).toString('base64')

describe('master keys', () => {
  test('a wrapped key opens for its owner alone, also after the master key got a successor', () => {
    const [old, fresh] = [makeText(), makeText()]
    const plain = randomBytes(32)
    const wrapped = wrapKey(parseMasterKeys(old, 'a test'), plain, { owner: 'o', randomBytes })
    const both = parseMasterKeys(`${fresh}\n${old}\n`, 'a test')
    expect(unwrapKey(both, wrapped, 'o')).toEqual(plain)
    expect(() => unwrapKey(both, wrapped, 'p')).toThrow()
    expect(unwrapKey(parseMasterKeys(fresh, 'a test'), wrapped, 'o')).toBeUndefined()
    const changed = Buffer.from(wrapped.wrapped)
    changed[20] = (changed[20] ?? 0) ^ 1
    expect(() => unwrapKey(both, { ...wrapped, wrapped: changed }, 'o')).toThrow()
    const again = wrapKey(both, plain, { owner: 'o', randomBytes })
    expect(again.masterKey).not.toBe(wrapped.masterKey)
    expect(again.wrapped.includes(plain)).toBe(false)
  })

  test('text that is no list of 32 byte keys is refused with the name of its source', () => {
    for (const text of ['', ' \n', 'short', `${makeText()},x`])
      expect(() => parseMasterKeys(text, 'the file')).toThrow('the file')
  })

  test('the file of master keys is for its owner alone, and never made twice', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tollbase-keys-'))
    try {
      const path = join(folder, 'inner', 'master-keys')
      expect(await readKeyFile(path)).toBeUndefined()
      await Promise.all([
        createMasterKeyFile(path, randomBytes),
        createMasterKeyFile(path, randomBytes),
      ])
      const keys = await readKeyFile(path)
      expect(statSync(path).mode & 0o777).toBe(0o600)
      await createMasterKeyFile(path, randomBytes)
      expect(await readKeyFile(path)).toEqual(keys)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })
})
