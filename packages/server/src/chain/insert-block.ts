import type { Database, Queryable } from '../database/database.ts'
import { isNullViolation } from '../database/errors.ts'
import { type SqlStatement, sql } from '../database/sql.ts'
import type { BuiltBlock } from './build-block.ts'
import { printNoteInsertion } from './commit-notes.ts'

/** Bytes of a body that travel in one statement: a batch of 1,000 ordinary records does, which parts would slow by a fifth. */
const wholeBytesMax = 1024 * 1024
/** Bytes of each part of a longer one. */
const partBytes = 512 * 1024

/** The chain's schema, and the epoch of the lease under which this process has the chain. */
type Holding = { readonly schema: string; readonly epoch: number }

/**
 * Inserts block, tiles, notes and what is written beside them in one statement: one transaction and one round trip. The
 * database takes none of it where another holder has the chain by now (`isTakenOver`), and whoever takes the chain waits
 * for an insertion that is under way, so it knows all blocks from then on.
 *
 * A long body is sent before it, a part at a time: pg copies all values of a statement at once, and all other requests
 * would wait for a copy of megabytes.
 */
export async function insertBlock(
  database: Database,
  holding: Holding,
  block: BuiltBlock,
): Promise<void> {
  const { body } = block
  const insert = (tx: Queryable, value: SqlStatement) => tx.execute(print(holding, block, value))
  if (body.length <= wholeBytesMax) {
    await insert(database, sql`${body}`)
    return
  }
  await database.transaction(async (tx) => {
    await tx.execute(sql`CREATE TEMPORARY TABLE body_part (at int8, bytes bytea) ON COMMIT DROP`)
    for (let at = 0; at < body.length; at += partBytes) {
      const bytes = body.subarray(at, at + partBytes)
      await tx.execute(sql`INSERT INTO pg_temp.body_part (at, bytes) VALUES (${at}, ${bytes})`)
    }
    await insert(tx, sql`(SELECT string_agg(bytes, '' ORDER BY at) FROM pg_temp.body_part)`)
  })
}

/** Returns true where a block was refused because another holder has its chain. */
export function isTakenOver(error: unknown): boolean {
  return isNullViolation(error, { table: 'block', column: 'height' })
}

function print(
  { schema, epoch }: Holding,
  { tiles, notes, beside, ...block }: BuiltBlock,
  body: SqlStatement,
): SqlStatement {
  // No block has the height NULL, so without the lease the whole statement is refused.
  const height = sql`(SELECT ${block.height}::int8 FROM operations.chain_lease
    WHERE chain = ${schema} AND epoch = ${epoch}::int8 FOR SHARE)`
  const insertion = sql`INSERT INTO ${sql.id(schema, 'block')}
    (height, header, signature, first_leaf, entry_count, group_starts, body, leaf_hashes) VALUES
    (${height}, ${block.header}, ${block.signature}, ${block.firstLeaf}, ${block.entryCount},
     ${block.groupStarts}, ${body}, ${block.leafHashes})`
  const rows = tiles.map(({ level, index, hashes }) => sql`(${level}, ${index}, ${hashes})`)
  const table = sql.id(schema, 'tile')
  const more = [
    ...(beside?.print(block.height) ?? []),
    ...(tiles.length === 0
      ? []
      : [sql`tiles AS (INSERT INTO ${table} (level, index, hashes) VALUES ${sql.join(rows)})`]),
    ...(notes.length === 0 ? [] : [sql`notes AS (${printNoteInsertion(notes)})`]),
  ]
  return more.length === 0 ? insertion : sql`WITH ${sql.join(more)} ${insertion}`
}
