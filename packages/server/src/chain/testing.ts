import { generateKeyPairSync } from 'node:crypto'
import { realWorld } from '../base/world.ts'
import type { Database } from '../database/database.ts'
import { sql } from '../database/sql.ts'
import type { Applier } from './applier.ts'
import type { Chain } from './chain.ts'
import type { ChainOptions } from './chain-options.ts'
import { openChain } from './open-chain.ts'
import { makeSigner } from './signing.ts'
import { buildChainTables, buildLeaseSizeColumns, buildLeaseTables } from './tables.ts'

export type TestChain = {
  readonly schema: string
  readonly options: ChainOptions
  readonly open: (changes?: Partial<ChainOptions>) => Promise<Chain>
  /** The applied bodies in leaf order, from the table that the applier fills. */
  readonly applied: () => Promise<string[]>
}

let chains = 0

/** Creates an empty chain in a schema of its own, with an applier that copies bodies into a table. */
export async function createTestChain(database: Database): Promise<TestChain> {
  chains += 1
  const schema = `app_${chains}`
  const origin = `data.example/${schema}`
  const table = sql.id(schema, 'applied')
  await database.execute(sql`CREATE SCHEMA ${sql.id(schema)}`)
  for (const statement of [
    ...buildLeaseTables(),
    ...buildLeaseSizeColumns(),
    ...buildChainTables(schema),
  ])
    await database.execute(statement)
  await database.execute(sql`CREATE TABLE ${table} (leaf int8 PRIMARY KEY, body text NOT NULL)`)

  const options: ChainOptions = {
    database,
    schema,
    origin,
    signer: makeSigner(generateKeyPairSync('ed25519').privateKey, origin),
    world: realWorld,
    holder: 'first',
    applier: makeCopyingApplier(schema),
    leaseTtlMs: 600,
  }
  return {
    schema,
    options,
    open: (changes = {}) => openChain({ ...options, ...changes }),
    applied: async () => {
      const rows = await database.query<{ body: string }>(
        sql`SELECT body FROM ${table} ORDER BY leaf`,
      )
      return rows.map((row) => row.body)
    },
  }
}

/** Makes an applier that copies the body of each entry into the schema's table `applied`. */
export function makeCopyingApplier(schema: string): Applier {
  const table = sql.id(schema, 'applied')
  return {
    apply: async (tx, blocks) => {
      const entries = blocks.flatMap((block) => block.entries)
      const rows = JSON.stringify(entries.map(({ leafIndex, body }) => ({ leaf: leafIndex, body })))
      await tx.execute(
        sql`INSERT INTO ${table} (leaf, body)
          SELECT (e ->> 'leaf')::int8, e ->> 'body' FROM jsonb_array_elements(${rows}::jsonb) AS e`,
      )
      return undefined
    },
  }
}

/** Makes entries with these bodies. */
export function makeEntries(...bodies: readonly string[]) {
  return bodies.map((body) => ({ header: { type: 'record', key: body.slice(0, 20) }, body }))
}
