import { ConfigError } from '../../../config/config-file.ts'
import type { Database } from '../../../database/database.ts'
import { type SqlStatement, sql } from '../../../database/sql.ts'

const table = sql.id('operations', 'network_pin')

export function buildNetworkTables(): SqlStatement[] {
  return [
    sql`CREATE TABLE ${table} (
      network text NOT NULL, genesis_hash text NOT NULL, CONSTRAINT network_pin_pkey PRIMARY KEY (network))`,
  ]
}

/** Columns for the operator's statement about a restored database, or about a gas key that was used elsewhere. */
export function buildRestoredColumns(): SqlStatement[] {
  return [
    sql`ALTER TABLE ${table} ADD COLUMN restored_at_ms int8, ADD COLUMN signer text, ADD COLUMN signer_count int8`,
  ]
}

/** A column for the place in the service's own log up to which no move of a network can be taken back any more. */
export function buildFinalLeafColumn(): SqlStatement[] {
  return [sql`ALTER TABLE ${table} ADD COLUMN final_leaf int8`]
}

/** Reads that place; undefined where nobody has looked yet. */
export async function findFinalLeaf(
  database: Database,
  network: string,
): Promise<bigint | undefined> {
  const [row] = await database.query<{ final_leaf: bigint | null }>(
    sql`SELECT final_leaf FROM ${table} WHERE network = ${network}`,
  )
  return row?.final_leaf ?? undefined
}

export async function setFinalLeaf(
  database: Database,
  network: string,
  leaf: bigint,
): Promise<void> {
  await database.execute(
    sql`UPDATE ${table} SET final_leaf = ${leaf}::int8 WHERE network = ${network}`,
  )
}

/**
 * The genesis hash that a network had when this database first took money on it, which is noted at the
 * first start. A network of the same id with another genesis (a devnet, a fork) is another money.
 */
export async function pinNetwork(
  database: Database,
  network: string,
  genesisHash: string,
): Promise<string> {
  await database.execute(sql`
    INSERT INTO ${table} (network, genesis_hash) VALUES (${network}, ${genesisHash}) ON CONFLICT (network) DO NOTHING`)
  const [row] = await database.query<{ genesis_hash: string }>(
    sql`SELECT genesis_hash FROM ${table} WHERE network = ${network}`,
  )
  return row?.genesis_hash ?? genesisHash
}

/** Lists the networks on which this database ever took money, by id. */
export async function listPinnedNetworks(database: Database): Promise<string[]> {
  const rows = await database.query<{ network: string }>(
    sql`SELECT network FROM ${table} ORDER BY network`,
  )
  return rows.map(({ network }) => network)
}

/**
 * Reads how many transactions a gas key had sent when the operator last vouched for those unknown here; 0 where the
 * operator never did.
 */
export async function readVouchedCount(
  database: Database,
  { network, signer }: { network: string; signer: string },
): Promise<bigint> {
  const [row] = await database.query<{ signer_count: bigint | null }>(
    sql`SELECT signer_count FROM ${table} WHERE network = ${network} AND signer = ${signer}`,
  )
  return row?.signer_count ?? 0n
}

export async function vouchFor(
  database: Database,
  { network, signer, count }: { network: string; signer: string; count: bigint },
): Promise<void> {
  await database.execute(
    sql`UPDATE ${table} SET signer = ${signer}, signer_count = ${count} WHERE network = ${network}`,
  )
}

/**
 * Notes on every network, also on those that are not open now, that the database was restored until now: transfers until
 * then may have been used in the life that is lost.
 */
export async function noteRestore(database: Database, nowMs: number): Promise<void> {
  await database.execute(sql`UPDATE ${table} SET restored_at_ms = ${nowMs}::int8`)
}

/**
 * Moves the time of the restore to that of a network's newest block, where this is later: transfers are judged by the
 * times of their blocks, so a clock of ours that is slow must not let an older one buy again. Throws a ConfigError
 * where the network does not answer.
 */
export async function noteRestoredBlock(
  database: Database,
  network: string,
  readChainTime: () => Promise<bigint>,
): Promise<void> {
  const seconds = await readChainTime().catch((error: unknown) => {
    throw new ConfigError(
      `networks: ${network} does not answer (${error instanceof Error ? error.message : String(error)}); the first start after a restore needs the time of its newest block, which tells the transfers from before: start when it answers`,
    )
  })
  await database.execute(sql`
    UPDATE ${table} SET restored_at_ms = greatest(restored_at_ms, ${Number(seconds) * 1000}::int8)
    WHERE network = ${network}`)
}

/** When the database was last restored, in seconds since 1970; undefined where it never was. */
export async function findRestoredAt(
  database: Database,
  network: string,
): Promise<bigint | undefined> {
  const [row] = await database.query<{ restored_at_ms: bigint | null }>(
    sql`SELECT restored_at_ms FROM ${table} WHERE network = ${network}`,
  )
  const ms = row?.restored_at_ms ?? null
  return ms === null ? undefined : ms / 1000n
}
