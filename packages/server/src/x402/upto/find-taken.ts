import { readCall, readHead, readLogs, readTransactionCall } from '../evm-chain.ts'
import { encodeHexWord } from '../hex.ts'
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

/** Blocks of one request, and requests: as for a used authorization. */
const rangeBlocks = 2_000n
const rangesMax = 22

/** Returns true if Permit2 has seen the payment's nonce, used or given up. */
export async function isNonceUsed(rpc: Rpc, payment: UptoPayment): Promise<boolean> {
  const { data, bit } = encodeNonceCall(payment)
  return ((await readCall(rpc, { to: permit2Address, data })) & bit) !== 0n
}

/**
 * Finds the transaction in which our key took a payment, where our own journal of it is lost: among the payer's transfers
 * to us, the one that called the proxy for exactly this permit. The proxy lets nobody else take it; another contract may
 * be called with the same data, and move the money by an authorization that counts by itself.
 */
export async function findTaken(
  rpc: Rpc,
  network: PaymentNetwork,
  payment: UptoPayment,
): Promise<TakenUpto | undefined> {
  const { payload } = payment
  const ends = [payload.from, payload.to].map((address) => `0x${encodeHexWord(address)}`)
  let toBlock = await readHead(rpc)
  for (let range = 0; range < rangesMax && toBlock >= 0n; range++) {
    const fromBlock = toBlock >= rangeBlocks ? toBlock - rangeBlocks + 1n : 0n
    const asked = { address: network.asset.address, topics: [topics.transfer, ...ends] }
    for (const log of await readLogs(rpc, { ...asked, fromBlock, toBlock })) {
      const { transactionHash: transaction } = log
      const amount = BigInt(log.data)
      const call = encodeUptoCall(network, { ...payment, payload: { ...payload, value: amount } })
      const made = await readTransactionCall(rpc, transaction)
      if (made?.to === uptoProxyAddress && made.data === call) return { transaction, amount }
    }
    toBlock = fromBlock - 1n
  }
  return undefined
}
