import type { AppliedEntry } from '../chain/applier.ts'
import type { Queryable } from '../database/database.ts'
import { type SqlStatement, sql } from '../database/sql.ts'
import type { EntryRun, Projection } from './projection.ts'

/** The head of an application's chain, as an entry of the service's own chain tells it. */
export type Head = {
  readonly app: string
  readonly height: number
  readonly size: number
  /** Base64. */
  readonly root: string
}

/** The place of an entry in the service's own chain. */
type Place = { readonly leaf: bigint; readonly at_height: bigint; readonly at_sequence: number }

/** A row of the table of heads. */
export type HeadRow = Place & {
  readonly app: string
  readonly height: bigint
  readonly size: bigint
  readonly root: string
}

/** A confirmed anchor: the size that it covers, and its entry's body. */
export type AnchorRow = {
  /** The name on its network: the hash of the transaction, or the commitment of the blob. */
  readonly name: string
  readonly size: bigint
  readonly body: string
}

/** An anchor with the head that it covers. */
export type CoveringAnchor = AnchorRow &
  Omit<Place, 'leaf'> & {
    /** Leaves of the application's chain at that head. */
    readonly head_size: bigint
  }

/** An anchor with the newest head of an application that it covers. */
export type AnchorWithHead = AnchorRow &
  Pick<HeadRow, 'height' | 'root'> & { readonly app_size: bigint }

/**
 * Heads of applications' chains, and anchors of the service's own chain on other chains: `head` and `anchor` entries
 * of the system chain. An anchor whose block was replaced is told anew, or withdrawn by an entry with `withdrawn`.
 */
export class Anchors implements Projection {
  readonly types = ['head', 'anchor'] as const
  /** The newest size that was told of each application. */
  readonly #sizes = new Map<string, number>()
  #isAnchored = false

  /** The newest size of an application's chain that the service's own chain tells of; 0 before the first. */
  getToldSize(app: string): number {
    return this.#sizes.get(app) ?? 0
  }

  tables(schema: string): SqlStatement[] {
    return buildAnchorTables(schema)
  }

  tableNames(): string[] {
    return ['head', 'anchor']
  }

  async load(database: Queryable, schema: string): Promise<void> {
    const rows = await database.query<{ app: string; size: bigint }>(
      sql`SELECT app, max(size) AS size FROM ${sql.id(schema, 'head')} GROUP BY app`,
    )
    for (const { app, size } of rows) this.#sizes.set(app, Number(size))
    const [first] = await database.query(sql`SELECT 1 FROM ${sql.id(schema, 'anchor')} LIMIT 1`)
    this.#isAnchored = first !== undefined
  }

  async apply(tx: Queryable, schema: string, { entries }: EntryRun): Promise<() => void> {
    const heads = entries.filter(({ header }) => header.type === 'head').map(toHead)
    if (heads.length > 0) await insertHeads(tx, schema, heads)
    for (const entry of entries)
      if (entry.header.type === 'anchor') await applyAnchor(tx, schema, entry)
    return () => {
      for (const { app, size } of heads) this.#sizes.set(app, size)
      this.#isAnchored ||= entries.some(({ header }) => header.type === 'anchor')
    }
  }

  /** Finds the first anchor that covers a leaf of the service's own chain. */
  async findCovering(
    database: Queryable,
    schema: string,
    leaf: bigint,
  ): Promise<AnchorRow | undefined> {
    const [row] = await database.query<AnchorRow>(sql`
      SELECT transaction AS name, size, body FROM ${sql.id(schema, 'anchor')} WHERE size > ${leaf}::int8 ORDER BY size, network LIMIT 1`)
    return row
  }

