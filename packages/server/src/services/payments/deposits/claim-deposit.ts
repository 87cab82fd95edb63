import { requirePresent } from '../../../base/assert.ts'
import type { Database } from '../../../database/database.ts'
import { toHeldAccount } from '../../../projections/held-payments.ts'
import {
  type LedgerBody,
  listPostings,
  toWalletAccount,
} from '../../../projections/ledger-entry.ts'
import type { SystemChain } from '../../applications/tenants.ts'
import type { Claim } from '../claims/claim-store.ts'
import { decodeClaimTerms } from '../claims/claim-terms.ts'
import { toUsd } from '../currency.ts'
import { describeMovement } from '../describe-movement.ts'
import { makeReleasedFault } from '../payment-faults.ts'
import { depositOperation } from '../purchase.ts'
import { refuseHeld } from './held-money.ts'

/** Returns whether the payment was claimed to be a balance of an account that its payer named. */
export function isNamedDeposit({ operation, terms }: Pick<Claim, 'operation' | 'terms'>): boolean {
  return operation === depositOperation && terms !== null
}

/** Finds the account that a named deposit is for. */
export function getDepositAccount(claim: Claim): string {
  const [payee] = decodeClaimTerms(claim).payees
  return requirePresent(payee, 'the account of a deposit').account
}

/** The account that a claim's own money is for. */
export function getOwnAccount(claim: Claim): string {
  return isNamedDeposit(claim)
    ? getDepositAccount(claim)
    : toWalletAccount(claim.identity.split('/')[2] ?? '')
}

/** Makes the entry that books a claim's own money, which this transaction moved; `isWithheld` where it buys nothing yet. */
export function makeClaimDeposit(claim: Claim, moved: string | null, isWithheld = false) {
  const transaction = requirePresent(moved, 'the transaction of money that came')
  const [network = '', asset = '', payer = ''] = claim.identity.split('/')
  return makeDepositEntry({
    paymentId: claim.id,
    identity: claim.identity,
    payer,
    account: getOwnAccount(claim),
    isWithheld,
    amount: claim.amount,
    network,
    asset,
    transaction,
  })
}

/** Makes the entry that books a settled payment as a balance, or holds it for that. */
export function makeDepositEntry(deposit: {
  paymentId: string
  identity: string
  payer: string
  account?: string
  isWithheld?: boolean
  amount: bigint
  network: string
  asset: string
  transaction: string
}) {
  const { paymentId, identity, payer, amount, network, asset, transaction } = deposit
  const { account = toWalletAccount(payer), isWithheld = false } = deposit
  const body: LedgerBody = {
    kind: 'deposit',
    payment_id: paymentId,
    identity,
    payer,
    amount: String(amount),
    network,
    asset,
    transaction,
    postings: listPostings([
      [`outside:${network}`, -amount],
      [isWithheld ? toHeldAccount(account, paymentId) : account, amount],
    ]),
  }
  return { header: { type: 'ledger' }, body: JSON.stringify(body) }
}

/**
 * Describes a booked deposit, in the same bytes each time; 409 where its money is held, or was until the operator
 * released it.
 */
export async function describeDeposit(
  database: Database,
  system: SystemChain,
  claim: Claim,
): Promise<Buffer> {
  const { ledger, schema } = system
  const found = await ledger.findDeposit(database, schema, claim.identity)
  const { leaf, transaction } = requirePresent(found, 'the entry of a booked deposit')
  const place = { leaf, account: getDepositAccount(claim) }
  const entry = await ledger.findMovement(database, schema, place)
  if (entry === undefined) {
    await refuseHeld({ database, tenants: { system } }, claim)
    throw makeReleasedFault(place.account)
  }
  const [network, , payer] = claim.identity.split('/')
  const said = {
    payment_id: claim.id,
    payer,
    network,
    transaction,
    amount: String(claim.amount),
    usd: toUsd({ amount: String(claim.amount) }),
    entry: describeMovement(entry),
  }
  return Buffer.from(JSON.stringify(said))
}
