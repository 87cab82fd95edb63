import { depositAddress } from '../../x402/deposit-address.ts'
import type { NativeTransfers } from '../../x402/native-transfer.ts'
import {
  isNative,
  type NativePayment,
  type NativeProof,
  type NativeTransfer,
  type Payment,
  type Presented,
} from '../../x402/protocol.ts'
import { type Claim, findClaim } from './claim-store.ts'
import { forgottenTerms } from './forgotten-terms.ts'
import type { Offer } from './offer.ts'
import { depositPurpose, type PaymentPorts, type Way } from './purchase.ts'
import { isFreeNow, type QuotePorts, quoteOf, termsOfPayment, termsOfTransfer } from './quoting.ts'
import { storedPayment, transferName } from './stored-payment.ts'
import type { Terms } from './terms.ts'

/** A payment for a request, and the terms under which it was made, or why it has none. */
export type Tender = {
  readonly payment: Payment
  readonly way: Way
  readonly terms: () => Promise<Terms | string>
}

/** Money that is here and buys nothing. */
export type Stray = { readonly payment: Payment; readonly way: Way; readonly why: string }

export type Tendered = Tender | { readonly refusal: string } | { readonly stray: Stray } | 'nothing'

/**
 * What the presented payment is. A signed one says all of itself; a transfer that the payer made himself is looked
 * for on the chain, unless it is claimed already. 'nothing' where none is needed.
 */
export async function tenderOf(
  ports: QuotePorts,
  offer: Offer,
  given: { presented: Presented; hash: string },
): Promise<Tendered> {
  const { presented: payment, hash } = given
  if ('transaction' in payment) return nativeTender(ports, offer, { proof: payment, hash })
  const way = ports.ways.find(({ network }) => network.id === payment.network)
  if (way === undefined) {
    return { refusal: `The payment's network, ${payment.network}, is not accepted` }
  }
  const { network } = way
  const paid = { payment, network, hash }
  const terms = async () =>
    (await forgottenTerms(ports, offer, paid)) ?? termsOfPayment(ports, offer, paid)
  return { payment, way, terms }
}

/** A claimed transfer. */
export type Known = { readonly claim: Claim; readonly payment: NativePayment; readonly way: Way }

/** The claim of the transfer that a proof with a quote speaks of: nobody else knows the quote. */
export async function claimOfProof(
  ports: PaymentPorts,
  proof: NativeProof,
): Promise<Known | undefined> {
  const { quoteId } = proof
  if (quoteId === undefined) return undefined
  const bond = depositAddress(ports.depositSecret, quoteId)
  for (const { way } of nativeWays(ports, proof)) {
    const known = await knownTransfer(ports, { way, bond }, proof)
    if (known !== undefined) return known
  }
  return undefined
}

/**
 * The transfer that a proof with a quote speaks of, whatever the quote was for: only from us can anybody know that
 * address, so what went there is for a quote of ours.
 */
export async function transferOfProof(
  ports: PaymentPorts,
  proof: NativeProof,
): Promise<{ payment: NativePayment; way: Way } | { refusal: string }> {
  const { quoteId, transaction, sender } = proof
  const known = await claimOfProof(ports, proof)
  if (known !== undefined && known.claim.state !== 'failed') return known
  const [only, ...others] = nativeWays(ports, proof)
  if (only === undefined) return { refusal: notTaken }
  if (others.length > 0) return { refusal: 'the network must say on which it was made' }
  if (quoteId === undefined) return { refusal: unquoted }
  const to = depositAddress(ports.depositSecret, quoteId)
  const wanted = { transaction, to, ...(sender !== undefined && { sender }) }
  const found = await only.native.find(wanted)
  if ('refusal' in found) return { refusal: `${found.refusal} (txHash)` }
  return { payment: paymentOf(only.way, proof, found.transfer), way: only.way }
}

const notTaken = 'plain transfers are not accepted on its network'
const unquoted = 'a transfer counts only together with the quote (quoteId) whose address it went to'

/** Where a proof's transfer must have gone, and what keeps others from using it. */
type Place = {
  readonly way: Way
  readonly native: NativeTransfers
  readonly to: string
  readonly sender: string | undefined
  /** The address that makes the transfer this payer's: the quote's own, or the sender's. */
  readonly bond: string
}

