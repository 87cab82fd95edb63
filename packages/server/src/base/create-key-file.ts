import { randomUUID } from 'node:crypto'
import { link, open, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { findErrorCode, syncPath } from './files.ts'
import { makeFolder } from './make-folder.ts'

/**
 * Makes a file of keys (mode 0600) where there is none. It is written and synced under another name and then linked,
 * so that the path never shows half a key, and processes that start at once end up with the same one.
 */
export async function createKeyFile(path: string, content: string): Promise<void> {
  makeFolder(dirname(path))
  const draft = `${path}.${randomUUID()}`
  const file = await open(draft, 'wx', 0o600)
  try {
    await file.writeFile(content)
    await file.sync()
  } finally {
    await file.close()
  }
  try {
    await link(draft, path)
    await syncPath(dirname(path), 'r')
  } catch (error) {
    if (findErrorCode(error) !== 'EEXIST') throw error
  } finally {
    await unlink(draft)
  }
}
