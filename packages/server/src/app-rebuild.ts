import {
  type ChainPlace,
  createScratch,
  type MaintenanceReport,
  type Progress,
  replay,
  withStorage,
} from './app-maintenance.ts'
import { fillViews } from './app-views.ts'
import { auditChain } from './chain/audit.ts'
import type { Config } from './config.ts'
import type { Database } from './database/database.ts'
import { sql } from './database/sql.ts'

/**
 * Makes every projected table anew from the entries. The new tables grow in a schema beside the old ones and
 * take their place in one transaction, so a rebuild that is broken off leaves everything as it was.
 * Operational state (schema `operations`) is never touched.
 */
export async function rebuild(config: Config, progress: Progress): Promise<MaintenanceReport> {
  return withStorage(config, async (database, places) => {
    const chains: { chain: string; blocks: number; entries: number }[] = []
    for (const place of places) {
      const log = await auditChain(database, place.schema, {
        origin: place.origin,
        vkey: place.vkey,
      })
      if (!log.ok)
        return { equal: false, difference: { chain: place.app, ...log.difference }, chains }
      await rebuildOne(database, place, { height: log.head.height, progress })
      chains.push({ chain: place.app, blocks: log.blocks, entries: log.entries })
    }
    await fillViews(database, places, progress)
    return { equal: true, chains }
  })
}

const logTables = ['block', 'tile', 'watermark']

async function rebuildOne(
  database: Database,
  place: ChainPlace,
  to: { height: number; progress: Progress },
): Promise<void> {
  const scratch = `rebuild_${place.schema}`
  const projections = place.projections()
  await database.transaction((tx) => createScratch(tx, scratch, projections))
  await replay(database, place, { schema: scratch, projections, ...to })
  const names = projections.flatMap((one) => [
    ...one.tableNames(),
    ...(one.derivedTableNames?.() ?? []),
  ])
  await database.transaction(async (tx) => {
    const old = await tx.query<{ table_name: string }>(sql`
      SELECT table_name FROM information_schema.tables
      WHERE table_schema = ${place.schema} AND NOT table_name = ANY(${logTables}::text[])`)
    for (const { table_name: name } of old)
      await tx.execute(sql`DROP TABLE ${sql.id(place.schema, name)}`)
    for (const name of names)
      await tx.execute(sql`ALTER TABLE ${sql.id(scratch, name)} SET SCHEMA ${sql.id(place.schema)}`)
    await tx.execute(sql`
      UPDATE ${sql.id(place.schema, 'watermark')} SET height = last.height, sequence = last.entry_count - 1,
        leaf = last.first_leaf + last.entry_count
      FROM (SELECT height, entry_count, first_leaf FROM ${sql.id(place.schema, 'block')} WHERE height = ${to.height}) AS last
      WHERE id = 1`)
    await tx.execute(sql`DROP SCHEMA ${sql.id(scratch)} CASCADE`)
  })
}
