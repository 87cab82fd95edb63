import { FormatError } from '@tollbase/verify/bytes'
import {
  parseCommitmentProof,
  verifyCommitmentProof,
} from '@tollbase/verify/celestia/commitment-proof'
import { getDataRoot, parseHeader } from '@tollbase/verify/celestia/header'
import { countShares } from '@tollbase/verify/celestia/shares'
import type { Database } from '../../database/database.ts'
import { type SqlStatement, sql } from '../../database/sql.ts'
import type { ChainPlace } from '../maintenance.ts'
import { headerRoot } from './audit-anchors.ts'

type Difference = Readonly<Record<string, unknown>>

type Row = {
  readonly network: string
  readonly id: string
  readonly origin: string
  readonly namespace: Buffer
  readonly commitment: Buffer
  readonly bytes: number
  readonly root: string
  readonly height: bigint | null
  readonly header: string | null
  readonly proof: string | null
  /** The root of the log at the size that the blob tells of; null where no block ends there. */
  readonly found: string | null
}

const pageRows = 500
const what = 'table operations.celestia_blob'

/** Checks that every blob on Celestia tells of a tree that its log had, and that each kept proof holds. */
export async function auditCelestia(
  database: Database,
  places: readonly ChainPlace[],
): Promise<Difference | undefined> {
  const [unknown] = await database.query<{ id: string; origin: string }>(sql`
    SELECT id, origin FROM operations.celestia_blob
    WHERE NOT origin = ANY(${places.map(({ origin }) => origin)}::text[]) ORDER BY network, id LIMIT 1`)
  if (unknown !== undefined)
    return { what, row: unknown.id, field: 'origin', expected: 'a log', found: unknown.origin }
  for (const place of places)
    for await (const row of listBlobs(database, place)) {
      const { id, root, found } = row
      if (root !== found)
        return {
          what,
          row: id,
          field: 'root',
          expected: found ?? 'a block that ends there',
          found: root,
        }
      const problem = findProblem(row)
      if (problem !== undefined)
        return { what, row: id, field: 'proof', expected: 'one that holds', found: problem }
    }
  return undefined
}

async function* listBlobs(
  database: Database,
  { schema, origin }: ChainPlace,
): AsyncGenerator<Row, void, undefined> {
  for (let after: SqlStatement = sql.empty; ; ) {
    const rows = await database.query<Row>(sql`
      SELECT network, id, origin, namespace, commitment, bytes, root, height, header, proof, (
        SELECT ${headerRoot} FROM ${sql.id(schema, 'block')} AS block
        WHERE block.first_leaf + block.entry_count = one.size AND block.first_leaf < one.size LIMIT 1) AS found
      FROM operations.celestia_blob AS one WHERE origin = ${origin} ${after} ORDER BY network, id LIMIT ${pageRows}`)
    yield* rows
    const last = rows.at(-1)
    if (last === undefined) return
    after = sql`AND (network, id) > (${last.network}, ${last.id})`
  }
}

function findProblem({
  namespace,
  commitment,
  bytes,
  height,
  header,
  proof,
}: Row): string | undefined {
  if (header === null || proof === null) return undefined
  try {
    const block = parseHeader(JSON.parse(header))
    if (block.height !== String(height)) return `the header of height ${block.height}`
    const dataRoot = getDataRoot(block)
    const claim = { namespace, commitment, shares: countShares(bytes), dataRoot }
    verifyCommitmentProof(parseCommitmentProof(JSON.parse(proof)), claim)
    return undefined
  } catch (error) {
    if (error instanceof FormatError || error instanceof SyntaxError) return error.message
    throw error
  }
}
