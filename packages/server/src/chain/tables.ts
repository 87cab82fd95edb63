import { type SqlStatement, sql } from '../database/sql.ts'

/**
 * Builds the tables of one chain, in a schema of its own that already exists; to be run in this order, once. Bodies
 * are not compressed (EXTERNAL), since they are read whole, hashed, and mostly incompressible per entry.
 */
export function buildChainTables(schema: string): SqlStatement[] {
  const block = sql.id(schema, 'block')
  const tile = sql.id(schema, 'tile')
  const watermark = sql.id(schema, 'watermark')
  return [
    sql`CREATE TABLE ${block} (
      height int8 NOT NULL,
      header bytea NOT NULL,
      signature bytea NOT NULL,
      first_leaf int8 NOT NULL,
      entry_count int4 NOT NULL,
      group_starts int4[] NOT NULL,
      body bytea NOT NULL,
      leaf_hashes bytea NOT NULL,
      CONSTRAINT block_pkey PRIMARY KEY (height)
    )`,
    sql`ALTER TABLE ${block} ALTER COLUMN body SET STORAGE EXTERNAL`,
    sql`ALTER TABLE ${block} ALTER COLUMN leaf_hashes SET STORAGE EXTERNAL`,
    sql`CREATE UNIQUE INDEX block_first_leaf ON ${block} (first_leaf)`,
    sql`CREATE TABLE ${tile} (
      level int4 NOT NULL,
      index int8 NOT NULL,
      hashes bytea NOT NULL,
      CONSTRAINT tile_pkey PRIMARY KEY (level, index)
    )`,
    sql`ALTER TABLE ${tile} ALTER COLUMN hashes SET STORAGE EXTERNAL`,
    sql`CREATE TABLE ${watermark} (
      id int2 NOT NULL,
      height int8 NOT NULL,
      sequence int4 NOT NULL,
      leaf int8 NOT NULL,
      CONSTRAINT watermark_pkey PRIMARY KEY (id),
      CONSTRAINT watermark_single CHECK (id = 1)
    )`,
    sql`INSERT INTO ${watermark} (id, height, sequence, leaf) VALUES (1, 0, 0, 0)`,
  ]
}

/** The table by which the producers of all chains exclude each other. */
export function buildLeaseTables(): SqlStatement[] {
  return [
    sql`CREATE SCHEMA IF NOT EXISTS operations`,
    sql`CREATE TABLE IF NOT EXISTS operations.chain_lease (
      chain text NOT NULL,
      holder text NOT NULL,
      epoch int8 NOT NULL,
      expires_at_ms int8 NOT NULL,
      CONSTRAINT chain_lease_pkey PRIMARY KEY (chain)
    )`,
  ]
}

/**
 * Adds columns for the size of a chain at the last renewal of its lease, so that the next holder counts on from
 * there.
 */
export function buildLeaseSizeColumns(): SqlStatement[] {
  return [
    sql`ALTER TABLE operations.chain_lease
      ADD COLUMN IF NOT EXISTS height int8 NOT NULL DEFAULT 0,
      ADD COLUMN IF NOT EXISTS body_bytes int8 NOT NULL DEFAULT 0`,
  ]
}
