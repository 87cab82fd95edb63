import { hashOrigin, parseAnchorTransaction } from '@tollbase/verify/anchor'
import { FormatError } from '@tollbase/verify/bytes'
import { checkCelestiaAnchor } from '@tollbase/verify/celestia/celestia-anchor'
import type { Check } from '@tollbase/verify/check'
import { parseVerifierKey } from '@tollbase/verify/checkpoint'
import { parseEvmTransaction } from '@tollbase/verify/ethereum'
import {
  type Anchor,
  type CelestiaAnchor,
  getAnchorName,
  isCelestiaAnchor,
} from '../../anchors/anchor-chain.ts'
import { deployData, factory } from '../../anchors/anchor-contract.ts'
import type { Database } from '../../database/database.ts'
import { type SqlStatement, sql } from '../../database/sql.ts'
import { encodeHex } from '../../x402/hex.ts'
import type { ChainPlace } from '../maintenance.ts'

type Difference = Readonly<Record<string, unknown>>

/** The tree size and the root are lines 6 and 7 of the header of `block`, see block.ts of packages/verify. */
export const headerSize: SqlStatement = sql`split_part(convert_from(block.header, 'UTF8'), chr(10), 6)`
export const headerRoot: SqlStatement = sql`split_part(convert_from(block.header, 'UTF8'), chr(10), 7)`

/**
 * Checks that every head of another chain that the system chain announced is the head that chain had at that height,
 * and that every anchor has the root of the system chain's tree at its size. The chains themselves, and that the
 * tables have what the entries say, were audited before.
 */
export async function auditAnchors(
  database: Database,
  places: readonly ChainPlace[],
): Promise<Difference | undefined> {
  const [system, ...others] = places
  if (system === undefined) return undefined
  const unknown = await findHeadOfNobody(database, others)
  if (unknown !== undefined) return unknown
  for (const place of others) {
    const wrong = await findWrongHead(database, place)
    if (wrong !== undefined) return wrong
  }
  return findWrongAnchor(database, system)
}

async function findHeadOfNobody(
  database: Database,
  places: readonly ChainPlace[],
): Promise<Difference | undefined> {
  const [row] = await database.query<{ app: string; height: bigint; root: string }>(sql`
    SELECT app, height, root FROM system.head
    WHERE NOT app = ANY(${places.map(({ app }) => app)}::text[]) ORDER BY leaf LIMIT 1`)
  return row && describeHead(row.app, { ...row, found: null })
}

async function findWrongHead(
  database: Database,
  { app, schema }: ChainPlace,
): Promise<Difference | undefined> {
  const [row] = await database.query<{ height: bigint; root: string; found: string | null }>(sql`
    SELECT head.height, head.root, ${headerRoot} AS found FROM system.head AS head
    LEFT JOIN ${sql.id(schema, 'block')} AS block ON block.height = head.height
    WHERE head.app = ${app} AND (${headerSize}, ${headerRoot}) IS DISTINCT FROM (head.size::text, head.root)
    ORDER BY head.leaf LIMIT 1`)
  return row && describeHead(app, row)
}

function describeHead(
  app: string,
  { height, root, found }: { height: bigint; root: string; found: string | null },
): Difference {
  return {
    chain: app,
    what: `head of ${app} at height ${height}, as the system chain announced it`,
    expected: root,
    found: found ?? 'no such block',
  }
}

async function findWrongAnchor(
  database: Database,
  { origin, vkey }: ChainPlace,
): Promise<Difference | undefined> {
  for await (const { body, root } of listAnchors(database)) {
    const anchor: Anchor = JSON.parse(body)
    const what = `anchor ${getAnchorName(anchor)} on ${anchor.network}`
    if (root !== anchor.root)
      return {
        what,
        expected: `the root at size ${anchor.size}: ${root ?? 'no such block'}`,
        found: anchor.root,
      }
    if (isCelestiaAnchor(anchor)) {
      const wrong = findProblemOfBlob(anchor, { origin, vkey })
      if (wrong !== undefined)
        return { what, field: wrong.name, expected: 'ok', found: wrong.detail }
      continue
    }
    const found = describeTransaction(anchor.raw)
    const expected = [
      anchor.transaction,
      anchor.network,
      anchor.contract,
      anchor.signer,
      hashOrigin(origin),
      anchor.size,
      anchor.root,
    ].join(' ')
    if (found !== expected) return { what, field: 'raw', expected, found }
  }
  return undefined
}

/** Finds the first check that a blob on Celestia does not pass. */
function findProblemOfBlob(
  anchor: CelestiaAnchor,
  { origin, vkey }: Pick<ChainPlace, 'origin' | 'vkey'>,
): Check | undefined {
  const { size, root } = anchor
  const checks = checkCelestiaAnchor(anchor, {
    system: { origin, size, root: new Uint8Array(Buffer.from(root, 'base64')) },
    publicKey: parseVerifierKey(vkey).publicKey,
    trustedHeaderHash: undefined,
  })
  return checks.find(({ ok }) => !ok)
}

/** Finds what is wrong with a transaction of the journal that is called an anchor, or the making of the contract. */
export function findProblemOfAnchor(
  id: string,
  raw: Buffer,
): { readonly expected: string; readonly found: string } | undefined {
  const [kind, ...rest] = id.split(':')
  const size = rest.at(-2)
  const expected = kind === 'anchor' ? `a call that anchors size ${size}` : 'a call of the factory'
  try {
    if (kind === 'anchor') {
      const found = String(parseAnchorTransaction(encodeHex(raw)).size)
      return found === size ? undefined : { expected, found }
    }
    const { to, data } = parseEvmTransaction(raw)
    return to === factory && encodeHex(data) === deployData ? undefined : { expected, found: to }
  } catch (error) {
    if (error instanceof FormatError) return { expected, found: error.message }
    throw error
  }
}

function describeTransaction(raw: string): string {
  try {
    const { hash, chainId, to, sender, origin, size, root } = parseAnchorTransaction(raw)
    const encoded = Buffer.from(root).toString('base64')
    return [hash, `eip155:${chainId}`, to, sender, origin, size, encoded].join(' ')
  } catch (error) {
    if (error instanceof FormatError) return error.message
    throw error
  }
}

type StoredAnchor = {
  readonly leaf: bigint
  readonly body: string
  /** The root of the system chain at the anchor's size; null where no block ends there. */
  readonly root: string | null
}

/** Reads the root of the service's own chain at a size, base64; undefined where no block ends there. */
export async function readRootAt(database: Database, size: number): Promise<string | undefined> {
  const [row] = await database.query<{ root: string }>(sql`
    SELECT ${headerRoot} AS root FROM system.block AS block
    WHERE block.first_leaf < ${size}::int8 AND block.first_leaf + block.entry_count = ${size}::int8
    ORDER BY block.first_leaf DESC LIMIT 1`)
  return row?.root
}

const pageRows = 1_000

async function* listAnchors(database: Database): AsyncGenerator<StoredAnchor> {
  for (let after: SqlStatement = sql`-1`; ; ) {
    const rows = await database.query<StoredAnchor>(sql`
      SELECT one.leaf, one.body, (
        SELECT CASE WHEN block.first_leaf + block.entry_count = one.size THEN ${headerRoot} END
        FROM system.block AS block WHERE block.first_leaf < one.size
        ORDER BY block.first_leaf DESC LIMIT 1) AS root
      FROM system.anchor AS one WHERE one.leaf > ${after} ORDER BY one.leaf LIMIT ${pageRows}`)
    yield* rows
    const last = rows.at(-1)
    if (last === undefined) return
    after = sql`${last.leaf}::int8`
  }
}
