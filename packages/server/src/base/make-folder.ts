import { accessSync, constants, existsSync, mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { explainFolderError, findErrorCode } from './files.ts'
import { SetupError } from './setup-error.ts'

/**
 * Makes a folder and those above it, as `mkdir` with `recursive` does. Node's own one never ends where a file system
 * such as /proc says that there is no such folder though the one above is there.
 */
export function makeFolder(path: string, mode?: number): void {
  const problem = attemptMaking(path, mode)
  if (problem === undefined) return
  const above = dirname(path)
  if (findErrorCode(problem) !== 'ENOENT' || existsSync(above)) throw problem
  makeFolder(above, mode)
  const stillProblem = attemptMaking(path, mode)
  if (stillProblem !== undefined) throw stillProblem
}

/**
 * Makes a folder for its owner alone that an option names; a SetupError says in words why it cannot be made, or cannot
 * be written into.
 */
export function makeNamedFolder(option: string, path: string): void {
  try {
    makeFolder(path, 0o700)
    accessSync(path, constants.W_OK | constants.X_OK)
  } catch (error) {
    throw new SetupError(`${option} ${path} cannot be used: ${explainFolderError(error)}`)
  }
}

/** Returns why the folder is not there now; it may have been there before. */
function attemptMaking(path: string, mode: number | undefined): unknown {
  try {
    mkdirSync(path, { mode })
    return undefined
  } catch (error) {
    return isFolder(path) ? undefined : error
  }
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch {
    return false
  }
}
