import { type AnchorTransaction, hashOrigin, parseAnchorTransaction } from './anchor.ts'
import { areBytesEqual } from './bytes.ts'
import { type Check, makeCheck } from './check.ts'
import type { Checkpoint } from './checkpoint.ts'
import { type Fields, requireText } from './fields.ts'

/** The members of an anchor proof that are those of an EVM chain. */
export type EvmAnchorParts = {
  /** CAIP-2. */
  readonly network: string
  readonly contract: string
  /** Hash of the transaction, and its signed bytes; 0x hex. */
  readonly transaction: string
  readonly raw: string
}

/** Parses these members; throws a FormatError that names the member. */
export function parseEvmAnchor(fields: Fields): EvmAnchorParts {
  return {
    network: requireText(fields, 'network'),
    contract: requireText(fields, 'contract'),
    transaction: requireText(fields, 'transaction'),
    raw: requireText(fields, 'raw'),
  }
}

/** Checks that the transaction anchors the tree of the service's own log; throws a FormatError. */
export function checkTransaction(proof: EvmAnchorParts, system: Checkpoint | undefined): Check {
  const sent = parseAnchorTransaction(proof.raw)
  const says =
    sent.hash === proof.transaction &&
    `eip155:${sent.chainId}` === proof.network &&
    sent.to === proof.contract
  return makeCheck('anchor', says && system !== undefined && isOf(sent, system), {
    good: `${sent.sender} signed the transaction ${sent.hash} for ${proof.network}, which anchors this tree`,
    bad: says
      ? 'the transaction anchors another tree'
      : 'the transaction is not the one that the proof names',
  })
}

function isOf(sent: AnchorTransaction, checkpoint: Checkpoint): boolean {
  return (
    sent.origin === hashOrigin(checkpoint.origin) &&
    sent.size === checkpoint.size &&
    areBytesEqual(sent.root, checkpoint.root)
  )
}
