import { randomBytes } from 'node:crypto'
import type { Stats } from 'node:fs'
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { findStatus, syncPath } from '../../base/files.ts'
import { makeNamedFolder } from '../../base/make-folder.ts'
import { SetupError } from '../../base/setup-error.ts'
import { realWorld } from '../../base/world.ts'
import { type BlobShelf, formatPlace } from '../../blobs/blob-shelf.ts'
import type { Config } from '../../config/config.ts'
import type { CopySession } from '../../database/copy-session.ts'
import type { Queryable } from '../../database/database.ts'
import { isLockFile, lockFolder } from '../../database/embedded/lock.ts'
import { pinFiles } from '../../database/file-hold.ts'
import { sql } from '../../database/sql.ts'
import { makeShelf } from '../../services/blobs/open-shelf.ts'
import { copyWithBlobs } from '../copy-with-blobs.ts'
import { type Progress, useConnection } from '../maintenance.ts'
import { addNamedBlob, listSoldBlobs, type NamedBlob, type NamedPlace } from '../named-blobs.ts'
import { copyFromShelf } from './blob-files.ts'
import { copyFile, listFiles, replaceFile, writeStream } from './copy-files.ts'
import { backupNames, keyFiles, type Manifest, readManifest, type TableFile } from './manifest.ts'
import { refuseUnfinishedRestore } from './restore-marks.ts'

/** Backups into one folder, in the course of which each copy of a blob is read again: by the first digit of its hash. */
const turns = 16

export type BackupOptions = {
  /** The backup's folder; an older backup in it is replaced once the new one is whole. */
  readonly to: string
  /** Where the files of keys are copied to, apart from the data; undefined copies none. */
  readonly keysTo?: string | undefined
}

/**
 * Backs up the log of every chain, the operational state, and the files of blobs: all from one snapshot of the database,
 * while the service runs or not. Tables that follow from the log are left out, since a restore makes them anew.
 */
export async function createBackup(
  config: Config,
  { to, keysTo }: BackupOptions,
  progress: Progress,
): Promise<Manifest> {
  refuseUnfinishedRestore(config.dataDir)
  makeNamedFolder('--to', to)
  await refuseForeignFolder(to)
  // Each would remove what the other one has copied.
  const unlock = lockFolder(to, 'the backup folder')
  try {
    return await writeBackup(config, { to, keysTo }, progress)
  } finally {
    unlock()
  }
}

async function writeBackup(
  config: Config,
  { to, keysTo }: BackupOptions,
  progress: Progress,
): Promise<Manifest> {
  // A wrong folder for the keys is told before everything else is copied.
  if (keysTo !== undefined) makeNamedFolder('--keys-to', keysTo)
  const tablesFolder = `tables-${randomBytes(8).toString('hex')}`
  await mkdir(join(to, tablesFolder), { mode: 0o700 })
  const { snapshot, blobs, kept } = await useConnection(config, (connection) =>
    pinFiles(connection, async () => {
      const { copied: snapshot, named } = await copyWithBlobs(connection, {
        listPlaces: listPlacesOfBlobs,
        copy: async (session, named) => {
          for (const blob of await listSoldBlobs(session)) addNamedBlob(named, blob)
          return copyTables(session, { to, tablesFolder, progress })
        },
      })
      await syncPath(join(to, tablesFolder), 'r')
      // A file of a blob is there before its row, and stays for hours after it: so files come after the snapshot.
      const shelf = makeShelf(config, realWorld)
      return { snapshot, ...(await copyBlobs(shelf, { to, named: named.values(), progress })) }
    }),
  )
  // The devnet may be ahead of the database, as any payment network will be of a backup; never behind it.
  await copyDevnet(join(config.dataDir, backupNames.devnet), join(to, backupNames.devnet))
  if (keysTo !== undefined) await copyKeys(config.dataDir, keysTo)
  const manifest: Manifest = { format: 1, ...snapshot, blobs }
  await replaceFile(join(to, backupNames.manifest), `${JSON.stringify(manifest, null, 2)}\n`)
  for (const name of await readdir(to))
    if (name.startsWith('tables-') && name !== tablesFolder)
      await rm(join(to, name), { recursive: true, force: true })
  // Until now the backup before was whole: what it alone names goes last.
  const files = join(to, backupNames.blobs)
  for await (const path of listFiles(files)) if (!kept.has(path)) await rm(join(files, path))
  return manifest
}

/** A mistyped folder must not lose what is in it. */
async function refuseForeignFolder(to: string): Promise<void> {
  const known = new Set<string>(Object.values(backupNames))
  const foreign = (await readdir(to)).find(
    (name) =>
      !known.has(name.replace(/\.draft$/, '')) && !name.startsWith('tables-') && !isLockFile(name),
  )
  if (foreign !== undefined)
    throw new SetupError(
      `--to ${to}: the folder holds ${foreign}, which is no part of a backup; name an empty one`,
    )
}

type Snapshot = Pick<Manifest, 'made_at' | 'migration' | 'chains' | 'tables'>

