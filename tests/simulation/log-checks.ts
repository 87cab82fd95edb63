import { createHash } from 'node:crypto'
import { decodeEntry } from '@tollbase/verify/entry'
import { auditChain } from '../../packages/server/src/chain/audit-chain.ts'
import type { Database } from '../../packages/server/src/database/database.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import { type Log, logOrigin, logSigner, type Written } from './log.ts'
import { emptyDigest, extendDigest, logSchema } from './summary.ts'

/** Decodes the entries of a block's body by hand: four bytes of length, then the entry. */
type Leaf = { readonly height: number; readonly hash: Buffer; readonly body: string }

/**
 * Checks the invariants of every moment: the projection is that of the entries up to its watermark, and heights
 * have no gap.
 */
export async function checkProjection(database: Database): Promise<string[]> {
  const [row] = await database.query<{
    height: bigint
    leaf: bigint
    count: bigint
    digest: Buffer
  }>(
    sql`SELECT mark.height, mark.leaf, summary.count, summary.digest
      FROM ${sql.id(logSchema, 'watermark')} AS mark, ${sql.id(logSchema, 'summary')} AS summary`,
  )
  if (row === undefined) return ['there is no watermark']
  const { leaves, heights } = await readLog(database)
  const gap = heights.find((height, at) => height !== at + 1)
  const applied = leaves.filter(({ height }) => height <= Number(row.height))
  const digest = extendDigest(
    emptyDigest,
    applied.map(({ body }) => body),
  )
  return [
    ...(gap === undefined ? [] : [`there is a gap before height ${gap}`]),
    ...(Number(row.leaf) === applied.length
      ? []
      : [`the watermark ${row.height} says ${row.leaf} entries, and there are ${applied.length}`]),
    ...(row.digest.equals(digest) && Number(row.count) === applied.length
      ? []
      : [
          `the projection at ${row.height} shows ${row.count} entries, not the ${applied.length} there are, in their order`,
        ]),
  ]
}

/** Checks the invariants of a log once nothing is under way any more. */
export async function checkLog(log: Log): Promise<string[]> {
  const { database, written, heads } = log
  const { leaves, heights } = await readLog(database)
  const [mark] = await database.query<{ height: bigint }>(
    sql`SELECT height FROM ${sql.id(logSchema, 'watermark')}`,
  )
  const report = await auditChain(database, logSchema, { origin: logOrigin, vkey: logSigner.vkey })
  return [
    ...(await checkProjection(database)),
    ...(Number(mark?.height) === heights.length
      ? []
      : [`${heights.length} blocks, and ${mark?.height} applied in the end`]),
    ...(report.ok ? [] : [`the audit differs: ${JSON.stringify(report.difference)}`]),
    ...written.flatMap((one) => checkWritten(one, leaves)),
    ...checkOrder(written),
    ...checkOnce(leaves),
    ...checkHeads(heads, leaves),
  ]
}

/** Checks that an acknowledged group is complete and in order at the position that its writer was told. */
function checkWritten({ bodies, place }: Written, leaves: readonly Leaf[]): string[] {
  const found = leaves.slice(place.leafIndex, place.leafIndex + place.count)
  const isThere =
    place.count === bodies.length &&
    bodies.every((body, at) => found[at]?.body === body && found[at]?.height === place.height)
  return isThere
    ? []
    : [`the group acknowledged at ${place.height}.${place.sequence} is not there: ${bodies[0]}`]
}

/** Checks that an entry that was acknowledged before another append was called comes before that one. */
function checkOrder(written: readonly Written[]): string[] {
  return written.flatMap((later) =>
    written
      .filter(
        (one) =>
          one.acknowledgedAt < later.calledAt && one.place.leafIndex >= later.place.leafIndex,
      )
      .map(
        (one) =>
          `${one.bodies[0]} was acknowledged before ${later.bodies[0]} was sent, and comes after it`,
      ),
  )
}

function checkOnce(leaves: readonly Leaf[]): string[] {
  const seen = new Set<string>()
  const twice = leaves.filter(({ body }) => {
    const isKnown = seen.has(body)
    seen.add(body)
    return isKnown
  })
  return twice.map(({ body }) => `${body} is there twice`)
}

/** Checks that every tree the service vouched for is a prefix of the present one: nothing was ever rewritten. */
function checkHeads(heads: Log['heads'], leaves: readonly Leaf[]): string[] {
  const hashes = leaves.map(({ hash }) => hash)
  return heads
    .filter(({ size, root }) => computeRoot(hashes.slice(0, size)).toString('base64') !== root)
    .map(
      ({ size }) => `the tree of ${size} entries that was vouched for is not the one that there is`,
    )
}

/** RFC 6962, section 2.1, word for word. */
function computeRoot(hashes: readonly Buffer[]): Buffer {
  const [only] = hashes
  if (only === undefined) return createHash('sha256').digest()
  if (hashes.length === 1) return only
  let split = 1
  while (split * 2 < hashes.length) split *= 2
  const left = computeRoot(hashes.slice(0, split))
  const right = computeRoot(hashes.slice(split))
  return createHash('sha256').update(Buffer.of(1)).update(left).update(right).digest()
}

async function readLog(database: Database): Promise<{ leaves: Leaf[]; heights: number[] }> {
  const rows = await database.query<{ height: bigint; body: Buffer }>(
    sql`SELECT height, body FROM ${sql.id(logSchema, 'block')} ORDER BY height`,
  )
  const leaves: Leaf[] = []
  for (const { height, body } of rows) {
    for (let at = 0; at < body.length; ) {
      const start = at + 4
      at = start + body.readUInt32BE(at)
      const entry = body.subarray(start, at)
      const hash = createHash('sha256').update(Buffer.of(0)).update(entry).digest()
      leaves.push({ height: Number(height), hash, body: decodeEntry(entry).body })
    }
  }
  return { leaves, heights: rows.map(({ height }) => Number(height)) }
}
