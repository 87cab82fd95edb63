import { link, mkdir, open, readFile, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { aesKeyBytes } from './aes-gcm.ts'
import { type MasterKeys, parseMasterKeys } from './master-keys.ts'

/** Reads the file of master keys; undefined where there is none. */
export async function readKeyFile(path: string): Promise<MasterKeys | undefined> {
  try {
    return parseMasterKeys(await readFile(path, 'utf8'), path)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

/**
 * Makes the file (mode 0600) with a new master key where there is none. It is written and synced under another name
 * and then linked, so the path never shows half a key, and of two that make it one stays.
 */
export async function createKeyFile(
  path: string,
  randomBytes: (count: number) => Buffer,
): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  const draft = `${path}.${randomBytes(8).toString('hex')}`
  const file = await open(draft, 'wx', 0o600)
  try {
    await file.writeFile(`${randomBytes(aesKeyBytes).toString('base64')}\n`)
    await file.sync()
  } finally {
    await file.close()
  }
  try {
    await link(draft, path)
    await syncFolder(dirname(path))
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  } finally {
    await unlink(draft)
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path)
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
