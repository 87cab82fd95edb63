import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { parseBlockHeader } from '@tollbase/verify/block'
import { formatCheckpoint } from '@tollbase/verify/checkpoint'
import pino from 'pino'
import { syncPath } from '../../base/files.ts'
import { makeNamedFolder } from '../../base/make-folder.ts'
import { SetupError } from '../../base/setup-error.ts'
import { realWorld } from '../../base/world.ts'
import { BlockStore } from '../../chain/block-store.ts'
import { loadSigner } from '../../chain/signing.ts'
import type { Config } from '../../config/config.ts'
import type { DatabaseConnection } from '../../database/connection.ts'
import type { CopySession } from '../../database/copy-session.ts'
import { openDatabase } from '../../database/database.ts'
import { pinFiles } from '../../database/file-hold.ts'
import { sql } from '../../database/sql.ts'
import type { ApplicationRecord } from '../../model/application.ts'
import type { KeyRecord } from '../../projections/keys.ts'
import { makeShelf } from '../../services/blobs/open-shelf.ts'
import { listKeyOwners, readDataKeys } from '../../services/encryption/data-key-store.ts'
import { readErased } from '../../services/retention/erasure-store.ts'
import { copyFromShelf } from '../backup/blob-files.ts'
import { replaceFile, writeStream } from '../backup/copy-files.ts'
import { keyFiles } from '../backup/manifest.ts'
import { refuseUnfinishedRestore } from '../backup/restore-marks.ts'
import { copyWithBlobs } from '../copy-with-blobs.ts'
import { type ChainPlace, listChainPlaces, type Progress, useConnection } from '../maintenance.ts'
import type { NamedBlob } from '../named-blobs.ts'
import { exportNames, formatSigned, type MoveManifest } from './move-manifest.ts'

export type ExportOptions = {
  readonly app: string
  /** An empty folder, or one that does not exist. */
  readonly to: string
}

const log = pino({ level: 'error' }, pino.destination(2))

/**
 * Writes an application's log, keys and blobs into a folder, from one snapshot of the database, while the service runs
 * or not. Money is not in it: balances, sales and receipts stay where they were earned.
 */
export async function exportApplication(
  config: Config,
  { app, to }: ExportOptions,
  progress: Progress,
): Promise<MoveManifest> {
  refuseUnfinishedRestore(config.dataDir)
  makeNamedFolder('--to', to)
  const [found] = await readdir(to)
  if (found !== undefined)
    throw new SetupError(`--to ${to}: the folder holds ${found}; name an empty one`)
  try {
    return await writeExport(config, { app, to }, progress)
  } catch (error) {
    for (const name of await readdir(to)) await rm(join(to, name), { recursive: true, force: true })
    throw error
  }
}

