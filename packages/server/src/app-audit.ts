import {
  type ChainPlace,
  createScratch,
  type MaintenanceReport,
  type Progress,
  replay,
  withStorage,
} from './app-maintenance.ts'
import { auditViews } from './app-views.ts'
import { auditChain } from './chain/audit.ts'
import { openBlock } from './chain/block.ts'
import { BlockStore } from './chain/block-store.ts'
import type { Config } from './config.ts'
import type { Database } from './database/database.ts'
import { sql } from './database/sql.ts'
import { viewStateTable } from './domains/tenancy/view-state.ts'

type Difference = Readonly<Record<string, unknown>>

/**
 * Recomputes everything from the entries: hashes, links, signatures, trees; every projected table, by replaying
 * the entries into a scratch schema and comparing row by row; views, from the tables that they follow from; balances
 * and sales, by the ledger's own rules; and
 * the heads of all chains that the system chain announced. Reports the first difference.
 */
export async function audit(config: Config, progress: Progress): Promise<MaintenanceReport> {
  return withStorage(config, (database, places) => auditStorage(database, places, progress))
}

/** The same on storage that is open already and that nobody else writes to. */
export async function auditStorage(
  database: Database,
  places: readonly ChainPlace[],
  progress: Progress,
): Promise<MaintenanceReport> {
  const chains: { chain: string; blocks: number; entries: number }[] = []
  for (const place of places) {
    const log = await auditChain(database, place.schema, {
      origin: place.origin,
      vkey: place.vkey,
      onProgress: ({ height, of }) =>
        progress(`${place.app}: block ${height} of ${of}`, height / of),
    })
    if (!log.ok)
      return { equal: false, difference: { chain: place.app, ...log.difference }, chains }
    chains.push({ chain: place.app, blocks: log.blocks, entries: log.entries })
    const difference = await auditTables(database, place, progress)
    if (difference !== undefined)
      return { equal: false, difference: { chain: place.app, ...difference }, chains }
  }
  const difference =
    (await auditViews(database, places)) ??
    (await auditLedger(database, places)) ??
    (await auditHeads(database, places))
  return { equal: difference === undefined, ...(difference && { difference }), chains }
}

async function auditTables(
  database: Database,
  place: ChainPlace,
  progress: Progress,
): Promise<Difference | undefined> {
  const [mark] = await database.query<{ height: bigint }>(
    sql`SELECT height FROM ${sql.id(place.schema, 'watermark')}`,
  )
  const scratch = `audit_${place.schema}`
  const projections = place.projections()
  try {
    await database.transaction((tx) => createScratch(tx, scratch, projections))
    await replay(database, place, {
      schema: scratch,
      projections,
      height: Number(mark?.height ?? 0),
      progress,
    })
    for (const table of projections.flatMap((one) => one.tableNames())) {
      const difference = await compareTables(database, table, {
        stored: place.schema,
        recomputed: scratch,
      })
      if (difference !== undefined) return difference
    }
    return await extraTables(
      database,
      place,
      projections.flatMap((one) => [...one.tableNames(), ...(one.derivedTableNames?.() ?? [])]),
    )
  } finally {
    await database.execute(sql`DROP SCHEMA IF EXISTS ${sql.id(scratch)} CASCADE`)
  }
}

async function compareTables(
  database: Database,
  table: string,
  schemas: { stored: string; recomputed: string },
): Promise<Difference | undefined> {
  const rows = (schema: string) => sql`SELECT row.* FROM ${sql.id(schema, table)} AS row`
  const only = async (a: string, b: string) => {
    const found = await database.query<{ row: string }>(sql`
      SELECT to_jsonb(differing)::text AS row FROM (${rows(a)} EXCEPT ALL ${rows(b)}) AS differing
      ORDER BY to_jsonb(differing)::text LIMIT 1`)
    return found[0]?.row
  }
  try {
    const stored = await only(schemas.stored, schemas.recomputed)
    const recomputed = await only(schemas.recomputed, schemas.stored)
    if (stored === undefined && recomputed === undefined) return undefined
    return {
      what: `table ${table}`,
      expected: recomputed ?? 'no such row',
      found: stored ?? 'no such row',
    }
  } catch (error) {
    return {
      what: `table ${table}`,
      expected: 'a table like the recomputed one',
      found: String(error),
    }
  }
}

/** Tables of collections that no entry speaks of. */
async function extraTables(
  database: Database,
  place: ChainPlace,
  known: readonly string[],
): Promise<Difference | undefined> {
  const rows = await database.query<{ table_name: string }>(sql`
    SELECT table_name FROM information_schema.tables
    WHERE table_schema = ${place.schema} AND NOT table_name = ANY(${[...known, 'block', 'tile', 'watermark', viewStateTable]}::text[])
    ORDER BY table_name`)
  const [extra] = rows
  return extra && { what: `table ${extra.table_name}`, expected: 'no such table', found: 'a table' }
}

/** Debits equal credits; no payer is in debt; a sale takes no more than was deposited for it. */
async function auditLedger(
  database: Database,
  places: readonly ChainPlace[],
): Promise<Difference | undefined> {
  if (places.length === 0) return undefined
  const [sum] = await database.query<{ total: string }>(
    sql`SELECT coalesce(sum(balance), 0) AS total FROM system.account`,
  )
  if (BigInt(sum?.total ?? 0) !== 0n)
    return { what: 'sum of all balances', expected: '0', found: sum?.total }
  const [debtor] = await database.query<{ account: string; balance: string }>(
    sql`SELECT account, balance FROM system.account WHERE account LIKE 'wallet:%' AND balance < 0 ORDER BY account LIMIT 1`,
  )
  if (debtor !== undefined)
    return { what: `balance of ${debtor.account}`, expected: '0 or more', found: debtor.balance }
  const [unpaid] = await database.query<{ payment_id: string }>(sql`
    SELECT sale.payment_id FROM system.sale AS sale
    LEFT JOIN system.settled_payment AS paid ON paid.payment_id = sale.payment_id
    WHERE paid.leaf IS NULL OR paid.leaf > sale.leaf ORDER BY sale.leaf LIMIT 1`)
  return (
    unpaid && {
      what: `sale of ${unpaid.payment_id}`,
      expected: 'a deposit before it',
      found: 'none',
    }
  )
}

/** What the system chain says of another chain's tree must be what that chain had at that height. */
async function auditHeads(
  database: Database,
  places: readonly ChainPlace[],
): Promise<Difference | undefined> {
  const newest = new Map<string, { app: string; height: number; size: number; root: string }>()
  const system = new BlockStore(database, 'system')
  const last = (await system.last())?.height ?? 0
  for (let from = 1; from <= last; ) {
    const rows = await system.blocks({ from, to: last, blocksMax: 256, bytesMax: 16 * 1024 * 1024 })
    if (rows.length === 0) break
    for (const { header, body } of rows.flatMap((row) => openBlock(row).entries)) {
      if (header.type !== 'heads') continue
      const heads: { app: string; height: number; size: number; root: string }[] = JSON.parse(body)
      // Of a chain without entries there is nothing to compare.
      for (const head of heads) if (head.size > 0) newest.set(head.app, head)
    }
    from += rows.length
  }
  for (const head of newest.values()) {
    const place = places.find(({ app }) => app === head.app)
    const row = place && (await new BlockStore(database, place.schema).block(head.height))
    const root = row && Buffer.from(openBlock(row).header.root).toString('base64')
    if (root !== head.root) {
      return {
        what: `head of ${head.app} at height ${head.height}, as the system chain announced it`,
        expected: head.root,
        found: root ?? 'no such block',
      }
    }
  }
  return undefined
}
