import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'
import { PassThrough } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { SetupError } from '../../base/setup-error.ts'
import type { CopiedTable, CopySession } from '../../database/copy-session.ts'

/** Loads a file in PostgreSQL's binary COPY form into a table; throws a SetupError where its bytes are others. */
export async function loadTable(
  session: CopySession,
  table: CopiedTable,
  { path, sha256 }: { readonly path: string; readonly sha256: string },
): Promise<void> {
  const hash = createHash('sha256')
  const handle = await open(path)
  try {
    const source = handle.createReadStream({ highWaterMark: 1024 * 1024 })
    source.on('data', (chunk) => hash.update(chunk))
    await pipeline(source, new PassThrough(), session.copyIn(table))
  } finally {
    await handle.close()
  }
  if (hash.digest('hex') !== sha256)
    throw new SetupError(`${path} is damaged: its bytes are not those that the manifest names`)
}
