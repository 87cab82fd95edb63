import { isAddress } from '../../../x402/hex.ts'
import { findNetworkId, type PaymentNetwork } from '../../../x402/networks.ts'
import type { Requirement, SignedPayment } from '../../../x402/protocol.ts'
import { makeRequirement } from '../quotes/quoting.ts'

/** Payment requirements as another server sent them: version 1 says maxAmountRequired, version 2 amount. */
export type SentRequirements = Readonly<Record<string, unknown>>

/** A reason in the words of x402, and what would be right. */
export type ForeignRefusal = { readonly refusal: string; readonly detail?: string }

/** Parses what another server asks for; a refusal names what does not fit the payment or the network. */
export function parseForeignRequirement(
  sent: SentRequirements,
  { payment, network }: { readonly payment: SignedPayment; readonly network: PaymentNetwork },
): Requirement | ForeignRefusal {
  const { scheme, network: name, asset, payTo, amount, maxAmountRequired } = sent
  if (scheme !== 'exact') return { refusal: 'unsupported_scheme' }
  if (name !== network.id && findNetworkId(String(name)) !== network.id)
    return { refusal: 'invalid_network', detail: `must be ${network.id}` }
  if (String(asset).toLowerCase() !== network.asset.address)
    return { refusal: 'unsupported_asset', detail: `must be ${network.asset.address}` }
  const payee = String(payTo).toLowerCase()
  if (!isAddress(payee)) return { refusal: 'invalid_payment_requirements', detail: 'payTo' }
  const asked = payment.version === 1 ? maxAmountRequired : amount
  if (typeof asked !== 'string' || !/^[1-9]\d{0,30}$/.test(asked))
    return { refusal: 'invalid_payment_requirements', detail: 'amount' }
  const terms = { amount: BigInt(asked), quoteId: '', expiresAt: 0 }
  // The other server may have no node, and take a transaction for one payment alone.
  return { ...makeRequirement({ ...network, payTo: payee }, terms), isAlone: true }
}
