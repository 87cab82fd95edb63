import { deriveDepositAddress } from '../../../x402/deposit-address.ts'
import type { NativeTransfers } from '../../../x402/native-transfer.ts'
import {
  isNative,
  type NativePayment,
  type NativeProof,
  type NativeTransfer,
} from '../../../x402/protocol.ts'
import { type Claim, findClaim } from '../claims/claim-store.ts'
import { isUntried } from '../claims/payment-states.ts'
import { decodeStoredPayment, formatTransferName } from '../claims/stored-payment.ts'
import type { PaymentMethod, PaymentPorts } from '../payment-ports.ts'
import {
  depositOperation,
  isFreeNow,
  type MatchedPayment,
  type Offer,
  type PaymentMatch,
  type UnmatchedTransfer,
} from '../purchase.ts'
import { findQuote, type QuotePorts, resolveTransferTerms } from '../quotes/quoting.ts'

/** A claimed transfer. */
export type KnownTransfer = {
  readonly claim: Claim
  readonly payment: NativePayment
  readonly method: PaymentMethod
}

/** Finds the claim of the transfer that a proof with a quote names: nobody else knows the quote. */
export async function findProofClaim(
  ports: PaymentPorts,
  proof: NativeProof,
): Promise<KnownTransfer | undefined> {
  const { quoteId } = proof
  if (quoteId === undefined) return undefined
  const binding = deriveDepositAddress(ports.depositSecret, quoteId)
  for (const { method } of listNativeMethods(ports, proof)) {
    const known = await findKnownTransfer(ports, { method, binding }, proof)
    if (known !== undefined) return known
  }
  return undefined
}

/**
 * Finds the transfer that a proof with a quote names, whatever the quote was for: nobody learns that address but
 * from us, so money that went there is for a quote of ours.
 */
export async function findProofTransfer(
  ports: PaymentPorts,
  proof: NativeProof,
): Promise<{ payment: NativePayment; method: PaymentMethod } | { refusal: string }> {
  const { quoteId, transaction, sender } = proof
  const known = await findProofClaim(ports, proof)
  if (known !== undefined && !isUntried(known.claim.state)) return known
  const [only, ...others] = listNativeMethods(ports, proof)
  if (only === undefined) return { refusal: notTaken }
  if (others.length > 0) return { refusal: 'the network must say on which it was made' }
  if (quoteId === undefined) return { refusal: unquoted }
  const to = deriveDepositAddress(ports.depositSecret, quoteId)
  const wanted = { transaction, to, ...(sender !== undefined && { sender }) }
  const found = await only.native.find(wanted)
  if ('refusal' in found) return { refusal: `${found.refusal} (txHash)` }
  return { payment: makeNativePayment(only.method, proof, found.transfer), method: only.method }
}

const notTaken = 'plain transfers are not accepted on its network'
const unquoted = 'a transfer counts only together with the quote (quoteId) whose address it went to'

/** The address that a proof's transfer must have gone to, and what keeps others from using it. */
type TransferPlace = {
  readonly method: PaymentMethod
  readonly native: NativeTransfers
  readonly to: string
  readonly sender: string | undefined
  /** The address that binds the transfer to this payer: the quote's own, or the sender's. */
  readonly binding: string
}

/** Finds the transfer that a proof names, and the terms that it counts for; 'nothing' where no payment is needed. */
export async function matchTransfer(
  ports: QuotePorts,
  offer: Offer,
  asked: { proof: NativeProof; hash: string },
): Promise<PaymentMatch> {
  const { proof, hash } = asked
  const place = resolvePlace(ports, offer, asked)
  const judgeKnown = async (at: TransferPlace) => {
    const known = await findKnownTransfer(ports, at, proof)
    if (known === undefined || isUntried(known.claim.state)) return undefined
    const isTaken = known.claim.request_hash !== depositOperation
    return judgeTransfer(ports, offer, { ...known, hash, isTaken, isSwept: false })
  }
  const known = typeof place === 'string' ? undefined : await judgeKnown(place)
  if (known !== undefined) return known
  const isFree = isFreeNow(offer)
  // The money that was paid for a quote is here, though the price has fallen to nothing since.
  if (isFree && (typeof place === 'string' || proof.quoteId === undefined)) return 'nothing'
  if (typeof place === 'string') return { refusal: `The payment was refused: ${place}` }
  const { method, native, to, sender } = place
  const { transaction } = proof
  const found = await native.find({ transaction, to, ...(sender !== undefined && { sender }) })
  if ('refusal' in found)
    return isFree ? 'nothing' : { refusal: `The payment was refused: ${found.refusal} (txHash)` }
  const payment = makeNativePayment(method, proof, found.transfer)
  const { isSwept } = found
  const match = judgeTransfer(ports, offer, { payment, method, hash, isTaken: false, isSwept })
  // While the chain was asked, the same request may have claimed it and been answered, and its money may have been swept.
  return 'payment' in match ? match : ((await judgeKnown(place)) ?? match)
}