async function nativeTender(
  ports: QuotePorts,
  offer: Offer,
  asked: { proof: NativeProof; hash: string },
): Promise<Tendered> {
  const { proof, hash } = asked
  const place = placeOf(ports, offer, asked)
  const known = typeof place === 'string' ? undefined : await knownTransfer(ports, place, proof)
  if (known !== undefined && known.claim.state !== 'failed') {
    const isTaken = known.claim.request_hash !== depositPurpose
    return judged(ports, offer, { ...known, hash, isTaken, isSwept: false })
  }
  const isFree = isFreeNow(offer)
  // What was paid for a quote is here, though the price has fallen to nothing since.
  if (isFree && (typeof place === 'string' || proof.quoteId === undefined)) return 'nothing'
  if (typeof place === 'string') return { refusal: `The payment was refused: ${place}` }
  const { way, native, to, sender } = place
  const { transaction } = proof
  const found = await native.find({ transaction, to, ...(sender !== undefined && { sender }) })
  if ('refusal' in found)
    return isFree ? 'nothing' : { refusal: `The payment was refused: ${found.refusal} (txHash)` }
  const payment = paymentOf(way, proof, found.transfer)
  const { isSwept } = found
  return judged(ports, offer, { payment, way, hash, isTaken: false, isSwept })
}

type Found = {
  readonly payment: NativePayment
  readonly way: Way
  readonly hash: string
  readonly isTaken: boolean
  /** Its money has left the quote's address, which nobody but us can do, and only once it is claimed. */
  readonly isSwept: boolean
}

/** A transfer that was taken for a request is judged by its claim; any other must fit the terms of now. */
function judged(ports: QuotePorts, offer: Offer, found: Found): Tendered {
  const { payment, way, hash, isTaken } = found
  const { network } = way
  const terms = () => termsOfTransfer(ports, offer, { payment, network, hash })
  const verdict = isTaken ? undefined : (lostUse(found) ?? terms())
  if (typeof verdict === 'string') return { stray: { payment, way, why: verdict } }
  return { payment, way, terms: async () => terms() }
}

/** Why a transfer may have bought something in a life of the database that is lost. */
function lostUse({ way, payment, isSwept }: Found): string | undefined {
  if (isSwept) return 'its transfer was used before'
  const { restoredAt } = way
  if (restoredAt === undefined || payment.payload.blockTime > restoredAt) return undefined
  return 'its transfer was made before this service was restored from a backup, and may have been used then'
}

function placeOf(
  ports: PaymentPorts,
  offer: Offer,
  { proof, hash }: { proof: NativeProof; hash: string },
): Place | string {
  const { quoteId, sender } = proof
  const ways = nativeWays(ports, proof)
  if (ways.length === 0) return notTaken
  if (quoteId === undefined) return ownersPlace(offer, ways, proof)
  const quoted = ways.find(
    ({ way: { network } }) => quoteOf(ports, { quoteId, network, hash }) !== undefined,
  )
  if (quoted === undefined) return 'the quote (quoteId) is not one for this request'
  const to = depositAddress(ports.depositSecret, quoteId)
  return { ...quoted, to, sender, bond: to }
}

/**
 * Old clients know no quotes: they pay to the one address that they were told. There nothing but its sender tells
 * whose transfer it is, so only that of the one for whom the caller acts counts.
 */
function ownersPlace(
  offer: Offer,
  ways: readonly NativeWay[],
  { sender }: NativeProof,
): Place | string {
  const { payer } = offer
  const [only, ...others] = ways
  if (only === undefined || payer === undefined) {
    return unquoted
  }
  if (others.length > 0) return 'payment_network must say on which network it was made'
  const how = `without a quote (quote_id) the payment must come from the owner of the application, ${payer}`
  if (sender !== undefined && sender !== payer) return how
  const { payTo: to } = only.way.network
  return { ...only, to, sender: payer, bond: payer }
}

type NativeWay = { readonly way: Way; readonly native: NativeTransfers }

/** The networks that the proof may mean; all where the client did not know how we call ours. */
function nativeWays(ports: PaymentPorts, { network }: NativeProof): NativeWay[] {
  return ports.ways.flatMap((way) => {
    const isMeant = network === undefined || network === way.network.id
    return isMeant && way.native !== undefined ? [{ way, native: way.native }] : []
  })
}

async function knownTransfer(
  { database }: PaymentPorts,
  { way, bond }: Pick<Place, 'way' | 'bond'>,
  { transaction }: NativeProof,
): Promise<Known | undefined> {
  const transfer = transferName(way.network.id, transaction, bond)
  const claim = await findClaim(database, { transfer })
  const payment = claim && storedPayment(claim.payment)
  if (claim === undefined || payment === undefined || !isNative(payment)) return undefined
  return { claim, payment, way }
}

function paymentOf(way: Way, { quoteId }: NativeProof, transfer: NativeTransfer): NativePayment {
  return {
    version: 1,
    network: way.network.id,
    scheme: 'exact',
    payload: transfer,
    receiptForm: 'json',
    ...(quoteId !== undefined && { quoteId }),
  }
}
