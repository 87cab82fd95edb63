import { requirePresent } from '../../../base/assert.ts'
import type { Claim } from '../claims/claim-store.ts'
import { makeDepositEntry, toWalletAccount } from '../ledger-entries.ts'
import { getDepositAccount, isNamedDeposit } from './booked-deposit.ts'

/** The account that a claim's own money is for. */
export function getOwnAccount(claim: Claim): string {
  return isNamedDeposit(claim)
    ? getDepositAccount(claim)
    : toWalletAccount(claim.identity.split('/')[2] ?? '')
}

/** Makes the entry that books a claim's own money, which this transaction moved; `isHeld` where it buys nothing yet. */
export function makeClaimDeposit(claim: Claim, moved: string | null, isHeld = false) {
  const transaction = requirePresent(moved, 'the transaction of money that came')
  const [network = '', asset = '', payer = ''] = claim.identity.split('/')
  return makeDepositEntry({
    paymentId: claim.id,
    identity: claim.identity,
    payer,
    account: getOwnAccount(claim),
    isHeld,
    amount: claim.amount,
    network,
    asset,
    transaction,
  })
}
