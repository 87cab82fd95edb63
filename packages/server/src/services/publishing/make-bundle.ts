import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { deflateRaw } from 'node:zlib'
import type { PublishChoice } from '@tollbase/contract/applications'
import type { Entry } from '@tollbase/verify/entry'
import { encodeBundle, encodeChunks, type PublishedBlock } from '@tollbase/verify/publication'
import { awaitTurn } from '../../base/await-turn.ts'
import { concatInTurns } from '../../base/concat-in-turns.ts'
import type { Block } from '../../chain/parse-block.ts'
import type { Database } from '../../database/database.ts'
import type { Catalog } from '../../model/catalog.ts'
import { getPublishChoice, isPublished } from '../../model/publication.ts'
import { countExpiredAmong, listExpiredAmong } from '../../projections/expiry.ts'
import type { Tenant } from '../applications/tenants.ts'

const compress = promisify(deflateRaw)

/** Bytes after which a bundle takes no further block, those of the hashes in place of entries among them. */
const bundleBytes = 512 * 1024
/** Blocks of one bundle at most. */
const bundleBlocksMax = 1_000
/** Bytes that an entry may cost beside its own: its length, and the hash in its place. */
const entryCost = 4 + 32
/** Bytes of entries that are judged in one turn of the event loop. */
const bytesAtOnce = 64 * 1024
/** Bytes that are hashed in one turn. */
const hashedAtOnce = 1024 * 1024

/** The part of a tenant that bundles are made of. */
export type Publisher = Pick<Tenant, 'chain' | 'data' | 'application' | 'schema'>

/** Blocks, by their first and last heights, and their leaves. */
type Span = {
  readonly fromHeight: number
  readonly toHeight: number
  readonly firstLeaf: number
  /** The tree at the end of the last block. */
  readonly size: number
}

/** All that decides on the bytes of a bundle, as far as it can change. */
export type Basis = {
  readonly choice: PublishChoice
  /** The version of the definitions. */
  readonly version: number
  /** Entries of the blocks that have expired. */
  readonly expired: number
  /** Bytes that the log still has of the blocks. */
  readonly bytes: number
}

/** Some blocks of an application as they are published now. */
export type BlockBundle = Span & {
  readonly root: Uint8Array
  /** SHA-256 of the compressed bundle. */
  readonly hash: Buffer
  readonly chunks: readonly Uint8Array[]
  /** No younger than the bytes: where it is the same later, they are too. */
  readonly basis: Basis
}

/**
 * Makes a bundle of the blocks from a height on: up to `toHeight` where that is given, otherwise as many as are there
 * and fit. Undefined where there are none. A large block takes many turns of the event loop.
 */
export async function makeBundle(
  database: Database,
  tenant: Publisher,
  wanted: {
    readonly fromHeight: number
    readonly toHeight?: number
    readonly chunkBytesMax: number
  },
): Promise<BlockBundle | undefined> {
  const blocks = await readBlocks(tenant, wanted)
  const [first, last] = [blocks[0], blocks.at(-1)]
  if (first === undefined || last === undefined) return undefined
  const span = {
    ...{ fromHeight: first.height, toHeight: last.height },
    ...{ firstLeaf: first.firstLeaf, size: last.header.treeSize },
  }
  const { catalog, ...rules } = await readRules(database, tenant, span)
  const bytes = blocks.reduce((sum, { bodyBytes }) => sum + bodyBytes, 0)
  const basis = { ...rules, version: catalog.version, bytes }
  // All entries are judged by the same catalog, though it change meanwhile. More may have expired than the basis says.
  const expired = await listExpired(database, tenant, span)
  const parts: Uint8Array[] = []
  for (const block of blocks) {
    const published = await toPublished(block, { catalog, choice: rules.choice, expired })
    await awaitTurn()
    parts.push(encodeBundle([published]))
  }
  const compressed = await compress(await joinParts(parts))
  const hash = await hashInTurns(compressed)
  const chunks = encodeChunks(compressed, wanted.chunkBytesMax, hash)
  return { ...span, root: last.header.root, hash, chunks, basis }
}