type FoundTransfer = {
  readonly payment: NativePayment
  readonly method: PaymentMethod
  readonly hash: string
  readonly isTaken: boolean
  /** True if its money has left the quote's address, which only we can do, and only once it is claimed. */
  readonly isSwept: boolean
}

/** A transfer that was taken for a request is judged by its claim; any other must fit the terms of now. */
function judgeTransfer(
  ports: QuotePorts,
  offer: Offer,
  found: FoundTransfer,
): MatchedPayment | { readonly unmatched: UnmatchedTransfer } {
  const { payment, method, hash, isTaken } = found
  const { network } = method
  const terms = () => resolveTransferTerms(ports, offer, { payment, network, hash })
  const verdict = isTaken ? undefined : (findLostUse(found) ?? terms())
  if (typeof verdict === 'string') return { unmatched: { payment, method, why: verdict } }
  return { payment, method, resolveTerms: async () => terms() }
}

/** Finds the reason why a transfer may have bought something in a lost life of the database. */
function findLostUse({ method, payment, isSwept }: FoundTransfer): string | undefined {
  if (isSwept) return 'its transfer was used before'
  const { restoredAt } = method
  if (restoredAt === undefined || payment.payload.blockTime > restoredAt) return undefined
  return 'its transfer was made before this service was restored from a backup, and may have been used then'
}

function resolvePlace(
  ports: PaymentPorts,
  offer: Offer,
  { proof, hash }: { proof: NativeProof; hash: string },
): TransferPlace | string {
  const { quoteId, sender } = proof
  const methods = listNativeMethods(ports, proof)
  if (methods.length === 0) return notTaken
  if (quoteId === undefined) return resolveOwnersPlace(offer, methods, proof)
  const quoted = methods.find(
    ({ method: { network } }) => findQuote(ports, { quoteId, network, hash }) !== undefined,
  )
  if (quoted === undefined) return 'the quote (quoteId) is not one for this request'
  const to = deriveDepositAddress(ports.depositSecret, quoteId)
  return { ...quoted, to, sender, binding: to }
}

/**
 * Resolves the place of a transfer without a quote: old clients know no quotes and pay to the one address that they
 * were told. There only the sender shows whose transfer it is, so the transfer must come from the wallet for which
 * the caller acts.
 */
function resolveOwnersPlace(
  offer: Offer,
  methods: readonly NativeMethod[],
  { sender }: NativeProof,
): TransferPlace | string {
  const { payer } = offer
  const [only, ...others] = methods
  if (only === undefined || payer === undefined) {
    return unquoted
  }
  if (others.length > 0) return 'payment_network must say on which network it was made'
  const how = `without a quote (quote_id) the payment must come from the owner of the application, ${payer}`
  if (sender !== undefined && sender !== payer) return how
  const { payTo: to } = only.method.network
  return { ...only, to, sender: payer, binding: payer }
}

type NativeMethod = { readonly method: PaymentMethod; readonly native: NativeTransfers }

/** Lists the networks that the proof may mean; all where the client did not know our name of it. */
function listNativeMethods(ports: PaymentPorts, { network }: NativeProof): NativeMethod[] {
  return ports.methods.flatMap((method) => {
    const isMeant = network === undefined || network === method.network.id
    return isMeant && method.native !== undefined ? [{ method, native: method.native }] : []
  })
}

async function findKnownTransfer(
  { database }: PaymentPorts,
  { method, binding }: Pick<TransferPlace, 'method' | 'binding'>,
  { transaction }: NativeProof,
): Promise<KnownTransfer | undefined> {
  const transfer = formatTransferName(method.network.id, transaction, binding)
  const claim = await findClaim(database, { transfer })
  const payment = claim && decodeStoredPayment(claim.payment)
  if (claim === undefined || payment === undefined || !isNative(payment)) return undefined
  return { claim, payment, method }
}

function makeNativePayment(
  method: PaymentMethod,
  { quoteId }: NativeProof,
  transfer: NativeTransfer,
): NativePayment {
  return {
    version: 1,
    network: method.network.id,
    scheme: 'exact',
    payload: transfer,
    receiptForm: 'json',
    ...(quoteId !== undefined && { quoteId }),
  }
}
