import { join } from 'node:path'
import pino from 'pino'
import { realWorld } from '../base/world.ts'
import { type AppliedBlock, toAppliedBlock } from '../chain/applier.ts'
import { BlockStore } from '../chain/block-store.ts'
import { parseBlock } from '../chain/parse-block.ts'
import { loadSigner } from '../chain/signing.ts'
import { buildChainTables } from '../chain/tables.ts'
import type { Config } from '../config/config.ts'
import type { DatabaseConnection } from '../database/connection.ts'
import { type Database, openDatabase, type Queryable } from '../database/database.ts'
import { findRunning, startEmbeddedPostgres } from '../database/embedded/server.ts'
import { runMigrations } from '../database/run-migrations.ts'
import { sql } from '../database/sql.ts'
import type { ApplicationRecord } from '../model/application.ts'
import { Anchors } from '../projections/anchors.ts'
import { Applications } from '../projections/applications.ts'
import { Authorizations } from '../projections/authorizations.ts'
import { DataProjection } from '../projections/data-projection.ts'
import { addMissingColumns, type MissingColumns } from '../projections/field-columns.ts'
import { Keys } from '../projections/keys.ts'
import { Ledger } from '../projections/ledger.ts'
import { listErasable } from '../projections/list-erasable.ts'
import { makeApplier } from '../projections/make-applier.ts'
import { PayoutSettingsTable } from '../projections/payout-settings.ts'
import type { Projection, ReplayOptions } from '../projections/projection.ts'
import { getChainOrigin } from '../services/applications/open-own-chain.ts'
import { getSchemaName } from '../services/applications/tenants.ts'
import { ensureSecret, serviceSecrets } from '../services/identity/secrets.ts'
import { keyFiles } from './backup/manifest.ts'
import { refuseUnfinishedRestore } from './backup/restore-marks.ts'
import { explainConnecting } from './explain-connecting.ts'
import { migrations } from './migrations.ts'

/** A chain as audit and rebuild walk it. */
export type ChainPlace = {
  readonly app: string
  /** The application's number, which names its folder of blobs; undefined for the service's own chain. */
  readonly number?: number
  readonly schema: string
  readonly origin: string
  readonly vkey: string
  /** See chain/audit-chain.ts. */
  readonly listErasable?: (entry: Uint8Array) => readonly number[]
  /** The checkpoint of the log at the service that the application was moved from, and the key that signed it. */
  readonly movedFrom?: ApplicationRecord['moved_from']
  /** Fresh projections, as before the first entry. */
  readonly projections: (options?: ReplayOptions) => readonly Projection[]
}

export type MaintenanceReport = {
  readonly equal: boolean
  readonly difference?: Readonly<Record<string, unknown>>
  /**
   * Views that are not filled, as after a crash, so that there is nothing to compare; the service or a rebuild fills
   * them.
   */
  readonly unfinished?: readonly Readonly<Record<string, unknown>>[]
  readonly chains: readonly {
    readonly chain: string
    readonly blocks: number
    readonly entries: number
  }[]
}

export type Progress = (text: string, part: number) => void

const log = pino({ level: 'error' }, pino.destination(2))

/** Opens the storage of a stopped service, runs the work, and closes it again. */
export async function runWithStorage<T>(
  config: Config,
  work: (database: Database, chains: readonly ChainPlace[]) => Promise<T>,
): Promise<T> {
  refuseUnfinishedRestore(config.dataDir)
  return useDatabase(config, async (database) => {
    await runMigrations(database, migrations, { now: realWorld.now() })
    return work(database, await listChainPlaces(config, database))
  })
}

/** Opens the database of a stopped service as it is, runs the work, and closes it again. */
export async function useDatabase<T>(
  config: Config,
  work: (database: Database, connection: DatabaseConnection) => Promise<T>,
): Promise<T> {
  return useOwnServer(config, async (connection) => {
    const opening = openDatabase({ connection, log, world: realWorld, statementTimeoutMs: 0 })
    const database = await explainConnecting(config.databaseUrl, opening)
    try {
      return await work(database, connection)
    } finally {
      await database.close()
    }
  })
}

/** Runs the work on the database's server, which a running service may use meanwhile. */
export async function useConnection<T>(
  config: Config,
  work: (connection: DatabaseConnection) => Promise<T>,
): Promise<T> {
  const { databaseUrl: url } = config
  if (url !== undefined) await explainConnecting(url, tryConnection({ url }))
  const running = url === undefined ? findRunning(config.dataDir) : undefined
  return running === undefined ? useOwnServer(config, work) : work(running)
}

async function tryConnection(connection: DatabaseConnection): Promise<void> {
  const database = await openDatabase({ connection, log, poolSize: 1 })
  await database.close()
}

async function useOwnServer<T>(
  { databaseUrl, dataDir }: Config,
  work: (connection: DatabaseConnection) => Promise<T>,
): Promise<T> {
  if (databaseUrl !== undefined) return work({ url: databaseUrl })
  const server = await startEmbeddedPostgres({ dataDir, world: realWorld, log })
  try {
    return await work(server.connection)
  } finally {
    await server.stop()
  }
}

