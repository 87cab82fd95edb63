import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { finished } from 'node:stream/promises'
import { promisify } from 'node:util'
import { inflateRaw } from 'node:zlib'
import { parseBlockHeader, verifyBlockSignature } from '@tollbase/verify/block'
import { FormatError } from '@tollbase/verify/bytes'
import { parseVerifierKey, type VerifierKey } from '@tollbase/verify/checkpoint'
import { type CountEntries, decodeBundle, type PublishedBlock } from '@tollbase/verify/publication'
import { makeNamedFolder } from '../../base/make-folder.ts'
import { SetupError } from '../../base/setup-error.ts'
import type { Progress } from '../maintenance.ts'
import { HeldBytes } from './held-bytes.ts'
import { joinBundles, type SentBundle } from './join-bundles.ts'
import { type ChunkSource, openChunks } from './open-chunks.ts'
import { type CheckedBlock, PublishedLog, TwoHistories } from './published-log.ts'

export type RecoverOptions = ChunkSource & {
  /** The verifier key of the application's log, which is trusted. */
  readonly key: string
  /** An empty folder, or one that does not exist. */
  readonly to: string
}

export type RecoverReport = {
  /** False where the log has two histories. */
  readonly equal: boolean
  readonly problem?: string
  readonly origin: string
  readonly blocks: number
  readonly entries: number
  /** Entries of which only the hash was published. */
  readonly hidden: number
  /** Bundles that were passed over, as each has more than `bundleBytesMax` bytes. */
  readonly oversized: number
  /** Base64. */
  readonly root: string | null
}

const inflate = promisify(inflateRaw)
/** Bytes of a bundle at most, thrice what the service makes: a small one of a stranger can have gigabytes. */
export const bundleBytesMax = 32 * 1024 * 1024

export const recoveredNames = { log: 'log.ndjson', summary: 'recovered.json' } as const

/**
 * Recovers the log of an application from the blocks that were published on another chain, and checks every block. It
 * trusts neither the node nor the publisher: only the key decides. Both can withhold the end of the log.
 */
export async function recoverLog(
  { key: vkey, to, ...source }: RecoverOptions,
  onProgress: Progress,
): Promise<RecoverReport> {
  const key = parseVerifierKey(vkey)
  makeNamedFolder('--to', to)
  const [found] = await readdir(to)
  if (found !== undefined)
    throw new SetupError(`--to ${to}: the folder holds ${found}; name an empty one`)
  const { chunks, close } = openChunks(source, { vkey, origin: key.name, onProgress })
  try {
    const [log, held] = [new PublishedLog(key), new HeldBytes()]
    const file = createWriteStream(join(to, recoveredNames.log), { flags: 'wx', mode: 0o600 })
    let problem: string | undefined
    let oversized = 0
    const onOversized = () => {
      oversized += 1
    }
    const recovered = { log, key, held, onOversized }
    try {
      for await (const block of iterateBlocks(recovered, joinBundles(chunks, held))) {
        if (!file.write(formatBlock(block))) await once(file, 'drain')
      }
    } catch (error) {
      if (!(error instanceof TwoHistories)) throw error
      problem = error.message
    } finally {
      file.end()
      await finished(file)
    }
    const report: RecoverReport = {
      equal: problem === undefined,
      ...(problem !== undefined && { problem }),
      origin: key.name,
      blocks: log.height,
      entries: log.size,
      hidden: log.hidden,
      oversized,
      root: log.root === undefined ? null : Buffer.from(log.root).toString('base64'),
    }
    await writeFile(join(to, recoveredNames.summary), `${JSON.stringify(report, null, 2)}\n`)
    return report
  } finally {
    close()
  }
}

/** The log as it is built up, the key of its blocks, and what waits. */
type Recovered = {
  readonly log: PublishedLog
  readonly key: VerifierKey
  readonly held: HeldBytes
  /** Called where a bundle has too many bytes to be looked at. */
  readonly onOversized: () => void
}

