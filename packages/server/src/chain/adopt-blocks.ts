import { formatBlockHeader, hashBlock, noBlockHash, parseBlockHeader } from '@tollbase/verify/block'
import type { Queryable } from '../database/database.ts'
import { sql } from '../database/sql.ts'
import type { Signer } from './signing.ts'

const blocksAtOnce = 1_000

/**
 * Makes the blocks of another service's chain blocks of this one: entries, times and roots stay, while each header
 * names this origin and the header before it, and is signed by this key. So the leaves and every tree of the chain are
 * what they were, and what was proved by them still is. Gives the epoch of the last block.
 */
export async function adoptBlocks(
  tx: Queryable,
  schema: string,
  {
    origin,
    signer,
    onProgress,
  }: {
    readonly origin: string
    readonly signer: Pick<Signer, 'sign'>
    readonly onProgress?: (height: number) => void
  },
): Promise<number> {
  const block = sql.id(schema, 'block')
  let previousHash = noBlockHash
  let epoch = 0
  for (let after = 0; ; after += blocksAtOnce) {
    const rows = await tx.query<{ height: bigint; header: Buffer }>(sql`
      SELECT height, header FROM ${block} WHERE height > ${after} AND height <= ${after + blocksAtOnce} ORDER BY height`)
    if (rows.length === 0) return epoch
    const heights: number[] = []
    const headers: Buffer[] = []
    const signatures: Buffer[] = []
    for (const { height, header } of rows) {
      const before = parseBlockHeader(header.toString())
      const text = formatBlockHeader({ ...before, origin, previousHash })
      const bytes = Buffer.from(text)
      heights.push(Number(height))
      headers.push(bytes)
      signatures.push(signer.sign(bytes))
      previousHash = hashBlock(text)
      epoch = before.epoch
    }
    await tx.execute(sql`
      UPDATE ${block} AS block SET header = adopted.header, signature = adopted.signature
      FROM unnest(${heights}::int8[], ${headers}::bytea[], ${signatures}::bytea[]) AS adopted (height, header, signature)
      WHERE block.height = adopted.height`)
    onProgress?.(after + rows.length)
  }
}
