import type { Database } from '../database/database.ts'
import { sql } from '../database/sql.ts'
import type { TileCoordinate } from './merkle.ts'

/** An entry, and where its bytes stand in its block's body. */
type EntryPlace = {
  readonly height: number
  readonly sequence: number
  readonly start: number
  readonly length: number
}

/** Reads small parts of the log's large values, each by its place: short reads that share a connection. */
export class LogParts {
  readonly #database: Pick<Database, 'queryShort'>
  readonly #schema: string

  constructor(database: Pick<Database, 'queryShort'>, schema: string) {
    this.#database = database
    this.#schema = schema
  }

  /**
   * Reads `length` bytes of a block's body from `start` on, with the hash of the entry that is there, and how long the
   * body is.
   */
  async readEntry({
    height,
    sequence,
    start,
    length,
  }: EntryPlace): Promise<
    { readonly bodyBytes: number; readonly leafHash: Buffer; readonly entry: Buffer } | undefined
  > {
    const [row] = await this.#database.queryShort<{
      bytes: number
      leaf_hash: Buffer
      entry: Buffer
    }>(
      sql`SELECT octet_length(body) AS bytes,
          substring(leaf_hashes FROM ${sequence * 32 + 1}::int4 FOR 32) AS leaf_hash,
          substring(body FROM ${start + 1}::int4 FOR ${length}::int4) AS entry
        FROM ${sql.id(this.#schema, 'block')} WHERE height = ${height}`,
    )
    return row && { bodyBytes: row.bytes, leafHash: row.leaf_hash, entry: row.entry }
  }

  /** Reads `count` hashes of a full tile, from number `from` on. */
  async readTile(
    { level, index }: TileCoordinate,
    { from, count }: { readonly from: number; readonly count: number },
  ): Promise<Buffer | undefined> {
    const [row] = await this.#database.queryShort<{ hashes: Buffer }>(
      sql`SELECT substring(hashes FROM ${from * 32 + 1}::int4 FOR ${count * 32}::int4) AS hashes
        FROM ${sql.id(this.#schema, 'tile')} WHERE level = ${level} AND index = ${index}`,
    )
    return row?.hashes
  }
}
