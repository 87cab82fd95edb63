import { createHash } from 'node:crypto'
import { chmodSync, lstatSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeFolder } from '../../base/make-folder.ts'
import { DatabaseSetupError } from '../errors.ts'
import { giveTo, type ServerUser } from './server-user.ts'

/** Bytes of the whole socket path; the shorter of the limits of Linux (107) and macOS (103). */
const socketPathBytesMax = 103

export const socketPort = 5432

/**
 * Prepares a folder that only we and the server can enter: reaching the socket is enough to be let in. It is inside
 * the data folder or, where that path is too long for a socket, in the system's folder for temporary files.
 */
export function prepareSocketFolder(dataDir: string, user: ServerUser): string {
  const folder = findSocketFolder(dataDir)
  makeFolder(folder, 0o700)
  refuseForeign(folder, user)
  chmodSync(folder, 0o700)
  giveTo(user, folder)
  return folder
}

/** Finds where the socket of a data folder is, or will be; `dataDir` is a real path. */
export function findSocketFolder(dataDir: string): string {
  const inside = join(dataDir, 'postgres.socket')
  const hash = createHash('sha256').update(dataDir).digest('hex').slice(0, 16)
  const outside = join(tmpdir(), `tollbase-${hash}`)
  const folder = [inside, outside].find(fits)
  if (folder === undefined) {
    throw new DatabaseSetupError(
      `both ${inside} and ${outside} are too long for a socket; choose a shorter data folder`,
    )
  }
  return folder
}

function fits(folder: string): boolean {
  return Buffer.byteLength(join(folder, `.s.PGSQL.${socketPort}`)) <= socketPathBytesMax
}

/**
 * Refuses a folder of another user: anyone could have made one of that name among the temporary files, to listen
 * in.
 */
function refuseForeign(folder: string, user: ServerUser): void {
  const found = lstatSync(folder)
  const owners = [process.getuid?.() ?? found.uid, ...(user.kind === 'account' ? [user.uid] : [])]
  if (found.isDirectory() && owners.includes(found.uid)) return
  throw new DatabaseSetupError(`${folder} belongs to another user of this machine; remove it`)
}
