import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeNamedFolder } from '../../base/make-folder.ts'
import { SetupError } from '../../base/setup-error.ts'

/** Stands in the data folder while a restore is under way; a service does not start on half a database. */
const unfinished = 'restore-unfinished'
/** Stands in the data folder from the end of a restore until the first start after it. */
const restored = 'restored'

export function isRestoreUnfinished(dataDir: string): boolean {
  return existsSync(join(dataDir, unfinished))
}

export function noteRestoreBegun(dataDir: string): void {
  makeNamedFolder('--data-dir', dataDir)
  writeFileSync(join(dataDir, unfinished), '', { mode: 0o600, flush: true })
}

/** The next start knows of the restore before it knows that it is whole: a crash in between costs a repetition. */
export function noteRestoreDone(dataDir: string): void {
  writeFileSync(join(dataDir, restored), '', { mode: 0o600, flush: true })
  rmSync(join(dataDir, unfinished))
}

/** Throws a SetupError where a restore into this folder was begun and not finished. */
export function refuseUnfinishedRestore(dataDir: string): void {
  if (isRestoreUnfinished(dataDir))
    throw new SetupError(
      `a restore into ${dataDir} was begun and not finished; run tollbase restore again`,
    )
}

export function isFirstStart(dataDir: string): boolean {
  return existsSync(join(dataDir, restored))
}

export function noteFirstStart(dataDir: string): void {
  rmSync(join(dataDir, restored), { force: true })
}
