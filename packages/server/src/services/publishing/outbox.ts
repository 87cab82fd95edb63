import type { Database } from '../../database/database.ts'
import { type SqlStatement, sql } from '../../database/sql.ts'

const table = sql.id('operations', 'publication')
/** Bytes that were sent on each day since 1970 (UTC). */
const dayTable = sql.id('operations', 'publication_day')

/**
 * A chunk that is to be published, or was. Its bytes are not kept here: they are made anew of the blocks before they
 * are signed, so that nothing is published that was erased or made private while it waited.
 */
export type Publication = {
  readonly app: string
  /** The first and the last block of the bundle. */
  readonly fromHeight: number
  readonly toHeight: number
  readonly part: number
  readonly parts: number
  /** The tree at the end of the last block; the root in base64. */
  readonly size: number
  readonly root: string
  /** SHA-256 of the compressed bundle. */
  readonly bundle: Buffer
  readonly bytes: number
  /** Counts what was sent before without effect. */
  readonly attempt: number
  /** Final: nobody replaces its block any more, so nobody looks at it. */
  readonly state: 'waiting' | 'sent' | 'confirmed' | 'final'
  readonly transaction: string | null
  readonly blockNumber: number | null
  readonly blockHash: string | null
}

export type Change = Pick<
  Publication,
  'app' | 'fromHeight' | 'part' | 'attempt' | 'state' | 'transaction' | 'blockNumber' | 'blockHash'
>

type Row = Omit<Publication, 'fromHeight' | 'toHeight' | 'size' | 'blockNumber'> & {
  readonly fromHeight: bigint
  readonly toHeight: bigint
  readonly size: bigint
  readonly blockNumber: bigint | null
}

const columns = sql`app, from_height AS "fromHeight", to_height AS "toHeight", part, parts, size, root, bundle, bytes,
  attempt, state, transaction, block_number AS "blockNumber", block_hash AS "blockHash"`

export function buildPublicationTables(): SqlStatement[] {
  return [
    sql`CREATE TABLE ${table} (
      network text NOT NULL, app text NOT NULL, from_height int8 NOT NULL, part int4 NOT NULL, parts int4 NOT NULL,
      to_height int8 NOT NULL, size int8 NOT NULL, root text NOT NULL, bundle bytea NOT NULL, bytes int4 NOT NULL,
      attempt int4 NOT NULL, state text NOT NULL CHECK (state IN ('waiting', 'sent', 'confirmed')),
      transaction text, block_number int8, block_hash text,
      CONSTRAINT publication_pkey PRIMARY KEY (network, app, from_height, part))`,
    sql`CREATE TABLE ${dayTable} (
      network text NOT NULL, day int4 NOT NULL, bytes int8 NOT NULL,
      CONSTRAINT publication_day_pkey PRIMARY KEY (network, day))`,
  ]
}

/** Adds the state final. */
export function buildFinalState(): SqlStatement[] {
  return [
    sql`ALTER TABLE ${table} DROP CONSTRAINT publication_state_check`,
    sql`ALTER TABLE ${table} ADD CONSTRAINT publication_state_check
      CHECK (state IN ('waiting', 'sent', 'confirmed', 'final'))`,
  ]
}

/**
 * The chunks for one other chain: written before anything leaves, so that a crash forgets none. Only bundles that are
 * final, and have another one after them, leave it: so the last block of all says how far an application is, and none is
 * sent twice.
 */
export class Outbox {
  readonly #database: Database
  readonly #network: string

  constructor(database: Database, network: string) {
    this.#database = database
    this.#network = network
  }

  /**
   * Lists the chunks in the order in which they are to be sent. Final ones were deleted, except those of the last
   * bundle.
   */
  async list(): Promise<Publication[]> {
    const rows = await this.#database.query<Row>(sql`
      SELECT ${columns} FROM ${table} WHERE network = ${this.#network} ORDER BY from_height, app, part`)
    return rows.map((row) => ({
      ...row,
      fromHeight: Number(row.fromHeight),
      toHeight: Number(row.toHeight),
      size: Number(row.size),
      blockNumber: row.blockNumber === null ? null : Number(row.blockNumber),
    }))
  }

  /** Adds the chunks of a bundle, all of them or none. */
  insert(chunks: readonly Publication[]): Promise<void> {
    return this.#insert(this.#database, chunks)
  }

  /** Puts the chunks of a bundle in the place of those of the same blocks. */
  async replace(app: string, fromHeight: number, chunks: readonly Publication[]): Promise<void> {
    await this.#database.transaction(async (tx) => {
      await tx.execute(sql`
        DELETE FROM ${table} WHERE network = ${this.#network} AND app = ${app} AND from_height = ${fromHeight}`)
      await this.#insert(tx, chunks)
    })
  }

  async #insert(
    database: Pick<Database, 'execute'>,
    chunks: readonly Publication[],
  ): Promise<void> {
    const rows = chunks.map(
      (
        one,
      ) => sql`(${this.#network}, ${one.app}, ${one.fromHeight}, ${one.part}, ${one.parts}, ${one.toHeight},
        ${one.size}, ${one.root}, ${one.bundle}, ${one.bytes}, ${one.attempt}, ${one.state})`,
    )
    await database.execute(sql`
      INSERT INTO ${table} (network, app, from_height, part, parts, to_height, size, root, bundle, bytes, attempt, state)
      VALUES ${sql.join(rows)}`)
  }

  async update(change: Change): Promise<void> {
    const { app, fromHeight, part, attempt, state, transaction, blockNumber, blockHash } = change
    await this.#database.execute(sql`
      UPDATE ${table} SET attempt = ${attempt}, state = ${state}, transaction = ${transaction},
        block_number = ${blockNumber}, block_hash = ${blockHash}
      WHERE network = ${this.#network} AND app = ${app} AND from_height = ${fromHeight} AND part = ${part}`)
  }

  /** Notes that a chunk is signed, unless another process has noted something of it since it was read. */
  async noteSent(row: Publication, transaction: string): Promise<void> {
    const { app, fromHeight, part, attempt } = row
    await this.#database.execute(sql`
      UPDATE ${table} SET state = 'sent', transaction = ${transaction}
      WHERE network = ${this.#network} AND app = ${app} AND from_height = ${fromHeight} AND part = ${part}
        AND state = 'waiting' AND attempt = ${attempt}`)
  }

  /** Removes final bundles, as their first blocks say. */
  async remove(app: string, fromHeights: readonly number[]): Promise<void> {
    await this.#database.execute(sql`
      DELETE FROM ${table} WHERE network = ${this.#network} AND app = ${app} AND from_height = ANY(${fromHeights}::int8[])`)
  }

  /** Adds bytes to what was sent on a day, where that is not above the limit then. Returns false where it is. */
  async spend(day: number, bytes: number, bytesMax: number): Promise<boolean> {
    const network = this.#network
    await this.#database.execute(
      sql`DELETE FROM ${dayTable} WHERE network = ${network} AND day < ${day}`,
    )
    const spent = await this.#database.execute(sql`
      INSERT INTO ${dayTable} AS spent (network, day, bytes) SELECT ${network}, ${day}::int4, ${bytes}::int8
      WHERE ${bytes}::int8 <= ${bytesMax}::int8
      ON CONFLICT (network, day) DO UPDATE SET bytes = spent.bytes + excluded.bytes
        WHERE spent.bytes + excluded.bytes <= ${bytesMax}::int8`)
    return spent === 1
  }
}