/**
 * Yields the blocks of the log in their order. Bundles that come too early wait, each once, and are looked at again only
 * when the block before them is there: strangers can send as many of the log's own as they like.
 */
export async function* iterateBlocks(
  recovered: Recovered,
  bundles: AsyncIterable<SentBundle>,
): AsyncGenerator<CheckedBlock, void, undefined> {
  const { log, held } = recovered
  /** By their first heights, all of which are above `reached`, and their hashes. */
  const early = new Map<number, Map<string, SentBundle>>()
  let reached = log.height + 1
  for await (const bundle of bundles) {
    const { blocks, firstHeight } = await takeBlocks(recovered, bundle)
    yield* blocks
    if (firstHeight !== undefined) {
      const same = early.get(firstHeight) ?? new Map<string, SentBundle>()
      if (!same.has(bundle.hash)) held.take(bundle.compressed.length)
      early.set(firstHeight, same.set(bundle.hash, bundle))
    }
    for (; reached <= log.height; reached++) {
      for (const next of early.get(reached + 1)?.values() ?? []) {
        held.give(next.compressed.length)
        yield* (await takeBlocks(recovered, next)).blocks
      }
      early.delete(reached + 1)
    }
  }
}

/**
 * Adds the blocks of a bundle to the log. Where all come after others that are not there yet, it says which is the
 * first.
 */
async function takeBlocks(
  { log, key, onOversized }: Recovered,
  { compressed }: SentBundle,
): Promise<{ readonly blocks: readonly CheckedBlock[]; readonly firstHeight: number | undefined }> {
  const published = await readBlocks(compressed, {
    countEntries: makeEntryCounter(key),
    onOversized,
  })
  const [first] = published
  if (first !== undefined && log.isAhead(first))
    return { blocks: [], firstHeight: parseBlockHeader(first.header).height }
  return {
    blocks: published.flatMap((block) => addBlock(log, block) ?? []),
    firstHeight: undefined,
  }
}

/** Passes over a block that is none of this log, as anybody can send some. */
function addBlock(log: PublishedLog, block: PublishedBlock): CheckedBlock | undefined {
  try {
    return log.add(block)
  } catch (error) {
    if (error instanceof FormatError) return undefined
    throw error
  }
}

async function readBlocks(
  compressed: Uint8Array,
  {
    countEntries,
    onOversized,
  }: { readonly countEntries: CountEntries } & Pick<Recovered, 'onOversized'>,
): Promise<readonly PublishedBlock[]> {
  try {
    const bundle = await inflate(compressed, { maxOutputLength: bundleBytesMax })
    return decodeBundle(bundle, countEntries)
  } catch (error) {
    // Bytes that are no bundle are a stranger's: whatever the service sends was one.
    if (error instanceof FormatError) return []
    if (!(error instanceof Error && 'code' in error)) throw error
    if (error.code === 'ERR_BUFFER_TOO_LARGE') onOversized()
    return []
  }
}

/** The blocks of a bundle are signed and follow each other. Any other bundle is a stranger's, and costs little. */
function makeEntryCounter(key: VerifierKey): CountEntries {
  let before: number | undefined
  return (text, signature) => {
    const { origin, height, entryCount } = parseBlockHeader(text)
    const isNext = before === undefined || height === before + 1
    if (origin !== key.name || !isNext || !verifyBlockSignature(text, signature, key.publicKey))
      throw new FormatError('the bundle has a block of another log, or in another order')
    before = height
    return entryCount
  }
}

function formatBlock({ height, firstLeaf, time, header, ...block }: CheckedBlock): string {
  const entries = block.entries.map((entry, at) => ({
    leaf: firstLeaf + at,
    hash: block.leafHashes[at]?.toString('hex'),
    entry: entry === undefined ? null : Buffer.from(entry).toString(),
  }))
  const signature = Buffer.from(block.signature).toString('base64')
  const line = {
    ...{ height, time: new Date(time).toISOString(), header, signature },
    ...{ group_starts: block.groupStarts, entries },
  }
  return `${JSON.stringify(line)}\n`
}
