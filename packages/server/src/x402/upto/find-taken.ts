import { LRUCache } from 'lru-cache'
import { readCall, readTransactionCall, type TransactionCall } from '../evm-chain.ts'
import { encodeHexWord } from '../hex.ts'
import { LogSearch } from '../log-search.ts'
import type { PaymentNetwork } from '../networks.ts'
import type { Rpc } from '../rpc.ts'
import { topics } from '../token.ts'
import { encodeNonceCall, encodeUptoCall, type UptoPayment } from './upto.ts'
import { permit2Address, uptoProxyAddress } from './upto-terms.ts'

/** The transaction that took a payment, and how much it took, in atomic units. */
export type TakenUpto = {
  readonly transaction: string
  readonly amount: bigint
}

/** The parts that find one. A call that a block has is read once. */
export type TakenEvidence = {
  readonly rpc: Rpc
  readonly search: LogSearch
  readonly calls: LRUCache<string, TransactionCall>
}

/** The calls that are remembered. */
const callsMax = 2_000
/** The longest data of one that is remembered: a call of the proxy has less, and other ones may have 128 KiB. */
const dataCharsMax = 4_096

export function makeTakenEvidence(rpc: Rpc): TakenEvidence {
  // Anybody can have the token tell of moves of nothing between any two.
  const search = new LogSearch(rpc, ({ data }) => BigInt(data) > 0n)
  return { rpc, search, calls: new LRUCache({ max: callsMax }) }
}

/**
 * Returns true if Permit2 has seen the payment's nonce, used or given up, as of this block or the latest one. Throws where
 * the node does not have the block.
 */
export async function isNonceUsed(
  rpc: Rpc,
  payment: UptoPayment,
  height?: bigint,
): Promise<boolean> {
  const { data, bit } = encodeNonceCall(payment)
  return ((await readCall(rpc, { to: permit2Address, data }, height)) & bit) !== 0n
}

/**
 * Finds the transaction in which our key took a payment, where our own journal of it is lost: among the payer's transfers
 * to us, the one that called the proxy for exactly this permit. The proxy lets nobody else take it; another contract may
 * be called with the same data, and move the money by an authorization that counts by itself.
 */
export async function findTaken(
  evidence: TakenEvidence,
  network: PaymentNetwork,
  payment: UptoPayment,
): Promise<TakenUpto | undefined> {
  const { payload } = payment
  const ends = [payload.from, payload.to].map((address) => `0x${encodeHexWord(address)}`)
  const filter = { address: network.asset.address, topics: [topics.transfer, ...ends] }
  const found = await evidence.search.find(filter, async ({ transactionHash, data }) => {
    if (BigInt(data) > payment.upto.permitted) return false
    const taken = { ...payload, value: BigInt(data) }
    const call = encodeUptoCall(network, { ...payment, payload: taken })
    const made = await readCallOnce(evidence, transactionHash)
    return made?.to === uptoProxyAddress && made.data === call
  })
  return found && { transaction: found.transactionHash, amount: BigInt(found.data) }
}

async function readCallOnce(
  { rpc, calls }: TakenEvidence,
  transaction: string,
): Promise<TransactionCall | undefined> {
  const known = calls.get(transaction)
  if (known !== undefined) return known
  const made = await readTransactionCall(rpc, transaction)
  if (made === undefined) return undefined
  const { to, data } = made
  calls.set(transaction, { to, data: data.length > dataCharsMax ? '' : data })
  return made
}
