import { hash } from 'node:crypto'
import { hashRequest } from '@tollbase/verify/receipt'
import { Fault, makeInvalidFault } from '../../../base/fault.ts'
import { findSingleHeader, type RequestInfo } from '../../../http/request-info.ts'
import { type ChannelPayment, isChannelPayment } from '../../../x402/channels/channel-payment.ts'
import type { PaymentNetwork } from '../../../x402/networks.ts'
import { decodeRequestPayment } from '../../../x402/payment-header.ts'
import type { Payment, PresentedPayment, SignedPayment } from '../../../x402/protocol.ts'
import type { Asking, Caller } from '../../access/access.ts'
import { isToOtherAddress, toPaidNetwork } from '../direct/direct-payees.ts'
import type { Offer, PaymentMatch } from '../purchase.ts'
import { describeForgottenTerms } from '../quotes/forgotten-terms.ts'
import {
  findQuote,
  formatAskedName,
  type QuotePorts,
  resolvePaymentTerms,
} from '../quotes/quoting.ts'
import { findBodyProof, getBodyWithoutProof } from './body-proof.ts'
import { matchTransfer } from './match-transfer.ts'

/**
 * Finds the payment that the request carries: in a header, of which two of one kind are refused, or else, as the
 * PHP and Python clients send it, among the members of a store's body.
 */
export function findPresentedPayment(
  asking: Asking,
): PresentedPayment | ChannelPayment | undefined {
  const { requestInfo, caller } = asking
  const known = presentedPayments.get(requestInfo)
  if (known?.caller === caller) return known.presented
  const presented = readPresentedPayment(asking)
  if (presented !== undefined) presentedPayments.set(requestInfo, { caller, presented })
  return presented
}

/** Several parts of a sale ask for the payment of the same request, which takes long to read. */
const presentedPayments = new WeakMap<
  RequestInfo,
  { readonly caller: Caller; readonly presented: PresentedPayment | ChannelPayment | undefined }
>()

function readPresentedPayment({
  requestInfo,
  caller,
}: Asking): PresentedPayment | ChannelPayment | undefined {
  // One that came twice is refused.
  for (const name of ['x-payment', 'payment-signature']) findSingleHeader(requestInfo, name)
  const decoded = decodeRequestPayment(requestInfo.headers)
  if (decoded === undefined) return findBodyProof(requestInfo)
  if (isChannelPayment(decoded)) return decoded
  if ('transaction' in decoded || decoded.quoteId !== undefined) return decoded
  return { ...decoded, origin: hashSender({ requestInfo, caller }, decoded.payload.nonce) }
}

/**
 * Returns true if the request carries a payment, good or not. Unreadable content is no payment: clients fill in
 * something where nothing is owed, and it cannot have bought anything.
 */
export function hasPayment(asking: Asking): boolean {
  try {
    return findPresentedPayment(asking) !== undefined
  } catch (error) {
    if (error instanceof Fault) return false
    throw error
  }
}

const wishes = ['on', 'off']

/** Returns false where the request says that it is not to be paid from a balance; 400 where it says anything else. */
export function canUseBalance(requestInfo: RequestInfo): boolean {
  const wish = findSingleHeader(requestInfo, 'x-balance') ?? 'on'
  if (!wishes.includes(wish))
    throw makeInvalidFault('/headers/x-balance', 'must be "off", or be left out')
  return wish !== 'off'
}

/** Returns true if the payer signed the request itself: nobody has a better claim to what the payment bought. */
export function isByPayer({ caller }: Asking, { payload }: Payment): boolean {
  return caller.kind === 'wallet' && caller.address === payload.from
}

/**
 * Hashes the properties by which the sender of a request is recognized: address, and key or wallet. None is stored
 * as it is.
 */
export function hashSender({ requestInfo, caller }: Asking, nonce: string): string {
  const names = [requestInfo.remoteAddress]
  const key = caller.kind === 'key' ? caller.key : caller.payer
  if (key !== undefined) names.push(`key ${key.key_hash}`)
  if (caller.kind === 'wallet') names.push(`wallet ${caller.address}`)
  return names.map((name) => hash('sha256', `${nonce} ${name}`, 'base64url')).join(' ')
}

/**
 * Hashes the request, byte for byte; a payment is bound to this hash. A proof in the body is left out, so that the
 * quote of the first try, which came without a proof, is good for the second.
 */
export function hashPaidRequest(requestInfo: RequestInfo): string {
  const known = hashes.get(requestInfo)
  if (known !== undefined) return known
  const parts = {
    // A HEAD and the GET of the same are one purchase.
    method: requestInfo.method === 'HEAD' ? 'GET' : requestInfo.method,
    path: requestInfo.path,
    query: requestInfo.queryText,
    body: getBodyWithoutProof(requestInfo),
  }
  const made = hashRequest(parts, (content) => hash('sha256', content))
  hashes.set(requestInfo, made)
  return made
}

/** Several parts of a sale ask for the hash of the same request. */
const hashes = new WeakMap<RequestInfo, string>()

/**
 * Matches the presented payment with its network, and tells how to resolve the terms that it was made under: that is done
 * for a new claim only. A signed one is complete in itself; a transfer that the payer made is looked up on the chain,
 * unless it is claimed already. 'nothing' where no payment is needed.
 */
export async function matchPayment(
  ports: QuotePorts,
  offer: Offer,
  given: { presented: PresentedPayment; hash: string },
): Promise<PaymentMatch> {
  const { presented: payment, hash } = given
  if ('transaction' in payment) return matchTransfer(ports, offer, { proof: payment, hash })
  const method = ports.methods.find(({ network }) => network.id === payment.network)
  if (method === undefined) {
    return { refusal: `The payment's network, ${payment.network}, is not accepted` }
  }
  const { network } = method
  const paid = { payment, network, hash }
  if (isDirect(ports, paid)) {
    const asked = { ...paid, network: toPaidNetwork(network, payment), isDirect: true } as const
    return {
      ...{ payment, method, isDirect: true },
      resolveTerms: async () => resolvePaymentTerms(ports, offer, asked),
    }
  }
  const terms = async () =>
    (await describeForgottenTerms(ports, offer, paid)) ?? resolvePaymentTerms(ports, offer, paid)
  return { payment, method, resolveTerms: terms }
}

/** Returns true for a direct payment: it pays another address than ours, and a 402 asked for that for this very request. */
export function isDirect(
  ports: QuotePorts,
  paid: {
    readonly payment: SignedPayment
    readonly network: PaymentNetwork
    readonly hash: string
  },
): boolean {
  const { payment, hash } = paid
  if (!isToOtherAddress(payment, paid.network)) return false
  const { quoteId = '' } = payment
  const network = toPaidNetwork(paid.network, payment)
  if (quoteId !== '') return findQuote(ports, { quoteId, network, hash }) !== undefined
  return ports.askedTerms.list(formatAskedName(network, hash), ports.world.now()).length > 0
}
