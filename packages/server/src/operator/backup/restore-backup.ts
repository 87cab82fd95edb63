import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { findStatus } from '../../base/files.ts'
import { SetupError } from '../../base/setup-error.ts'
import { realWorld } from '../../base/world.ts'
import { formatPlace } from '../../blobs/blob-shelf.ts'
import type { Config } from '../../config/config.ts'
import { type CopySession, runCopySession } from '../../database/copy-session.ts'
import type { Database } from '../../database/database.ts'
import { dropSchema } from '../../database/drop-schema.ts'
import { runMigrations } from '../../database/run-migrations.ts'
import { sql } from '../../database/sql.ts'
import { buildDataSetTable } from '../../projections/data-set-table.ts'
import { makeShelf } from '../../services/blobs/open-shelf.ts'
import { ensureSigningKey } from '../../services/identity/signing-key.ts'
import {
  createScratch,
  listChainPlaces,
  type MaintenanceReport,
  makeProjections,
  type Progress,
  useDatabase,
} from '../maintenance.ts'
import { migrations } from '../migrations.ts'
import { listNamedBlobs, listSoldBlobs } from '../named-blobs.ts'
import { rebuildChains } from '../rebuild.ts'
import { copyFile, listFiles } from './copy-files.ts'
import { loadTable } from './load-table.ts'
import { backupNames, keyFiles, type Manifest, readManifest } from './manifest.ts'
import { describeLost, type LostBlobs, restoreBlobs } from './restore-blobs.ts'
import { isRestoreUnfinished, noteRestoreBegun, noteRestoreDone } from './restore-marks.ts'

export type RestoreOptions = {
  /** The backup's folder. */
  readonly from: string
  /** The folder of the keys; undefined where they are in the data folder already. */
  readonly keys?: string | undefined
  /** Goes on without the blobs whose files are not whole. */
  readonly acceptLost?: boolean | undefined
}

export type RestoreReport = MaintenanceReport & {
  /** Time of the backup's snapshot, RFC 3339. */
  readonly made_at: string
  /** The file without which the encrypted records that were restored cannot be read. */
  readonly missing?: string
  /** The blobs of which there are rows and no files. */
  readonly lost?: LostBlobs
}

/**
 * Puts a backup into an empty database and data folder: loads log and operational state, checks every block's hashes
 * and signature, makes all tables anew from the log, and copies the files of the blobs that rows name, each
 * checked by its hash.
 * Interrupted, it is run again from the beginning. The first start afterwards knows that it follows a restore.
 */
export async function restoreBackup(
  config: Config,
  { from, keys, acceptLost = false }: RestoreOptions,
  progress: Progress,
): Promise<RestoreReport> {
  const manifest = readManifest(from)
  const { made_at } = manifest
  refuseNewer(manifest, from)
  refuseMissingKey(config.dataDir, keys)
  const isAgain = isRestoreUnfinished(config.dataDir)
  const isEmbedded = config.databaseUrl === undefined
  if (isEmbedded && !isAgain) {
    if (existsSync(join(config.dataDir, 'postgres')))
      throw new SetupError(
        `--data-dir ${config.dataDir}: the folder holds a service's data; name another one`,
      )
    // Before the embedded database makes its folder: a restore killed right after that is no service's data.
    noteRestoreBegun(config.dataDir)
  }
  const done = await useDatabase(config, async (database, connection) => {
    if (!isEmbedded && !isAgain) await refuseUsedDatabase(database)
    noteRestoreBegun(config.dataDir)
    await copyKeys(config.dataDir, keys)
    await emptyDatabase(database)
    const known = migrations.filter(({ id }) => id <= manifest.migration)
    await runMigrations(database, known, { now: realWorld.now() })
    await runCopySession(connection, (session) => loadTables(session, { manifest, from, progress }))
    await runMigrations(database, migrations, { now: realWorld.now() })
    await ensureSigningKey(database, join(config.dataDir, keyFiles.signing))
    const report = await rebuildChains(config, database, progress)
    if (!report.equal) return { report }
    const lost = await restoreNamed(config, database, { from, progress })
    return { report, lost, missing: await findMissingKey(config, database) }
  })
  const { report, lost, missing } = done
  if (lost === undefined) return { ...report, made_at }
  if (lost.count > 0 && !acceptLost)
    return { ...report, equal: false, difference: describeLost(lost), lost, made_at }
  await copyDevnet(config, from)
  noteRestoreDone(config.dataDir)
  return { ...report, made_at, ...(lost.count > 0 && { lost }), ...(missing && { missing }) }
}

