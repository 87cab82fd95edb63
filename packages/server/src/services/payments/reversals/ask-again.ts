import type { World } from '../../../base/world.ts'
import type { Settlement } from '../../../x402/facilitator.ts'
import { isNative, type Payment } from '../../../x402/protocol.ts'
import { isUpto } from '../../../x402/upto/upto.ts'
import type { Claim } from '../claims/claim-store.ts'
import { decodeStoredPayment } from '../claims/stored-payment.ts'
import { toPaidNetwork } from '../direct/direct-payees.ts'
import type { PaymentMethod, PaymentPorts } from '../payment-ports.ts'
import { makeSettler } from '../purchase.ts'
import { makeRequirement } from '../quotes/quoting.ts'
import type { OutgoingTransfer } from '../transfers/transfer-store.ts'

type Ports = Pick<PaymentPorts, 'depositSecret'> & { readonly world: World }

/** Transactions of a transfer that are tried, however many were reverted. */
const attemptsMax = 5

/**
 * Asks the network anew about a payment that was booked and that its block is not there of. The journal sends its own
 * transaction again by itself. Where that was mined again and reverted, and the payer's authorization still stands, one
 * more transaction brings it.
 */
export async function askAgain(
  ports: Ports,
  method: PaymentMethod,
  claim: Claim,
): Promise<Settlement> {
  const payment = decodeStoredPayment(claim.payment)
  // The operator takes none of its kind any more: nobody can ask, and all others are asked about nevertheless.
  if (!isTaken(method, payment)) return { state: 'pending', reason: 'scheme_not_taken_now' }
  const network = toPaidNetwork(method.network, payment)
  const terms = { amount: claim.amount, quoteId: '', expiresAt: 0 }
  const settler = makeSettler(ports, method, {
    payment,
    requirement: makeRequirement(network, terms),
  })
  const outcome = await settler.lookup(claim.id)
  if (outcome.state !== 'failed' || outcome.final) return outcome
  if (!(await settler.verify()).ok) return outcome
  return settler.settle(`again:${claim.id}`)
}

function isTaken({ native, upto }: PaymentMethod, payment: Payment): boolean {
  if (isNative(payment)) return native !== undefined
  return !isUpto(payment) || upto !== undefined
}

/** The same of a transfer of ours: what its token refuses now is signed anew, under the order that counts once. */
export async function askTransferAgain(
  { treasury }: PaymentMethod,
  one: OutgoingTransfer,
): Promise<Settlement> {
  const { id, recipient: to, amount, valid_before: validBefore } = one
  let outcome: Settlement = { state: 'pending', reason: 'no_key_of_this_network' }
  for (let attempt = one.tries; treasury !== undefined && attempt <= attemptsMax; attempt++) {
    outcome = await treasury.transfer({ id, to, amount, validBefore }, attempt, async () => true)
    if (outcome.state !== 'failed' || outcome.reason !== 'transaction_reverted') break
  }
  return outcome
}
