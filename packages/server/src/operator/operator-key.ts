import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeFolder } from '../base/make-folder.ts'
import type { World } from '../base/world.ts'

/** Returns the operator's key: the configured one, or one made at the first start and kept in the data folder. */
export function ensureOperatorKey(
  dataDir: string,
  configured: string | undefined,
  world: World,
): { key: string; isNew: boolean; path: string } {
  const path = join(dataDir, 'operator-key')
  if (configured !== undefined) return { key: configured, isNew: false, path }
  makeFolder(dataDir, 0o700)
  try {
    const key = `op_${world.randomBytes(32).toString('base64url')}`
    writeFileSync(path, `${key}\n`, { mode: 0o600, flag: 'wx' })
    return { key, isNew: true, path }
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
    return { key: readFileSync(path, 'utf8').trim(), isNew: false, path }
  }
}