async function writeExport(
  config: Config,
  { app, to }: ExportOptions,
  progress: Progress,
): Promise<MoveManifest> {
  const { place, exported, blobs } = await useConnection(config, (connection) =>
    pinFiles(connection, async () => {
      const place = await findPlace(config, connection, app)
      const { dataDir } = config
      const { copied: exported, named } = await copyWithBlobs(connection, {
        listPlaces: async () => [{ schema: place.schema, folder: place.number }],
        copy: (session) => copyApplication(session, { place, to, progress, dataDir }),
      })
      // A file of a blob is there before its row, and stays for hours after it: so files come after the snapshot.
      const blobs = await copyBlobs(config, { named: named.values(), to, progress })
      return { place, exported, blobs }
    }),
  )
  await syncPath(to, 'r')
  const manifest: MoveManifest = { ...exported, blobs }
  const text = Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`)
  const signer = await loadSigner(join(config.dataDir, keyFiles.signing), place.origin)
  const signature = signer.sign(formatSigned(text)).toString('base64')
  await replaceFile(join(to, exportNames.signature), `${signature}\n`)
  await replaceFile(join(to, exportNames.manifest), text.toString())
  return manifest
}

type NumberedPlace = ChainPlace & { readonly number: number }

async function findPlace(
  config: Config,
  connection: DatabaseConnection,
  app: string,
): Promise<NumberedPlace> {
  const database = await openDatabase({ connection, log, world: realWorld, statementTimeoutMs: 0 })
  try {
    const places = await listChainPlaces(config, database)
    const place = places.find((one) => one.app === app)
    if (place?.number !== undefined) return { ...place, number: place.number }
    const known = places.flatMap(({ app: id, number }) => (number === undefined ? [] : [id]))
    throw new SetupError(
      `there is no application ${app} with data here${known.length === 0 ? '' : `; there is ${known.slice(0, 10).join(', ')}`}`,
    )
  } finally {
    await database.close()
  }
}

async function copyBlobs(
  config: Config,
  { named, to, progress }: { named: Iterable<NamedBlob>; to: string; progress: Progress },
): Promise<MoveManifest['blobs']> {
  const shelf = makeShelf(config, realWorld)
  let [files, bytes, lost] = [0, 0, 0]
  for (const blob of named) {
    const path = join(to, exportNames.blobs, blob.sha256.slice(0, 2), blob.sha256)
    const size = await copyFromShelf(shelf, blob, { to: path })
    if (size === undefined) {
      if (blob.isCertain) lost += 1
      continue
    }
    files += 1
    bytes += size
    progress(`copying blobs: ${files} files, ${bytes} bytes`, 1)
  }
  return { files, bytes, ...(lost > 0 && { lost }) }
}

type Exported = Omit<MoveManifest, 'blobs'>

async function copyApplication(
  session: CopySession,
  {
    place,
    to,
    progress,
    dataDir,
  }: {
    readonly place: NumberedPlace
    readonly to: string
    readonly progress: Progress
    readonly dataDir: string
  },
): Promise<Exported> {
  const { app, schema, origin, vkey } = place
  const last = await new BlockStore(session, schema).last()
  if (last === undefined) throw new SetupError(`${app} has no entries: there is nothing to move`)
  const signer = await loadSigner(join(dataDir, keyFiles.signing), origin)
  const { root } = parseBlockHeader(last.header.toString())
  const entries = last.firstLeaf + last.entryCount
  const [migration] = await session.query<{ id: number }>(
    sql`SELECT max(id)::int4 AS id FROM operations.migration`,
  )
  const tables: Exported['tables'] = []
  for (const name of ['block', 'tile'] as const) {
    const columns = await listColumns(session, schema, name)
    const bytes = await measureTable(session, schema, name)
    const source = session.copyOut({ schema, name, columns })
    let copied = 0
    const written = await writeStream(source, join(to, name), (count) => {
      copied += count
      progress(`copying ${app}, ${name}`, Math.min(copied / bytes, 1))
    })
    tables.push({ name, columns, ...written })
  }
  return {
    format: 1,
    made_at: new Date(realWorld.now()).toISOString(),
    migration: migration?.id ?? 1,
    application: await readApplication(session, app),
    keys: await readKeys(session, app),
    data_keys: await readWrappedKeys(session, app),
    erased: await readErased(session, schema),
    checkpoint: signer.signNote(formatCheckpoint({ origin, size: entries, root })),
    key: vkey,
    height: last.height,
    entries,
    tables,
  }
}

async function listColumns(session: CopySession, schema: string, table: string): Promise<string[]> {
  const rows = await session.query<{ name: string }>(sql`
    SELECT attname::text AS name FROM pg_catalog.pg_attribute
    WHERE attrelid = ${`${schema}.${table}`}::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum`)
  return rows.map(({ name }) => name)
}

async function measureTable(session: CopySession, schema: string, table: string): Promise<number> {
  const [row] = await session.query<{ bytes: bigint }>(
    sql`SELECT pg_total_relation_size(${`${schema}.${table}`}::regclass)::int8 AS bytes`,
  )
  return Math.max(Number(row?.bytes ?? 0), 1)
}

async function readApplication(session: CopySession, app: string): Promise<ApplicationRecord> {
  const [row] = await session.query<{ body: string }>(
    sql`SELECT body FROM system.application WHERE app_id = ${app}`,
  )
  if (row === undefined) throw new SetupError(`there is no application ${app}`)
  return JSON.parse(row.body)
}

async function readKeys(session: CopySession, app: string): Promise<KeyRecord[]> {
  const rows = await session.query<{ body: string }>(
    sql`SELECT body FROM system.api_key WHERE app_id = ${app} ORDER BY key_hash`,
  )
  const keys = rows.map(({ body }): KeyRecord => JSON.parse(body))
  return keys.filter(({ revoked_at: revokedAt }) => revokedAt === null)
}

async function readWrappedKeys(session: CopySession, app: string): Promise<Exported['data_keys']> {
  const owners = await listKeyOwners(session, app)
  const keys: Exported['data_keys'] = []
  for (const collection of owners)
    for (const row of await readDataKeys(session, { app, collection })) {
      const { epoch, masterKey, wrapped, reserved, createdAtMs } = row
      keys.push({
        collection,
        epoch,
        masterKey,
        wrapped: wrapped.toString('base64'),
        reserved,
        createdAtMs,
      })
    }
  return keys
}
