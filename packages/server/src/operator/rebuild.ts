import { type AuditReport, auditChain } from '../chain/audit-chain.ts'
import { BlockStore } from '../chain/block-store.ts'
import type { Config } from '../config/config.ts'
import type { Database, Queryable } from '../database/database.ts'
import { dropSchema } from '../database/drop-schema.ts'
import { type SqlStatement, sql } from '../database/sql.ts'
import { fillViews } from './audit/audit-views.ts'
import {
  addFieldColumns,
  type ChainPlace,
  createScratch,
  listChainPlaces,
  type MaintenanceReport,
  markReplayed,
  type Progress,
  replay,
  runWithStorage,
} from './maintenance.ts'

/**
 * Rebuilds every projected table from the entries. The new tables are filled in a schema of their own and replace
 * the old ones in one transaction, so an interrupted rebuild leaves everything as it was. Operational state (schema
 * `operations`) is never touched.
 */
export async function rebuild(config: Config, progress: Progress): Promise<MaintenanceReport> {
  return runWithStorage(config, (database) => rebuildChains(config, database, progress))
}

/** Checks each chain and makes its tables; the service's own comes first, since it names the others. */
export async function rebuildChains(
  config: Config,
  database: Database,
  progress: Progress,
): Promise<MaintenanceReport> {
  const chains: { chain: string; blocks: number; entries: number }[] = []
  const done = new Set<string>()
  for (;;) {
    const places = await listChainPlaces(config, database)
    const place = places.find(({ app }) => !done.has(app))
    if (place === undefined) {
      await fillViews(database, places, progress)
      return { equal: true, chains }
    }
    done.add(place.app)
    const log = await rebuildChain(database, place, progress)
    if (!log.ok)
      return { equal: false, difference: { chain: place.app, ...log.difference }, chains }
    chains.push({ chain: place.app, blocks: log.blocks, entries: log.entries })
  }
}

const logTables = ['block', 'tile', 'watermark']

/**
 * Makes the tables of a chain while its log is checked, which takes this process's time where the tables take the
 * database's. Only those of a log that was found whole take the place of the old ones.
 */
async function rebuildChain(
  database: Database,
  place: ChainPlace,
  progress: Progress,
): Promise<AuditReport> {
  const { origin, vkey, listErasable } = place
  const height = (await new BlockStore(database, place.schema).last())?.height ?? 0
  const scratch = `rebuild_${place.schema}`
  const projections = place.projections({ hasIndexesLater: true })
  await dropSchema(database, scratch)
  await database.transaction((tx) => createScratch(tx, scratch, projections))
  const [log, replayed] = await Promise.allSettled([
    auditChain(database, place.schema, { origin, vkey, listErasable }),
    replay(database, place, { schema: scratch, projections, height, progress }),
  ])
  if (log.status === 'rejected') throw log.reason
  if (!log.value.ok) {
    await dropSchema(database, scratch)
    return log.value
  }
  if (replayed.status === 'rejected') throw replayed.reason
  if (log.value.head.height !== height)
    throw new Error(`the log of ${place.app} grew while it was read; stop the service first`)
  await addFieldColumns(database, { schema: scratch, projections })
  await database.transaction(
    async (tx) => {
      for (const one of projections) await one.createIndexes?.(tx, scratch)
    },
    { statementTimeoutMs: 0 },
  )
  await exchangeTables(database, place.schema, { scratch, height })
  return log.value
}

async function exchangeTables(
  database: Database,
  schema: string,
  { scratch, height }: { readonly scratch: string; readonly height: number },
): Promise<void> {
  await database.transaction(async (tx) => {
    for (const { name, kind } of await listRelations(tx, schema))
      await tx.execute(sql`DROP ${kind} ${sql.id(schema, name)}`)
    for (const { name } of await listRelations(tx, scratch))
      await tx.execute(sql`ALTER TABLE ${sql.id(scratch, name)} SET SCHEMA ${sql.id(schema)}`)
    await markReplayed(tx, schema, height)
    await tx.execute(sql`DROP SCHEMA ${sql.id(scratch)} CASCADE`)
  })
}

/** Lists the tables, and other relations that may have taken their place, except those of the log. */
async function listRelations(
  tx: Queryable,
  schema: string,
): Promise<readonly { readonly name: string; readonly kind: SqlStatement }[]> {
  const rows = await tx.query<{ name: string; kind: string }>(sql`
    SELECT relname::text AS name, relkind::text AS kind FROM pg_catalog.pg_class AS class
    JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = relnamespace
    WHERE nspname = ${schema} AND relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT relname = ANY(${logTables}::text[])
    ORDER BY relkind = 'r', relname`)
  const kinds: Readonly<Record<string, SqlStatement>> = {
    v: sql`VIEW`,
    m: sql`MATERIALIZED VIEW`,
    f: sql`FOREIGN TABLE`,
  }
  return rows.map(({ name, kind }) => ({ name, kind: kinds[kind] ?? sql`TABLE` }))
}
