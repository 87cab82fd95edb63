import type { SentState } from '../../anchors/publishing-chain.ts'
import type { BlockBundle } from './make-bundle.ts'
import type { Publication } from './outbox.ts'

/** The rows of a bundle's chunks, before any of them is sent. */
export function listPublications(app: string, bundle: BlockBundle): Publication[] {
  const { fromHeight, toHeight, size, root, hash, chunks } = bundle
  return chunks.map((chunk, part) => ({
    ...{ app, fromHeight, toHeight, part, parts: chunks.length, size },
    root: Buffer.from(root).toString('base64'),
    bundle: hash,
    bytes: chunk.length,
    attempt: 0,
    state: 'waiting',
    ...{ transaction: null, blockNumber: null, blockHash: null },
  }))
}

/** Describes what changes in a row; undefined where nothing does. */
export function describeChange(
  row: Publication,
  state: SentState,
): Partial<Publication> | undefined {
  const nowhere = { blockNumber: null, blockHash: null }
  switch (state.state) {
    case 'failed':
    case 'withdrawn':
      return { state: 'waiting', transaction: null, attempt: row.attempt + 1, ...nowhere }
    case 'confirmed': {
      const { transaction, blockNumber, blockHash, isFinal } = state
      const now = isFinal ? 'final' : 'confirmed'
      const isKnown = row.state === now && row.blockHash === blockHash
      return isKnown ? undefined : { state: now, transaction, blockNumber, blockHash }
    }
    default:
      return row.state === 'sent' ? undefined : { state: 'sent', ...nowhere }
  }
}

export function isConfirmed({ state }: Publication): boolean {
  return state === 'confirmed'
}

export function isOnItsWay({ state }: Publication): boolean {
  return state === 'waiting' || state === 'sent'
}
