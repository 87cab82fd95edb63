import type { Stats } from 'node:fs'
import { lstat, open } from 'node:fs/promises'

/** Finds the status of a path, not following a link; undefined where nothing is there. */
export async function findStatus(path: string): Promise<Stats | undefined> {
  try {
    return await lstat(path)
  } catch (error) {
    if (findErrorCode(error) === 'ENOENT') return undefined
    throw error
  }
}

/** Brings a folder's names, or with `r+` a file's bytes, to the disk. */
export async function syncPath(path: string, flags: 'r' | 'r+'): Promise<void> {
  const handle = await open(path, flags)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** The code of an error of the operating system, such as `ENOENT`. */
export function findErrorCode(error: unknown): string | undefined {
  if (!(error instanceof Error && 'code' in error)) return undefined
  return typeof error.code === 'string' ? error.code : undefined
}

/** Says in words why a file that somebody named cannot be read: `there is no such file`. */
export function explainReadError(error: unknown): string {
  switch (findErrorCode(error)) {
    case 'ENOENT':
      return 'there is no such file'
    case 'EISDIR':
      return 'it is a folder, not a file'
    case 'EACCES':
      return 'this user may not read it'
    default:
      return error instanceof Error ? error.message : String(error)
  }
}

/** Says in words why a folder that somebody named cannot be made or written into: `it is a file, … not a folder`. */
export function explainFolderError(error: unknown): string {
  const code = findErrorCode(error)
  const isMaking = error instanceof Error && 'syscall' in error && error.syscall === 'mkdir'
  if (code === 'ENOTDIR' || (code === 'EEXIST' && isMaking))
    return 'it is a file, or in one, and not a folder'
  if (code === 'EACCES') return `this user may not write there (${code})`
  if (code === 'EROFS') return `its file system is read-only (${code})`
  // The folders above are made first, so that none of them is missing.
  if (code === 'ENOENT' && isMaking) return `its file system makes no folder there (${code})`
  return error instanceof Error ? error.message : String(error)
}
