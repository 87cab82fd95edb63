import { type AnchorTransaction, anchoredTopic, encodeTree } from '@tollbase/verify/anchor'
import type { EvmAnchorProof } from '@tollbase/verify/anchor-proof'
import type { Checkpoint } from '@tollbase/verify/checkpoint'
import { findMined, readBlockTime, readChainId, readHead } from '../x402/evm-chain.ts'
import { encodeHex, encodeHexWord } from '../x402/hex.ts'
import type { Rpc } from '../x402/rpc.ts'
import type { Log } from '../x402/token.ts'

/** The event of an anchor. */
export type AnchorEvent = {
  readonly contract: string
  readonly signer: string
  /** Hash, see `hashOrigin`. */
  readonly origin: string
} & Pick<Checkpoint, 'size' | 'root'>

/** Returns the topics of an anchor's event. */
export function listTopics({ signer, origin }: Pick<AnchorEvent, 'signer' | 'origin'>): string[] {
  return [anchoredTopic, `0x${encodeHexWord(signer)}`, origin]
}

/** Returns true if the event is among the logs of a transaction. */
export function hasAnchorEvent(logs: readonly Log[], event: AnchorEvent): boolean {
  const topics = listTopics(event)
  const data = encodeHex(encodeTree(event))
  return logs.some(
    (log) =>
      log.address === event.contract &&
      log.data === data &&
      log.topics.length === topics.length &&
      log.topics.every((topic, at) => topic === topics[at]),
  )
}

/**
 * Asks a node whether its chain has the anchor of a proof as the proof says; the proof itself was checked before. Faults
 * where the node cannot be asked.
 */
export async function checkOnChain(
  rpc: Rpc,
  proof: EvmAnchorProof,
  sent: AnchorTransaction,
): Promise<{ readonly ok: boolean; readonly detail: string }> {
  const fail = (detail: string) => ({ ok: false, detail })
  const [chainId, head] = [await readChainId(rpc), await readHead(rpc)]
  if (chainId !== BigInt(sent.chainId))
    return fail(`the node serves chain ${chainId}, and the anchor is on ${proof.network}`)
  const mined = await findMined(rpc, proof.transaction)
  if (mined === undefined) return fail(`no block has the transaction ${proof.transaction}`)
  const event = { ...sent, contract: proof.contract, signer: sent.sender }
  if (!mined.succeeded || !hasAnchorEvent(mined.logs, event))
    return fail(`the transaction is in block ${mined.blockNumber}, and without the event`)
  const seconds = await readBlockTime(rpc, mined.blockNumber)
  const time = new Date(Number(seconds) * 1000).toISOString()
  const told = [proof.block_number, proof.block_hash, proof.time].join(' ')
  const found = [mined.blockNumber, mined.blockHash, time].join(' ')
  if (told !== found)
    return fail(`the transaction is in block ${found}, not in ${told}; ask for a new proof`)
  return {
    ok: true,
    detail: `block ${mined.blockNumber} of ${proof.network} has it since ${time}, ${head - mined.blockNumber + 1n} confirmations`,
  }
}
