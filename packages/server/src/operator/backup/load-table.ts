import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { PassThrough } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { SetupError } from '../../base/setup-error.ts'
import type { CopiedTable, CopySession } from '../../database/copy-session.ts'
import { hashFile } from './copy-files.ts'

const chunkBytes = 1024 * 1024

/** Loads a file in PostgreSQL's binary COPY form into a table; throws a SetupError where its bytes are others. */
export async function loadTable(
  session: CopySession,
  table: CopiedTable,
  { path, sha256 }: { readonly path: string; readonly sha256: string },
): Promise<void> {
  const hash = createHash('sha256')
  const source = createReadStream(path, { highWaterMark: chunkBytes })
  source.on('data', (chunk) => hash.update(chunk))
  try {
    await pipeline(source, new PassThrough(), session.copyIn(table))
  } catch (error) {
    // PostgreSQL may stumble over the damage first, and says less about it.
    requireWhole(path, { found: await hashFile(path), sha256 })
    throw error
  }
  requireWhole(path, { found: hash.digest('hex'), sha256 })
}

function requireWhole(
  path: string,
  { found, sha256 }: { readonly found: string; readonly sha256: string },
): void {
  if (found !== sha256)
    throw new SetupError(`${path} is damaged: its bytes are not those that the manifest names`)
}
