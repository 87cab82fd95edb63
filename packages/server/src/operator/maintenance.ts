import { join } from 'node:path'
import pino from 'pino'
import { realWorld } from '../base/world.ts'
import { toAppliedBlock } from '../chain/applier.ts'
import { openBlock } from '../chain/block.ts'
import { BlockStore } from '../chain/block-store.ts'
import { loadSigner } from '../chain/signing.ts'
import { buildChainTables } from '../chain/tables.ts'
import type { Config } from '../config/config.ts'
import { type Database, openDatabase, type Queryable } from '../database/database.ts'
import { startEmbeddedPostgres } from '../database/embedded/server.ts'
import { runMigrations } from '../database/run-migrations.ts'
import { sql } from '../database/sql.ts'
import { Applications } from '../projections/applications.ts'
import { DataProjection } from '../projections/data-projection.ts'
import { Keys } from '../projections/keys.ts'
import { Ledger } from '../projections/ledger.ts'
import { makeApplier } from '../projections/make-applier.ts'
import { PayoutSettingsTable } from '../projections/payout-settings.ts'
import type { Projection } from '../projections/projection.ts'
import { getChainOrigin, getSchemaName } from '../services/applications/tenants.ts'
import { ensureSecret, serviceSecrets } from '../services/identity/secrets.ts'
import { migrations } from './migrations.ts'

/** A chain as audit and rebuild walk it. */
export type ChainPlace = {
  readonly app: string
  readonly schema: string
  readonly origin: string
  readonly vkey: string
  /** Fresh projections, as before the first entry. */
  readonly projections: () => readonly Projection[]
}

export type MaintenanceReport = {
  readonly equal: boolean
  readonly difference?: Readonly<Record<string, unknown>>
  /** Views that are not filled, as after a crash, so that there is nothing to compare; the service or a rebuild fills them. */
  readonly unfinished?: readonly Readonly<Record<string, unknown>>[]
  readonly chains: readonly {
    readonly chain: string
    readonly blocks: number
    readonly entries: number
  }[]
}

export type Progress = (text: string, part: number) => void

/** Opens the storage of a stopped service, runs the work, and closes it again. */
export async function runWithStorage<T>(
  config: Config,
  work: (database: Database, chains: readonly ChainPlace[]) => Promise<T>,
): Promise<T> {
  const log = pino({ level: 'error' }, pino.destination(2))
  const world = realWorld
  const server =
    config.databaseUrl === undefined
      ? await startEmbeddedPostgres({ dataDir: config.dataDir, world, log })
      : undefined
  try {
    const connection = server?.connection ?? { url: config.databaseUrl ?? '' }
    const database = await openDatabase({ connection, log, world, statementTimeoutMs: 0 })
    try {
      await runMigrations(database, migrations, { now: world.now() })
      return await work(database, await listChainPlaces(config, database))
    } finally {
      await database.close()
    }
  } finally {
    await server?.stop()
  }
}

async function listChainPlaces(config: Config, database: Database): Promise<ChainPlace[]> {
  const name = await ensureSecret(database, realWorld, serviceSecrets.serviceName)
  const serviceName = config.serviceName ?? `tollbase-${name.toString('hex')}`
  const loadVkey = async (origin: string) =>
    (await loadSigner(join(config.dataDir, 'signing-key.pem'), origin)).vkey
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
    projections: () => [new Applications(), new Keys(), new Ledger(), new PayoutSettingsTable()],
  }
  // A crash right after an application's entry leaves it without a schema until it is first used.
  const used = applications.list().filter(({ number }) => schemas.has(getSchemaName(number)))
  const others = used.map(async ({ app_id: app, number }): Promise<ChainPlace> => {
    const origin = getChainOrigin(serviceName, app)
    return {
      app,
      schema: getSchemaName(number),
      origin,
      vkey: await loadVkey(origin),
      projections: () => [new DataProjection()],
    }
  })
  return [system, ...(await Promise.all(others))]
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
  const store = new BlockStore(database, chain.schema)
  const applier = makeApplier(to.schema, to.projections)
  let from = 1
  while (from <= to.height) {
    const rows = await store.blocks({
      from,
      to: to.height,
      blocksMax: pageBlocks,
      bytesMax: pageBytes,
    })
    if (rows.length === 0)
      throw new Error(`block ${from} of ${chain.app} is missing; run the audit`)
    const blocks = rows.map((row) => toAppliedBlock(openBlock(row)))
    const commit = await database.transaction((tx) => applier.apply(tx, blocks), {
      statementTimeoutMs: 0,
    })
    commit?.()
    from += rows.length
    to.progress(`${chain.app}: replaying block ${from - 1} of ${to.height}`, (from - 1) / to.height)
  }
}
