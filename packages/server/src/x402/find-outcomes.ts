import { findTransactionReceipt, type TransactionReceipt } from './evm-chain.ts'
import { type Journaled, listHashes, type Mark } from './journal.ts'
import type { Rpc } from './rpc.ts'
import type { UsedNonces } from './used-nonces.ts'

/** The outcomes of transactions of our keys, as the chain tells them. */
export type Outcomes = {
  /** The marks for the journal. */
  readonly marks: readonly Mark[]
  /** Those whose nonce a transaction took that the journal does not know. */
  readonly replaced: readonly Journaled[]
  /** Those that a block may take yet. */
  readonly open: readonly Journaled[]
}

/** Finds what became of these transactions; `counts` are the numbers of the nonces that each key has used, by address. */
export async function findOutcomes(
  rpc: Rpc,
  usedNonces: UsedNonces,
  asked: { readonly rows: readonly Journaled[]; readonly counts: ReadonlyMap<string, bigint> },
): Promise<Outcomes> {
  const { rows, counts } = asked
  const isFree = ({ signer, nonce }: Journaled) => nonce >= (counts.get(signer) ?? 0n)
  const receipts = await Promise.all(rows.map((row) => findReceiptOf(rpc, row)))
  const seen = rows.flatMap(({ id }, index): Mark[] => {
    const receipt = receipts[index]
    if (receipt === undefined) return []
    const state = receipt.succeeded ? 'mined' : 'reverted'
    return [{ id, state, blockNumber: receipt.blockNumber }]
  })
  const unseen = rows.filter((_, index) => receipts[index] === undefined)
  const open = unseen.filter(isFree)
  const ids = await usedNonces.findReplaced(
    rows.map((row, index) => ({
      ...{ id: row.id, hashes: listHashes(row), place: row },
      isMissing: receipts[index] === undefined && !isFree(row),
    })),
  )
  const replaced = unseen.filter(({ id }) => ids.has(id))
  const forgotten = open.filter(({ state }) => state !== 'signed')
  const marks: Mark[] = [
    ...seen,
    ...replaced.map(({ id }) => ({ id, state: 'replaced' as const, blockNumber: null })),
    ...forgotten.map(({ id }) => ({ id, state: 'signed' as const, blockNumber: null })),
  ]
  return { marks, replaced, open }
}

/** Finds the receipt of the one of a nonce's transactions that is in a block. */
async function findReceiptOf(rpc: Rpc, row: Journaled): Promise<TransactionReceipt | undefined> {
  const receipts = await Promise.all(
    listHashes(row).map((hash) => findTransactionReceipt(rpc, hash)),
  )
  return receipts.find((receipt) => receipt !== undefined)
}