async function copyTables(
  session: CopySession,
  { to, tablesFolder, progress }: { to: string; tablesFolder: string; progress: Progress },
): Promise<Snapshot> {
  const found = await listTables(session)
  const chains: Manifest['chains'] = []
  for (const { schema, name } of found)
    if (name === 'block' && schema !== 'operations') chains.push(await readHead(session, schema))
  if (chains.length === 0)
    throw new SetupError('the database has no chain: there is nothing to back up')
  const [last] = await session.query<{ id: number }>(
    sql`SELECT max(id)::int4 AS id FROM operations.migration`,
  )
  const made_at = new Date(realWorld.now()).toISOString()
  const total = found.reduce((sum, { bytes }) => sum + Number(bytes), 1)
  const tables: TableFile[] = []
  let copied = 0
  for (const { schema, name, columns } of found) {
    const file = `${tablesFolder}/${schema}.${name}`
    // A service that starts meanwhile drops the data sets of files that it has no more.
    const written = await session.readLocked([{ schema, name }], () =>
      writeStream(session.copyOut({ schema, name, columns }), join(to, file), (count) => {
        copied += count
        progress(`copying ${schema}.${name}`, Math.min(copied / total, 1))
      }),
    )
    tables.push({ schema, name, columns, file, ...written })
  }
  return { made_at, migration: last?.id ?? 1, chains, tables }
}

/** Lists the applications that have a chain. */
async function listPlacesOfBlobs(session: Queryable): Promise<readonly NamedPlace[]> {
  const schemas = await session.query<{ schema: string }>(sql`
    SELECT nspname::text AS schema
    FROM pg_catalog.pg_class AS class JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = relnamespace
    WHERE relkind = 'r' AND relname = 'block' AND nspname ~ '^app_[0-9]+$' ORDER BY length(nspname), nspname`)
  return schemas.map(({ schema }) => ({ schema, folder: Number(schema.slice('app_'.length)) }))
}

type FoundTable = {
  readonly schema: string
  readonly name: string
  readonly columns: string[]
  readonly bytes: bigint
}

/** Lists the tables of the log and of the operational state, with their columns in order. */
function listTables(session: CopySession): Promise<FoundTable[]> {
  return session.query<FoundTable>(sql`
    SELECT nspname::text AS schema, relname::text AS name, pg_total_relation_size(class.oid)::int8 AS bytes,
      (SELECT array_agg(attname::text ORDER BY attnum) FROM pg_catalog.pg_attribute
        WHERE attrelid = class.oid AND attnum > 0 AND NOT attisdropped) AS columns
    FROM pg_catalog.pg_class AS class JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = relnamespace
    WHERE relkind = 'r' AND (nspname = 'operations'
      OR (nspname ~ '^(system|app_[0-9]+)$' AND relname IN ('block', 'tile')))
    ORDER BY nspname = 'operations' DESC, length(nspname), nspname, relname`)
}

async function readHead(session: CopySession, schema: string): Promise<Manifest['chains'][number]> {
  const [head] = await session.query<{ height: bigint; entries: bigint }>(sql`
    SELECT height, first_leaf + entry_count AS entries FROM ${sql.id(schema, 'block')} ORDER BY height DESC LIMIT 1`)
  return { schema, height: Number(head?.height ?? 0), entries: Number(head?.entries ?? 0) }
}

/**
 * Copies the files that are named. A copy of the right size stays; it is read again if it was changed after the backup
 * before, and else in its turn, so that one that a disk has damaged is replaced in time. `kept` are the paths of all.
 */
async function copyBlobs(
  shelf: BlobShelf,
  { to, named, progress }: { to: string; named: Iterable<NamedBlob>; progress: Progress },
): Promise<{ readonly blobs: Manifest['blobs']; readonly kept: ReadonlySet<string> }> {
  const folder = join(to, backupNames.blobs)
  const before = await findEarlier(to)
  const turn = before === undefined ? 0 : before.turn + 1
  const kept = new Set<string>()
  let [bytes, lost] = [0, 0]
  for (const blob of named) {
    const path = formatPlace(blob)
    const isInTurn = Number.parseInt(blob.sha256.slice(0, 1), 16) === turn % turns
    const isDoubted = ({ ctimeMs }: Stats) => isInTurn || ctimeMs >= (before?.ctimeMs ?? 0)
    const size = await copyFromShelf(shelf, blob, { to: join(folder, path), isDoubted })
    if (size === undefined) {
      if (blob.isCertain) lost += 1
      continue
    }
    kept.add(path)
    bytes += size
    progress(`copying blobs: ${kept.size} files, ${bytes} bytes`, 1)
  }
  return { blobs: { files: kept.size, bytes, turn, ...(lost > 0 && { lost }) }, kept }
}

/** Finds the turn of the backup that is in the folder, and its time; undefined where there is none that can be read. */
async function findEarlier(
  to: string,
): Promise<{ readonly turn: number; readonly ctimeMs: number } | undefined> {
  const status = await findStatus(join(to, backupNames.manifest))
  if (status === undefined) return undefined
  try {
    return { turn: readManifest(to).blobs.turn ?? 0, ctimeMs: status.ctimeMs }
  } catch (error) {
    // A damaged backup is replaced, and none of its copies is trusted.
    if (error instanceof SetupError) return undefined
    throw error
  }
}

async function copyDevnet(from: string, to: string): Promise<void> {
  await rm(to, { recursive: true, force: true })
  // anvil.json names a process, which a restored service must not take for its own.
  for await (const path of listFiles(from))
    if (path !== 'anvil.json') await copyFile(join(from, path), join(to, path))
}

async function copyKeys(dataDir: string, to: string): Promise<void> {
  for (const name of Object.values(keyFiles))
    if ((await findStatus(join(dataDir, name))) !== undefined)
      await copyFile(join(dataDir, name), join(to, name))
}
