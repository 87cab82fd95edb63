import { join } from 'node:path'
import type { SignedCheckpoint } from '@tollbase/verify/checkpoint'
import type { BlobShelf } from '../../blobs/blob-shelf.ts'
import { auditChain } from '../../chain/audit-chain.ts'
import type { DatabaseConnection } from '../../database/connection.ts'
import { runCopySession } from '../../database/copy-session.ts'
import type { Database } from '../../database/database.ts'
import { dropSchema } from '../../database/drop-schema.ts'
import { sql } from '../../database/sql.ts'
import { DataProjection } from '../../projections/data-projection.ts'
import { listErasable } from '../../projections/list-erasable.ts'
import { loadTable } from '../backup/load-table.ts'
import { type LostBlobs, restoreBlobs } from '../backup/restore-blobs.ts'
import { createScratch, markReplayed, type Progress, replay } from '../maintenance.ts'
import { listNamedBlobs } from '../named-blobs.ts'
import { exportNames, type MoveManifest } from './move-manifest.ts'
import { refuseComplexViews } from './refuse-complex-views.ts'
import { refuseUnsoundDefinitions } from './refuse-unsound-definitions.ts'
import { refuseUnsoundPrices } from './refuse-unsound-prices.ts'

export type Difference = Readonly<Record<string, unknown>>

/** The schema in which an imported log is checked and its tables are made, before anybody sees them. */
export const staging = 'rebuild_import'

export type ExportedLog = {
  readonly database: Database
  readonly connection: DatabaseConnection
  readonly manifest: MoveManifest
  /** The checkpoint of the log, whose signature was verified. */
  readonly head: SignedCheckpoint
  readonly from: string
  readonly progress: Progress
}

/** Loads an exported log, checks every block of it, and makes the tables; names the first difference. */
export async function loadExportedLog(exported: ExportedLog): Promise<Difference | undefined> {
  const { database, manifest, head, progress } = exported
  const { app_id: app } = manifest.application
  const projection = new DataProjection()
  await dropSchema(database, staging)
  await database.transaction((tx) => createScratch(tx, staging, [projection]))
  await copyLog(exported)
  const audited = await auditChain(database, staging, {
    origin: head.origin,
    vkey: manifest.key,
    listErasable,
    onProgress: ({ height, of }) =>
      progress(`${app}: checking block ${height} of ${of}`, height / of),
  })
  if (!audited.ok) return { ...audited.difference }
  const { size, root } = audited.head
  if (size !== head.size || !Buffer.from(root).equals(Buffer.from(head.root)))
    return { what: 'the log', expected: describeTree(head), found: describeTree({ size, root }) }
  // The tables are made and judged up to this block; the service would apply what comes after it unjudged.
  if (audited.blocks !== manifest.height)
    return { what: 'the height', expected: manifest.height, found: audited.blocks }
  await refuseComplexViews(database, staging, manifest.height)
  const place = { app, schema: staging, origin: head.origin, vkey: manifest.key }
  const projections = [projection]
  await replay(
    database,
    { ...place, projections: () => projections },
    { schema: staging, projections, height: manifest.height, progress },
  )
  const { catalog } = projection
  await refuseUnsoundDefinitions({ app, schema: staging, catalog })
  refuseUnsoundPrices(catalog.pricing.rules)
  await database.transaction((tx) => markReplayed(tx, staging, manifest.height))
  return undefined
}

function describeTree({ size, root }: { readonly size: number; readonly root: Uint8Array }) {
  return `${size} entries, root ${Buffer.from(root).toString('base64')}`
}

function copyLog({ connection, manifest, from, progress }: ExportedLog): Promise<void> {
  return runCopySession(connection, async (session) => {
    for (const { name, columns, sha256 } of manifest.tables) {
      progress(`loading ${name}`, 0)
      await session.execute(sql`TRUNCATE ${sql.id(staging, name)}`)
      const table = { schema: staging, name, columns }
      await loadTable(session, table, { path: join(from, name), sha256 })
    }
  })
}

/** Copies the files of the blobs that the staged rows name. */
export function copyBlobs(
  { database, from, progress, manifest }: ExportedLog,
  {
    number,
    ...to
  }: { readonly number: number; readonly shelf: BlobShelf; readonly dataDir: string },
): Promise<LostBlobs> {
  return restoreBlobs(listNamedBlobs(database, { schema: staging, folder: number }), {
    ...{ ...to, progress, getOwner: () => manifest.application.app_id },
    findPath: ({ sha256 }) => join(from, exportNames.blobs, sha256.slice(0, 2), sha256),
  })
}
