import type { SignedPayment } from '../../../x402/protocol.ts'
import type { Asking } from '../../access/access.ts'
import { readIdempotencyKey } from '../idempotency-key.ts'
import type { PaymentPorts } from '../payment-ports.ts'
import { hashPaidRequest } from '../presented/presented-payment.ts'
import { findPayingKey, makeKeyPayment, type PayingKey } from './paying-key.ts'
import { readSignIn, type SignedIn } from './sign-in.ts'

/** The one that pays for a request out of a balance, in place of a payment in the request. */
export type BalancePayer = {
  /** An address, or the name of an account. */
  readonly payer: string
  readonly payment: SignedPayment
  readonly identity: string
  /** There where a key pays, within its limits. */
  readonly paying?: PayingKey
  /** There where a wallet signed in. `most` it agreed to, in atomic units. */
  readonly signedIn?: Pick<SignedIn, 'most' | 'isUsed'>
}

/** Finds the key that pays, or the wallet that signed in; the reason where its sign-in is not taken. */
export async function findBalancePayer(
  ports: PaymentPorts,
  asking: Asking,
): Promise<BalancePayer | { readonly refusal: string } | undefined> {
  const { requestInfo } = asking
  const paying = findPayingKey(asking)
  if (paying !== undefined)
    return { paying, payer: paying.payer, ...makeKeyPayment(ports, requestInfo, paying) }
  const name = readIdempotencyKey(requestInfo, undefined)
  const signedIn = await readSignIn(ports, requestInfo, {
    hash: hashPaidRequest(requestInfo),
    name,
  })
  if (signedIn === undefined || 'refusal' in signedIn) return signedIn
  const { payer, payment, identity } = signedIn
  return { payer, signedIn, payment, identity }
}
