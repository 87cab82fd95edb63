import type { Database } from '../../database/database.ts'
import { type SqlStatement, sql } from '../../database/sql.ts'

const table = sql.id('operations', 'network_pin')

export function networkTables(): SqlStatement[] {
  return [
    sql`CREATE TABLE ${table} (
      network text NOT NULL, genesis_hash text NOT NULL, CONSTRAINT network_pin_pkey PRIMARY KEY (network))`,
  ]
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
