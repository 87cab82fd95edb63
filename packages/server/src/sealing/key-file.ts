import { readFile } from 'node:fs/promises'
import { createKeyFile } from '../base/create-key-file.ts'
import { aesKeyBytes } from './aes-gcm.ts'
import { type MasterKeys, parseMasterKeys } from './local-master-keys.ts'

/** Reads the file of master keys; undefined where there is none. */
export async function readKeyFile(path: string): Promise<MasterKeys | undefined> {
  try {
    return parseMasterKeys(await readFile(path, 'utf8'), path)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

/** Makes the file with a new master key where there is none. */
export function createMasterKeyFile(
  path: string,
  randomBytes: (count: number) => Buffer,
): Promise<void> {
  return createKeyFile(path, `${randomBytes(aesKeyBytes).toString('base64')}\n`)
}
