import { requirePresent } from '../../../base/assert.ts'
import type { Claim } from '../claims/claim-store.ts'
import { makeDepositEntry } from '../ledger-entries.ts'
import { getDepositAccount, isNamedDeposit } from './booked-deposit.ts'

/** Makes the entry that books a claim's own money, which this transaction moved. */
export function makeClaimDeposit(claim: Claim, moved: string | null) {
  const transaction = requirePresent(moved, 'the transaction of money that came')
  const [network = '', asset = '', payer = ''] = claim.identity.split('/')
  return makeDepositEntry({
    paymentId: claim.id,
    identity: claim.identity,
    payer,
    ...(isNamedDeposit(claim) && { account: getDepositAccount(claim) }),
    amount: claim.amount,
    network,
    asset,
    transaction,
  })
}
