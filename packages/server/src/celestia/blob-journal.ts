import type { Database } from '../database/database.ts'
import { type SqlStatement, sql } from '../database/sql.ts'

const table = sql.id('operations', 'celestia_blob')

/**
 * A blob that was sent, or may have been. Its bytes are not here: who sends it can make them anew.
 * - sent: a block may have it, or get it
 * - placed: a block has it, and its proof is here
 * - lost: no block had it for so long that none will
 */
export type JournaledBlob = {
  readonly id: string
  readonly namespace: Buffer
  readonly commitment: Buffer
  readonly bytes: number
  /** The tree that the blob tells of: name of the log, size, and root in base64. */
  readonly origin: string
  readonly size: number
  readonly root: string
  readonly state: 'sent' | 'placed' | 'lost'
  /** The first height that can have it, and the last one that was looked through. */
  readonly fromHeight: number
  readonly searchedHeight: number
  readonly height: number | null
  readonly transaction: string | null
  /** JSON of the header and of the proof, kept as nodes forget them. */
  readonly header: string | null
  readonly proof: string | null
}

type Change = Pick<
  JournaledBlob,
  'id' | 'state' | 'fromHeight' | 'searchedHeight' | 'height' | 'transaction' | 'header' | 'proof'
>

type Row = Omit<JournaledBlob, 'size' | 'fromHeight' | 'searchedHeight' | 'height'> &
  Readonly<Record<'size' | 'fromHeight' | 'searchedHeight', bigint>> & {
    readonly height: bigint | null
  }

const columns = sql`id, namespace, commitment, bytes, origin, size, root, state, from_height AS "fromHeight",
  searched_height AS "searchedHeight", height, transaction, header, proof`

export function buildCelestiaTables(): SqlStatement[] {
  return [
    sql`CREATE TABLE ${table} (
      network text NOT NULL, id text NOT NULL, namespace bytea NOT NULL, commitment bytea NOT NULL, bytes int4 NOT NULL,
      origin text NOT NULL, size int8 NOT NULL, root text NOT NULL,
      state text NOT NULL CHECK (state IN ('sent', 'placed', 'lost')),
      from_height int8 NOT NULL, searched_height int8 NOT NULL, height int8, transaction text, header text, proof text,
      CONSTRAINT celestia_blob_pkey PRIMARY KEY (network, id),
      CONSTRAINT celestia_blob_placed CHECK (state <> 'placed' OR (height IS NOT NULL AND header IS NOT NULL AND proof IS NOT NULL)))`,
    sql`CREATE INDEX celestia_blob_origin ON ${table} (network, origin, size)`,
  ]
}

/** The blobs that were sent to one network: each is here before it leaves, so that a crash forgets none. */
export class BlobJournal {
  readonly #database: Database
  readonly #network: string

  constructor(database: Database, network: string) {
    this.#database = database
    this.#network = network
  }

  async find(id: string): Promise<JournaledBlob | undefined> {
    const [row] = await this.#database.query<Row>(sql`
      SELECT ${columns} FROM ${table} WHERE network = ${this.#network} AND id = ${id}`)
    return row && toBlob(row)
  }

  /** Lists the newest blobs of a log whose ids begin so, the newest first. */
  async listNewest(
    origin: string,
    { prefix, limit }: { readonly prefix: string; readonly limit: number },
  ): Promise<JournaledBlob[]> {
    const rows = await this.#database.query<Row>(sql`
      SELECT ${columns} FROM ${table}
      WHERE network = ${this.#network} AND origin = ${origin} AND starts_with(id, ${prefix})
      ORDER BY size DESC, from_height DESC, id LIMIT ${limit}`)
    return rows.map(toBlob)
  }

  /** Lists the blobs whose ids begin so, and of which nobody knows yet what became of them. */
  async listSent(idStart: string): Promise<JournaledBlob[]> {
    const rows = await this.#database.query<Row>(sql`
      SELECT ${columns} FROM ${table}
      WHERE network = ${this.#network} AND state = 'sent' AND starts_with(id, ${idStart}::text)`)
    return rows.map(toBlob)
  }

  async insert(
    blob: Omit<JournaledBlob, 'height' | 'transaction' | 'header' | 'proof'>,
  ): Promise<void> {
    await this.#database.execute(sql`
      INSERT INTO ${table} (network, id, namespace, commitment, bytes, origin, size, root, state, from_height, searched_height)
      VALUES (${this.#network}, ${blob.id}, ${blob.namespace}, ${blob.commitment}, ${blob.bytes}, ${blob.origin},
        ${blob.size}, ${blob.root}, ${blob.state}, ${blob.fromHeight}, ${blob.searchedHeight})`)
  }

  async update({
    id,
    state,
    fromHeight,
    searchedHeight,
    height,
    transaction,
    header,
    proof,
  }: Change): Promise<void> {
    await this.#database.execute(sql`
      UPDATE ${table} SET state = ${state}, from_height = ${fromHeight}, searched_height = ${searchedHeight},
        height = ${height}, transaction = ${transaction}, header = ${header}, proof = ${proof}
      WHERE network = ${this.#network} AND id = ${id}`)
  }

  /** Removes a blob that was surely not sent. */
  async remove(id: string): Promise<void> {
    await this.#database.execute(
      sql`DELETE FROM ${table} WHERE network = ${this.#network} AND id = ${id}`,
    )
  }
}

function toBlob(row: Row): JournaledBlob {
  return {
    ...row,
    size: Number(row.size),
    fromHeight: Number(row.fromHeight),
    searchedHeight: Number(row.searchedHeight),
    height: row.height === null ? null : Number(row.height),
  }
}
