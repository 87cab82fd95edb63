import { keccak256, toHex } from 'viem'
import type { Transaction, Transfer } from './token-forms.ts'

/** No transfer of a holder's own making ends. */
const endless = 2n ** 64n

/** The addresses that holders sent money to by themselves, without an authorization. */
export class DepositAddresses {
  readonly #known = new Set<string>()
  #made = 0

  /**
   * Makes the transaction by which a holder moves its money to an address. The service knows the transfer by its
   * transaction and by its place among its logs, which is the first.
   */
  makeTransfer(asset: string, order: Pick<Transfer, 'from' | 'to' | 'value'>): Transaction {
    this.#made += 1
    this.#known.add(order.to)
    const hash = keccak256(toHex(`transfer ${this.#made} ${order.from} ${order.to}`))
    const transfer = { ...order, validBefore: endless, nonce: `${hash}:0` }
    return { hash, nonce: undefined, action: { to: asset, transfer, isPlain: true } }
  }

  /** Says that a transfer sends the money of such an address on. */
  isSweep({ from }: Pick<Transfer, 'from'>): boolean {
    return this.#known.has(from)
  }

  /** Adds up what an address has after these transfers, in atomic units; undefined where nobody sent it anything. */
  readBalance(address: string, moved: readonly Transfer[]): bigint | undefined {
    if (!this.#known.has(address)) return undefined
    return moved.reduce((sum, { from, to, value }) => {
      if (from === address) return sum - value
      return to === address ? sum + value : sum
    }, 0n)
  }
}
