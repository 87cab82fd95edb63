import type { AnchorProof } from '@tollbase/verify/anchor-proof'
import { type Anchor, isCelestiaAnchor } from '../../anchors/anchor-chain.ts'
import type { Chain } from '../../chain/chain.ts'
import type { AnchorRow } from '../../projections/anchors.ts'
import type { Uses } from '../call.ts'

/** An entry of a chain. */
export type ChainEntry = { readonly app: string; readonly chain: Chain; readonly leafIndex: number }

/**
 * Finds the first anchor that covers an entry, with all that proves it; undefined where no other chain has a root
 * that covers it yet.
 */
export async function findAnchorProof(
  { database, tenants: { system } }: Uses<'database' | 'tenants'>,
  { app, chain, leafIndex }: ChainEntry,
): Promise<AnchorProof | undefined> {
  const { anchors, schema } = system
  if (app === 'system') {
    const anchor = await anchors.findCovering(database, schema, BigInt(leafIndex))
    if (anchor === undefined) return undefined
    const { size } = anchor
    return describe(system.chain, anchor, {
      inclusion: await chain.inclusion(leafIndex, Number(size)),
    })
  }
  const anchor = await anchors.findCoveringHead(database, schema, { app, leaf: leafIndex })
  if (anchor === undefined) return undefined
  const place = { height: Number(anchor.at_height), sequence: anchor.at_sequence }
  const entry = await system.chain.readEntry(place)
  return describe(system.chain, anchor, {
    inclusion: await chain.inclusion(leafIndex, Number(anchor.head_size)),
    head: {
      leaf_index: entry.leafIndex,
      entry: entry.bytes.toString('base64'),
      inclusion: await system.chain.inclusion(entry.leafIndex, Number(anchor.size)),
    },
  })
}

/** Finds the first anchor that covers an entry of an application; undefined where there is none yet. */
export async function findAnchor(
  { database, tenants: { system } }: Uses<'database' | 'tenants'>,
  { app, leafIndex: leaf }: Omit<ChainEntry, 'chain'>,
): Promise<
  Pick<Anchor, 'network' | 'transaction' | 'block_number' | 'block_hash' | 'time'> | undefined
> {
  const { anchors, schema } = system
  const row = await anchors.findCoveringHead(database, schema, { app, leaf })
  if (row === undefined) return undefined
  const { network, transaction, block_number, block_hash, time }: Anchor = JSON.parse(row.body)
  return { network, transaction, block_number, block_hash, time }
}

async function describe(
  chain: Chain,
  { size, body }: AnchorRow,
  proven: Pick<AnchorProof, 'inclusion' | 'head'>,
): Promise<AnchorProof> {
  const anchor: Anchor = JSON.parse(body)
  const { network, block_number, block_hash, time } = anchor
  const common = {
    ...proven,
    // Nothing is signed for this, as the row may be damaged: the block was signed when it was made.
    block: await chain.readBlockOf(Number(size) - 1),
    ...{ network, block_number, block_hash, time },
  }
  if (isCelestiaAnchor(anchor)) {
    const { namespace, commitment, transaction, note, header, proof } = anchor
    return { ...common, namespace, commitment, transaction, note, header, proof }
  }
  const { contract, transaction, raw } = anchor
  return { ...common, contract, transaction, raw }
}