/** Lists the chains that the tables name: the service's own, and those of applications. */
export async function listChainPlaces(config: Config, database: Database): Promise<ChainPlace[]> {
  const name = await ensureSecret(database, realWorld, serviceSecrets.serviceName)
  const serviceName = config.serviceName ?? `tollbase-${name.toString('hex')}`
  const loadVkey = async (origin: string) =>
    (await loadSigner(join(config.dataDir, keyFiles.signing), origin)).vkey
  const applications = new Applications()
  const rows = await database.query<{ schema_name: string }>(
    sql`SELECT schema_name FROM information_schema.schemata`,
  )
  const schemas = new Set(rows.map((row) => row.schema_name))
  if (!schemas.has('system')) return []
  await applications.load(database, 'system')
  const systemOrigin = getChainOrigin(serviceName, 'system')
  const system: ChainPlace = {
    app: 'system',
    schema: 'system',
    origin: systemOrigin,
    vkey: await loadVkey(systemOrigin),
    projections: () => makeProjections('system'),
  }
  // A crash right after an application's entry leaves it without a schema until it is first used.
  const used = applications.list().filter(({ number }) => schemas.has(getSchemaName(number)))
  const others = used.map(async ({ app_id: app, number, moved_from }): Promise<ChainPlace> => {
    const origin = getChainOrigin(serviceName, app)
    return {
      app,
      number,
      schema: getSchemaName(number),
      origin,
      vkey: await loadVkey(origin),
      listErasable,
      ...(moved_from && { movedFrom: moved_from }),
      projections: (options) => makeProjections(getSchemaName(number), options),
    }
  })
  return [system, ...(await Promise.all(others))]
}

/** Makes fresh projections of the chain in this schema. */
export function makeProjections(
  schema: string,
  options: ReplayOptions = {},
): readonly Projection[] {
  return schema === 'system'
    ? [
        new Applications(),
        new Keys(realWorld.now),
        new Ledger(),
        new PayoutSettingsTable(),
        new Authorizations(realWorld.now),
        new Anchors(),
      ]
    : [new DataProjection(undefined, options)]
}

/** Creates an empty schema with the tables that a chain's projections start from. */
export async function createScratch(
  tx: Queryable,
  schema: string,
  projections: readonly Projection[],
): Promise<void> {
  await tx.execute(sql`DROP SCHEMA IF EXISTS ${sql.id(schema)} CASCADE`)
  await tx.execute(sql`CREATE SCHEMA ${sql.id(schema)}`)
  for (const statement of buildChainTables(schema)) await tx.execute(statement)
  for (const statement of projections.flatMap((one) => one.tables(schema)))
    await tx.execute(statement)
}

const pageBlocks = 64
const pageBytes = 16 * 1024 * 1024

/** Applies a chain's blocks up to a height into the tables of another schema, by the very code that serves writes. */
export async function replay(
  database: Database,
  chain: ChainPlace,
  to: { schema: string; projections: readonly Projection[]; height: number; progress: Progress },
): Promise<void> {
  const applier = makeApplier(to.schema, to.projections)
  let page = to.height < 1 ? undefined : readPage(database, chain, { from: 1, to: to.height })
  while (page !== undefined) {
    const blocks = await page
    const done = blocks.at(-1)?.height ?? to.height
    // The next blocks are read while the database applies these. An error of theirs comes to light in their turn.
    page =
      done < to.height ? readPage(database, chain, { from: done + 1, to: to.height }) : undefined
    page?.catch(() => undefined)
    const commit = await database.transaction((tx) => applier.apply(tx, blocks), {
      statementTimeoutMs: 0,
    })
    commit?.()
    to.progress(`${chain.app}: replaying block ${done} of ${to.height}`, done / to.height)
  }
}

async function readPage(
  database: Database,
  { app, schema }: Pick<ChainPlace, 'app' | 'schema'>,
  range: { readonly from: number; readonly to: number },
): Promise<readonly AppliedBlock[]> {
  const store = new BlockStore(database, schema)
  const rows = await store.blocks({ ...range, blocksMax: pageBlocks, bytesMax: pageBytes })
  if (rows[0]?.height !== range.from)
    throw new Error(`block ${range.from} of ${app} is missing; run the audit`)
  return rows.map((row) => toAppliedBlock(parseBlock(row)))
}

/** Moves the watermark to the end of a block, up to which the tables were filled by a replay. */
export async function markReplayed(tx: Queryable, schema: string, height: number): Promise<void> {
  await tx.execute(sql`
    UPDATE ${sql.id(schema, 'watermark')} SET height = last.height, sequence = last.entry_count - 1,
      leaf = last.first_leaf + last.entry_count
    FROM (SELECT height, entry_count, first_leaf FROM ${sql.id(schema, 'block')} WHERE height = ${height}) AS last
    WHERE id = 1`)
}

/** Adds the columns that a replay has left out: those of a collection that was large when its fields were declared. */
export async function addFieldColumns(
  database: Database,
  { schema, projections, more }: ColumnsLeft,
): Promise<void> {
  for (const projection of projections) {
    if (!(projection instanceof DataProjection)) continue
    const collections = projection.catalog.collections.values()
    await database.transaction((tx) => addMissingColumns(tx, schema, { collections, more }), {
      statementTimeoutMs: 0,
    })
  }
}

type ColumnsLeft = Pick<MissingColumns, 'more'> & {
  readonly schema: string
  readonly projections: readonly Projection[]
}