function refuseNewer({ migration }: Manifest, from: string): void {
  const newest = migrations.at(-1)?.id ?? 0
  if (migration > newest)
    throw new SetupError(
      `--from ${from}: a newer program made this backup (migration ${migration}, this program ends at ${newest}); restore it with a program at least as new`,
    )
}

function refuseMissingKey(dataDir: string, keys: string | undefined): void {
  const folders = [dataDir, ...(keys === undefined ? [] : [keys])]
  if (folders.some((folder) => existsSync(join(folder, keyFiles.signing)))) return
  throw new SetupError(
    `a restore needs ${keyFiles.signing}, which continues the chains: name its folder by --keys, or put it into ${dataDir}`,
  )
}

async function copyKeys(dataDir: string, keys: string | undefined): Promise<void> {
  for (const name of Object.values(keyFiles)) {
    const source = keys === undefined ? undefined : await findStatus(join(keys, name))
    if (source !== undefined && !existsSync(join(dataDir, name)))
      await copyFile(join(keys ?? '', name), join(dataDir, name))
  }
}

const ourSchemas = sql`SELECT nspname::text AS name FROM pg_catalog.pg_namespace WHERE nspname ~ '^(system|operations|app_[0-9]+|rebuild_.*)$'`

async function refuseUsedDatabase(database: Database): Promise<void> {
  const [found] = await database.query<{ name: string }>(ourSchemas)
  if (found !== undefined)
    throw new SetupError(
      `the database holds a service's data (schema ${found.name}); restore into an empty one`,
    )
}

/** Removes what an interrupted restore has left. */
async function emptyDatabase(database: Database): Promise<void> {
  for (const { name } of await database.query<{ name: string }>(ourSchemas))
    await dropSchema(database, name)
}

type Load = { readonly manifest: Manifest; readonly from: string; readonly progress: Progress }

async function loadTables(session: CopySession, { manifest, from, progress }: Load): Promise<void> {
  for (const { schema } of manifest.chains)
    await createScratch(session, schema, makeProjections(schema))
  const total = manifest.tables.reduce((sum, { bytes }) => sum + bytes, 1)
  let loaded = 0
  for (const table of manifest.tables) {
    const { schema, name, columns } = table
    if (schema === 'operations' && name.startsWith('data_set_')) {
      const kind = columns.includes('value') ? 'values' : 'cidr'
      await session.execute(buildDataSetTable({ schema, table: name, kind }))
    }
    await session.execute(sql`TRUNCATE ${sql.id(schema, name)}`)
    await loadTable(session, table, { path: join(from, table.file), sha256: table.sha256 })
    loaded += table.bytes
    progress(`loading ${schema}.${name}`, loaded / total)
  }
  // The process that held the leases was not restored.
  await session.execute(sql`UPDATE operations.chain_lease SET expires_at_ms = 0`)
}

/** Names the file of master keys where it is missing and data keys are there that it wraps. */
async function findMissingKey(config: Config, database: Database): Promise<string | undefined> {
  const path = join(config.dataDir, keyFiles.master)
  if (config.masterKeys !== undefined || existsSync(path)) return undefined
  const [row] = await database.query(sql`
    SELECT 1 AS found FROM operations.data_key WHERE master_key NOT LIKE 'command:%' LIMIT 1`)
  return row === undefined ? undefined : path
}

async function copyDevnet({ dataDir }: Config, from: string): Promise<void> {
  for await (const path of listFiles(join(from, backupNames.devnet)))
    await copyFile(join(from, backupNames.devnet, path), join(dataDir, backupNames.devnet, path))
}

/** Copies the files of the blobs that the restored rows name. */
async function restoreNamed(
  config: Config,
  database: Database,
  { from, progress }: Pick<Load, 'from' | 'progress'>,
): Promise<LostBlobs> {
  const places = await listChainPlaces(config, database)
  const list = async function* () {
    for (const { schema, number: folder } of places)
      if (folder !== undefined) yield* listNamedBlobs(database, { schema, folder })
    yield* await listSoldBlobs(database)
  }
  return restoreBlobs(list(), {
    ...{ shelf: makeShelf(config, realWorld), dataDir: config.dataDir, progress },
    findPath: (blob) => join(from, backupNames.blobs, formatPlace(blob)),
    getOwner: (folder) => places.find(({ number }) => number === folder)?.app ?? `folder ${folder}`,
  })
}
