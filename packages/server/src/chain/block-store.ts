import { requirePresent } from '../base/assert.ts'
import type { Queryable } from '../database/database.ts'
import { type FirstPiece, printFirstPiece, readRest } from '../database/long-value.ts'
import { type SqlStatement, sql } from '../database/sql.ts'
import type { FullTile, TileCoordinate } from './merkle.ts'

/** A block as its row holds it, unchecked. */
export type BlockRow = {
  readonly height: number
  readonly header: Buffer
  readonly signature: Buffer
  readonly firstLeaf: number
  readonly entryCount: number
  readonly groupStarts: readonly number[]
  readonly body: Buffer
  readonly leafHashes: Buffer
}

/**
 * The progress of the appliers: the last applied entry, and the next leaf to apply. Height 0 is before the first
 * block.
 */
export type Watermark = {
  readonly height: number
  readonly sequence: number
  readonly leaf: number
}

export type BlockRange = {
  readonly from: number
  /** Inclusive. */
  readonly to: number
  readonly blocksMax: number
  /** Bytes of bodies; a single larger block is read nevertheless. */
  readonly bytesMax: number
  /** The most entries to read; a single block of more is read nevertheless. */
  readonly entriesMax?: number
}

type RawBlock = {
  height: bigint
  header: Buffer
  signature: Buffer
  first_leaf: bigint
  entry_count: number
  group_starts: number[]
  body: Buffer
  leaf_hashes: Buffer
}

const pageBlocksMax = 64
const pageBytesMax = 8 * 1024 * 1024

/** The SQL of one chain's tables. */
export class BlockStore {
  readonly #database: Queryable
  readonly #block: SqlStatement
  readonly #tile: SqlStatement
  readonly #watermark: SqlStatement

  constructor(database: Queryable, schema: string) {
    this.#database = database
    this.#block = sql.id(schema, 'block')
    this.#tile = sql.id(schema, 'tile')
    this.#watermark = sql.id(schema, 'watermark')
  }

  async last(): Promise<BlockRow | undefined> {
    const [row] = await this.#blocks(sql`ORDER BY height DESC LIMIT 1`)
    return row
  }

  /** Reads a block whose bytes are few; tells how many they are where they are more. */
  async small(
    height: number,
  ): Promise<{ readonly row: BlockRow | undefined; readonly bytes: number } | undefined> {
    const [row] = await this.#database.query<
      Omit<RawBlock, 'body' | 'leaf_hashes'> & {
        body: Buffer | null
        leaf_hashes: Buffer | null
        bytes: number
      }
    >(
      sql`SELECT height, header, signature, first_leaf, entry_count, group_starts, ${blockBytes} AS bytes,
          CASE WHEN ${isSmall} THEN body END AS body, CASE WHEN ${isSmall} THEN leaf_hashes END AS leaf_hashes
        FROM ${this.#block} WHERE height = ${height}`,
    )
    if (row === undefined) return undefined
    const { body, leaf_hashes, bytes, ...rest } = row
    if (body === null || leaf_hashes === null) return { row: undefined, bytes }
    return { row: { ...toOutline({ ...rest, leaf_hashes }), body }, bytes }
  }

  /** Reads a block; a large body comes in pieces, so that other requests go on. */
  async block(height: number): Promise<BlockRow | undefined> {
    const rows = sql`FROM ${this.#block} WHERE height = ${height}`
    for (;;) {
      const [row] = await this.#database.query<Omit<RawBlock, 'body'> & FirstPiece>(
        sql`SELECT ${outlineColumns}, ${printFirstPiece(bodyColumn)} ${rows}`,
      )
      if (row === undefined) return undefined
      const body = await readRest(this.#database, { column: bodyColumn, rows }, row)
      if (body !== undefined) return { ...toOutline(row), body }
    }
  }