/** Reads what decides on the bytes of some blocks now. */
export async function readBasis(database: Database, tenant: Publisher, span: Span): Promise<Basis> {
  const { fromHeight: from, toHeight: to } = span
  const { catalog, ...rules } = await readRules(database, tenant, span)
  const bytes = await tenant.chain.countBodyBytes({ from, to })
  return { ...rules, version: catalog.version, bytes }
}

/** Reads the rules by which entries are published now, without what the log has of the blocks. */
async function readRules(
  database: Database,
  tenant: Publisher,
  { firstLeaf: from, size: before }: Span,
): Promise<Pick<Basis, 'choice' | 'expired'> & { readonly catalog: Catalog }> {
  const { chain, data, schema } = tenant
  // A definition or an expiry that is durable counts, though a crash has kept it from the tables.
  await chain.whenApplied(chain.head().height)
  const choice = getPublishChoice(tenant.application)
  const { catalog } = data
  const expired = data.hasExpired ? await countExpiredAmong(database, schema, { from, before }) : 0
  return { choice, catalog, expired }
}

async function listExpired(
  database: Database,
  { data, schema }: Publisher,
  { firstLeaf: from, size: before }: Span,
): Promise<ReadonlySet<number>> {
  return new Set(data.hasExpired ? await listExpiredAmong(database, schema, { from, before }) : [])
}

async function readBlocks(
  { chain }: Publisher,
  { fromHeight, toHeight }: { readonly fromHeight: number; readonly toHeight?: number },
): Promise<readonly Block[]> {
  const blocks: Block[] = []
  let bytes = 0
  for await (const block of chain.blocksFrom(fromHeight)) {
    blocks.push(block)
    bytes += block.bodyBytes + block.header.entryCount * entryCost
    if (block.height === toHeight) break
    const isFull = bytes >= bundleBytes || blocks.length >= bundleBlocksMax
    if (toHeight === undefined && isFull) break
  }
  return blocks
}

type Rules = {
  readonly catalog: Catalog
  readonly choice: PublishChoice
  /** Leaves that nobody may read any more, though the log still has their bytes. */
  readonly expired: ReadonlySet<number>
}

async function toPublished(block: Block, rules: Rules): Promise<PublishedBlock> {
  const { headerText: header, signature, groupStarts, firstLeaf } = block
  const { catalog, choice, expired } = rules
  const isShown = (entry: Entry | undefined, leaf: number) =>
    entry !== undefined && !expired.has(leaf) && isPublished(catalog, choice, entry)
  const entries: (Uint8Array | undefined)[] = []
  const hidden: Uint8Array[] = []
  let bytes = 0
  for (let at = 0; at < block.header.entryCount; at++) {
    const entry = isShown(block.entry(at), firstLeaf + at) ? block.entryBytes(at) : undefined
    entries.push(entry)
    if (entry === undefined) hidden.push(block.leafHash(at))
    bytes += (block.entryBytes(at)?.length ?? 0) + entryCost
    if (bytes < bytesAtOnce) continue
    bytes = 0
    await awaitTurn()
  }
  return { header, signature, groupStarts, entries, hidden }
}

/** SHA-256 of bytes that may be megabytes. */
async function hashInTurns(bytes: Uint8Array): Promise<Buffer> {
  const hash = createHash('sha256')
  for (let at = 0; at < bytes.length; at += hashedAtOnce) {
    await awaitTurn()
    hash.update(bytes.subarray(at, at + hashedAtOnce))
  }
  await awaitTurn()
  return hash.digest()
}

async function joinParts(parts: readonly Uint8Array[]): Promise<Uint8Array> {
  const [only] = parts
  if (only !== undefined && parts.length === 1) return only
  return concatInTurns(
    parts.map(({ buffer, byteOffset, byteLength }) => Buffer.from(buffer, byteOffset, byteLength)),
  )
}