  /** Finds the first anchor that covers a leaf of an application's chain, with the head that has the leaf. */
  async findCoveringHead(
    database: Queryable,
    schema: string,
    { app, leaf }: { readonly app: string; readonly leaf: number },
  ): Promise<CoveringAnchor | undefined> {
    // The proofs of a service without anchors ask the database nothing.
    if (!this.#isAnchored || this.getToldSize(app) <= leaf) return undefined
    const [row] = await database.query<CoveringAnchor>(sql`
      SELECT head.size AS head_size, head.at_height, head.at_sequence, covering.transaction, covering.size, covering.body
      FROM (
        SELECT size, leaf, at_height, at_sequence FROM ${sql.id(schema, 'head')}
        WHERE app = ${app} AND size > ${leaf}::int8 ORDER BY size LIMIT 1) AS head
      JOIN LATERAL (
        SELECT transaction, size, body FROM ${sql.id(schema, 'anchor')} AS anchor
        WHERE anchor.size > head.leaf ORDER BY anchor.size, anchor.network LIMIT 1) AS covering ON true`)
    return row
  }

  /** Finds the confirmed anchors with these names. */
  async findByNames(
    database: Queryable,
    schema: string,
    { network, names }: { readonly network: string; readonly names: readonly string[] },
  ): Promise<AnchorRow[]> {
    return database.query(sql`
      SELECT transaction AS name, size, body FROM ${sql.id(schema, 'anchor')}
      WHERE network = ${network} AND transaction = ANY(${names}::text[])`)
  }

  /** Reads the largest size that is anchored on a network, and how many entries told of anchors from there on. */
  async readProgress(
    database: Queryable,
    schema: string,
    { network, from }: { readonly network: string; readonly from: number },
  ): Promise<{ readonly size: number; readonly told: number }> {
    const anchor = sql.id(schema, 'anchor')
    const [row] = await database.query<{ size: bigint; told: bigint }>(sql`
      WITH newest AS (
        SELECT greatest(${from}::int8, coalesce(max(size), 0)) AS size FROM ${anchor} WHERE network = ${network})
      SELECT newest.size, (SELECT count(*) FROM ${anchor} AS one WHERE one.leaf >= newest.size) AS told FROM newest`)
    return { size: Number(row?.size ?? from), told: Number(row?.told ?? 0) }
  }

  /** Lists anchors, newest first, each with the newest head of the application that it covers. */
  async listWithHeads(
    database: Queryable,
    schema: string,
    { app, ...page }: AnchorPage & { readonly app: string },
  ): Promise<AnchorWithHead[]> {
    return database.query(sql`
      SELECT one.transaction AS name, one.size, one.body, newest.size AS app_size, newest.height, newest.root
      FROM ${sql.id(schema, 'anchor')} AS one JOIN LATERAL (
        SELECT head.size, head.height, head.root FROM ${sql.id(schema, 'head')} AS head
        WHERE head.app = ${app} AND head.leaf < one.size ORDER BY head.leaf DESC LIMIT 1) AS newest ON true
      ${compilePage(page)}`)
  }

  /** Lists anchors, newest first. */
  async list(database: Queryable, schema: string, page: AnchorPage): Promise<AnchorRow[]> {
    return database.query(sql`
      SELECT one.transaction AS name, one.size, one.body FROM ${sql.id(schema, 'anchor')} AS one ${compilePage(page)}`)
  }
}

/** A page of anchors: those after a place in their order, by size downwards and then by name. */
export type AnchorPage = {
  readonly after: { readonly size: bigint; readonly name: string } | undefined
  readonly limit: number
}

function compilePage({ after, limit }: AnchorPage): SqlStatement {
  const place =
    after === undefined
      ? sql.empty
      : sql`WHERE one.size < ${after.size}::int8 OR (one.size = ${after.size}::int8 AND one.transaction > ${after.name})`
  return sql`${place} ORDER BY one.size DESC, one.transaction LIMIT ${limit}`
}

/** Makes the tables in a database whose service has its own chain already, from before there were anchors. */
export function buildMissingAnchorTables(): SqlStatement[] {
  const statements = buildAnchorTables('system').map(({ text }) => sql`${sql.literal(text)}`)
  return [
    sql`DO $$ BEGIN
      IF to_regclass('system.watermark') IS NOT NULL AND to_regclass('system.head') IS NULL THEN
        ${sql.join(
          statements.map((statement) => sql`EXECUTE ${statement};`),
          ' ',
        )}
      END IF;
    END $$`,
  ]
}

function buildAnchorTables(schema: string): SqlStatement[] {
  return [
    sql`CREATE TABLE ${sql.id(schema, 'head')} (
      app text NOT NULL, size int8 NOT NULL, height int8 NOT NULL, root text NOT NULL,
      leaf int8 NOT NULL, at_height int8 NOT NULL, at_sequence int4 NOT NULL,
      CONSTRAINT head_pkey PRIMARY KEY (app, size))`,
    sql`CREATE INDEX head_leaf ON ${sql.id(schema, 'head')} (app, leaf)`,
    sql`CREATE TABLE ${sql.id(schema, 'anchor')} (
      network text NOT NULL, transaction text NOT NULL, size int8 NOT NULL, leaf int8 NOT NULL, body text NOT NULL,
      CONSTRAINT anchor_pkey PRIMARY KEY (network, transaction))`,
    sql`CREATE INDEX anchor_size ON ${sql.id(schema, 'anchor')} (size)`,
    sql`CREATE INDEX anchor_leaf ON ${sql.id(schema, 'anchor')} (leaf)`,
  ]
}

function toHead({ body, leafIndex, height, sequence }: AppliedEntry) {
  const head: Head = JSON.parse(body)
  return { ...head, leafIndex, atHeight: height, atSequence: sequence }
}

async function insertHeads(
  tx: Queryable,
  schema: string,
  heads: readonly ReturnType<typeof toHead>[],
): Promise<void> {
  await tx.execute(sql`
    INSERT INTO ${sql.id(schema, 'head')} (app, size, height, root, leaf, at_height, at_sequence)
    SELECT app, size, height, root, leaf, at_height, at_sequence FROM unnest(
      ${heads.map(({ app }) => app)}::text[], ${heads.map(({ size }) => size)}::int8[],
      ${heads.map(({ height }) => height)}::int8[], ${heads.map(({ root }) => root)}::text[],
      ${heads.map(({ leafIndex }) => leafIndex)}::int8[], ${heads.map(({ atHeight }) => atHeight)}::int8[],
      ${heads.map(({ atSequence }) => atSequence)}::int4[])
      AS told (app, size, height, root, leaf, at_height, at_sequence)
    ORDER BY leaf ON CONFLICT (app, size) DO NOTHING`)
}

async function applyAnchor(tx: Queryable, schema: string, entry: AppliedEntry): Promise<void> {
  const { network, transaction, commitment, size, withdrawn } = JSON.parse(entry.body)
  const name = String(commitment ?? transaction)
  if (withdrawn === true) {
    await tx.execute(sql`
      DELETE FROM ${sql.id(schema, 'anchor')} WHERE network = ${String(network)} AND transaction = ${name}`)
    return
  }
  await tx.execute(sql`
    INSERT INTO ${sql.id(schema, 'anchor')} (network, transaction, size, leaf, body)
    VALUES (${String(network)}, ${name}, ${Number(size)}, ${entry.leafIndex}, ${entry.body})
    ON CONFLICT (network, transaction) DO UPDATE SET leaf = excluded.leaf, body = excluded.body`)
}
