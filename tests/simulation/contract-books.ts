import { applyCall, type EscrowBooks, Revert } from './escrow-model.ts'
import { applyPermitCall, type PermitBooks } from './permit-model.ts'
import type { Action } from './token-forms.ts'

export type ContractBooks = {
  /** The books of the channel contract. */
  readonly escrow: EscrowBooks
  /** The books of Permit2 and of what it may move. */
  readonly permits: PermitBooks
}

/** Computes the books of the contracts after an action; undefined where one of them reverts it. */
export function computeBooks(
  { escrow: channels, permits }: ContractBooks,
  { escrow, permit }: Action,
  block: { readonly chainId: number; readonly seconds: bigint },
): ContractBooks | undefined {
  try {
    if (permit !== undefined) {
      const context = { ...block, sender: permit.sender }
      return { escrow: channels, permits: applyPermitCall(permits, permit.call, context) }
    }
    if (escrow === undefined) return { escrow: channels, permits }
    const context = { ...block, sender: escrow.sender }
    const after = escrow.calls.reduce((one, call) => applyCall(one, call, context), channels)
    return { escrow: after, permits }
  } catch (error) {
    if (error instanceof Revert) return undefined
    throw error
  }
}