  /** Reads a block but for its body. */
  async outline(height: number): Promise<Omit<BlockRow, 'body'> | undefined> {
    const [row] = await this.#database.query<Omit<RawBlock, 'body'>>(
      sql`SELECT ${outlineColumns} FROM ${this.#block} WHERE height = ${height}`,
    )
    return row && toOutline(row)
  }

  /** Reads the first blocks of the range, in height order; empty where there are none. */
  async blocks(range: BlockRange): Promise<BlockRow[]> {
    const { from, to, blocksMax, bytesMax, entriesMax = Number.POSITIVE_INFINITY } = range
    const sizes = await this.#database.query<{ height: bigint; bytes: number; entries: number }>(
      sql`SELECT height, octet_length(body) AS bytes, entry_count AS entries FROM ${this.#block}
        WHERE height >= ${from} AND height <= ${to} ORDER BY height LIMIT ${blocksMax}`,
    )
    let [bytes, entries] = [0, 0]
    let end = from - 1
    for (const size of sizes) {
      bytes += size.bytes
      entries += size.entries
      if (end >= from && (bytes > bytesMax || entries > entriesMax)) break
      end = Number(size.height)
    }
    return end < from
      ? []
      : this.#blocks(sql`WHERE height >= ${from} AND height <= ${end} ORDER BY height`)
  }

  /** Reads all blocks from this height on, page by page, until the height that the chain has by then. */
  async *readAll(height: number, readEnd: () => number): AsyncGenerator<BlockRow, void, undefined> {
    for (let from = height; from <= readEnd(); ) {
      const range = { from, to: readEnd(), blocksMax: pageBlocksMax, bytesMax: pageBytesMax }
      const rows = await this.blocks(range)
      if (rows[0]?.height !== from) throw new Error(`block ${from} is missing; run the audit`)
      yield* rows
      from += rows.length
    }
  }

  /** Bytes of the bodies of the blocks after `after`, up to and with `to`. */
  async bodyBytes(after: number, to: number): Promise<number> {
    const [row] = await this.#database.query<{ bytes: bigint }>(
      sql`SELECT coalesce(sum(octet_length(body)), 0)::int8 AS bytes FROM ${this.#block}
        WHERE height > ${after} AND height <= ${to}`,
    )
    return Number(row?.bytes ?? 0)
  }

  /** The hashes of all leaves from this one on. */
  async leafHashesFrom(leaf: number): Promise<Buffer> {
    const rows = await this.#database.query<{ first_leaf: bigint; leaf_hashes: Buffer }>(
      sql`SELECT first_leaf, leaf_hashes FROM ${this.#block}
        WHERE first_leaf >= (SELECT coalesce(max(first_leaf), 0) FROM ${this.#block} WHERE first_leaf <= ${leaf})
        ORDER BY first_leaf`,
    )
    const skipped = (leaf - Number(rows[0]?.first_leaf ?? leaf)) * 32
    return Buffer.concat(rows.map((row) => row.leaf_hashes)).subarray(skipped)
  }

  /** The block that holds the leaf, if the chain is that long. */
  async blockOfLeaf(
    leaf: number,
  ): Promise<
    { readonly height: number; readonly firstLeaf: number; readonly entryCount: number } | undefined
  > {
    const [row] = await this.#database.query<{
      height: bigint
      first_leaf: bigint
      entry_count: number
    }>(
      sql`SELECT height, first_leaf, entry_count FROM ${this.#block}
        WHERE first_leaf <= ${leaf} ORDER BY first_leaf DESC LIMIT 1`,
    )
    return row === undefined
      ? undefined
      : {
          height: Number(row.height),
          firstLeaf: Number(row.first_leaf),
          entryCount: row.entry_count,
        }
  }

  async headerText(height: number): Promise<string | undefined> {
    const [row] = await this.#database.query<{ header: Buffer }>(
      sql`SELECT header FROM ${this.#block} WHERE height = ${height}`,
    )
    return row?.header.toString()
  }

  /** The full tiles of a level from index `from` up to and without `to`. */
  tiles(level: number, from: number, to: number): Promise<FullTile[]> {
    return this.#tiles(
      sql`WHERE level = ${level} AND index >= ${from} AND index < ${to} ORDER BY index`,
    )
  }

  tilesAt(places: readonly TileCoordinate[]): Promise<FullTile[]> {
    const pairs = places.map(({ level, index }) => sql`(${level}::int4, ${index}::int8)`)
    return this.#tiles(sql`WHERE (level, index) IN (${sql.join(pairs)})`)
  }

  /** The highest tile index of each level that has tiles. */
  async highestTiles(): Promise<TileCoordinate[]> {
    const rows = await this.#database.query<{ level: number; index: bigint }>(
      sql`SELECT level, max(index) AS index FROM ${this.#tile} GROUP BY level ORDER BY level`,
    )
    return rows.map(({ level, index }) => ({ level, index: Number(index) }))
  }

  /** Finds a row that no walk from the first block reaches, and names it. */
  async findStrayRow(): Promise<string | undefined> {
    const [row] = await this.#database.query<{ what: string }>(sql`
      SELECT 'block ' || height AS what FROM ${this.#block} WHERE height < 1
      UNION ALL SELECT 'tile ' || index || ' of level ' || level FROM ${this.#tile} WHERE level < 0 OR index < 0 LIMIT 1`)
    return row?.what
  }

  async watermark(): Promise<Watermark> {
    const [row] = await this.#database.query<{ height: bigint; sequence: number; leaf: bigint }>(
      sql`SELECT height, sequence, leaf FROM ${this.#watermark} WHERE id = 1`,
    )
    const { height, sequence, leaf } = requirePresent(row, 'the watermark')
    return { height: Number(height), sequence, leaf: Number(leaf) }
  }

  /**
   * Moves the watermark within the applier's transaction; false where it is not at `from` (another applier loop
   * moved it).
   */
  async advance(tx: Queryable, from: Watermark, to: Watermark): Promise<boolean> {
    // Without values, so that it is sent with BEGIN.
    const { integer } = sql
    const changed = await tx.execute(
      sql`UPDATE ${this.#watermark} SET height = ${integer(to.height)}, sequence = ${integer(to.sequence)},
          leaf = ${integer(to.leaf)}
        WHERE id = 1 AND height = ${integer(from.height)}`,
    )
    return changed === 1
  }

  async #blocks(condition: SqlStatement): Promise<BlockRow[]> {
    const rows = await this.#database.query<RawBlock>(
      sql`SELECT ${outlineColumns}, body FROM ${this.#block} ${condition}`,
    )
    return rows.map((row) => ({ ...toOutline(row), body: row.body }))
  }

  async #tiles(condition: SqlStatement): Promise<FullTile[]> {
    const rows = await this.#database.query<{ level: number; index: bigint; hashes: Buffer }>(
      sql`SELECT level, index, hashes FROM ${this.#tile} ${condition}`,
    )
    return rows.map(({ level, index, hashes }) => ({ level, index: Number(index), hashes }))
  }
}

/** Bytes of a block that count as few: a thousand such blocks at once are some 100 MB. */
const smallBytesMax = 64 * 1024
const blockBytes = sql`octet_length(body) + octet_length(leaf_hashes)`
const isSmall = sql`${blockBytes} <= ${sql.integer(smallBytesMax)}`
const bodyColumn = sql.id('body')
const outlineColumns = sql`height, header, signature, first_leaf, entry_count, group_starts, leaf_hashes`

function toOutline(row: Omit<RawBlock, 'body'>): Omit<BlockRow, 'body'> {
  return {
    height: Number(row.height),
    header: row.header,
    signature: row.signature,
    firstLeaf: Number(row.first_leaf),
    entryCount: row.entry_count,
    groupStarts: row.group_starts,
    leafHashes: row.leaf_hashes,
  }
}
