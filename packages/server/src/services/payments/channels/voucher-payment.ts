import { hash } from 'node:crypto'
import type { SaleVoucher } from '@tollbase/verify/sale-details'
import type { ChannelRow } from '../../../projections/channel-tables.ts'
import { escrowAddress, isSignedByPayer } from '../../../x402/channels/channel.ts'
import type { ChannelPayment } from '../../../x402/channels/channel-payment.ts'
import { isNative, type Payment, type SignedPayment } from '../../../x402/protocol.ts'
import { neverEnds } from '../claims/stored-payment.ts'
import { toChannelAccount } from './channel-entries.ts'

/** A payment by a channel, as a request brought it. */
export type BroughtVoucher = {
  readonly payment: ChannelPayment
  /** The request's. */
  readonly hash: string
  /** The properties by which its sender is known again. */
  readonly origin: string
  /** The request is signed by the wallet whose channel it is. */
  readonly isPayer: boolean
}

/** A use of a channel: the total before it, and how many sales were before it. */
export type ChannelUse = { readonly base: bigint; readonly uses: number }

/** The same with the channel's id. */
export type NamedUse = ChannelUse & { readonly id: string }

/** Computes the total that the payer believes to have been charged before this payment; less than 0 for nonsense. */
export function computeBase({ voucher, accepted }: ChannelPayment): bigint {
  return voucher.maxClaimable - accepted.amount
}

/**
 * Finds the last use of a channel, where a payment repeats it. Not one that cost nothing: the same voucher is right for
 * anything else, too.
 */
export function findRepeatedUse(
  { last_base: base, last_charge: charge, uses }: ChannelRow,
  payment: ChannelPayment,
): ChannelUse | undefined {
  if (base === null || charge === null || charge === 0n) return undefined
  return computeBase(payment) === base ? { base, uses: uses - 1 } : undefined
}

/**
 * Makes the payment that stands for a voucher and one request. A voucher names no request and may be signed for
 * several, so its identity does: of those that name one use of a channel, one alone can be charged. `origin` has the
 * properties by which its sender is known again.
 */
export function makeVoucherPayment(
  payment: ChannelPayment,
  { base, uses }: ChannelUse,
  sent: Pick<BroughtVoucher, 'hash' | 'origin' | 'isPayer'>,
): { readonly payment: SignedPayment; readonly identity: string } {
  const { network, quoteId } = payment
  const { channelId: id, maxClaimable, signature } = payment.voucher
  const from = toChannelAccount(id)
  const nonce = `${base}.${uses}.${digestVoucher(payment, sent)}`
  const payload = {
    ...{ from, to: '', value: 0n, validAfter: 0n, validBefore: neverEnds },
    ...{ nonce, signature },
  }
  // Its last word is the quote's; see `isUnderSameQuote`.
  const origin = `${sent.origin} ${digestQuote(quoteId)}`
  const envelope = { version: 2, network, scheme: 'exact', receiptForm: 'base64' } as const
  const { config } = payment
  const isByOther = !isSignedByPayer(config) && !sent.isPayer
  const channel = {
    ...{ payer: config.payer, maxClaimable },
    ...(isByOther && { isByOther: true as const }),
  }
  return {
    payment: { ...envelope, origin, channel, payload },
    identity: [network, escrowAddress, from, nonce].join('/'),
  }
}

/** Returns true if two payments of `makeVoucherPayment` were made by the same 402, as one is that was sent twice. */
export function isUnderSameQuote(one: Payment, other: Payment): boolean {
  const readQuote = (payment: Payment) =>
    'origin' in payment ? payment.origin?.split(' ').at(-1) : undefined
  const quote = readQuote(one)
  return quote !== undefined && quote === readQuote(other)
}

/**
 * Finds how the identities begin and end that a voucher has for one request, after whatever number of sales, and the mark
 * of the payment that was made by the same 402.
 */
export function findIdentityBounds(
  payment: ChannelPayment,
  sent: { readonly hash: string },
): { readonly payer: string; readonly start: string; readonly end: string; readonly mark: string } {
  const payer = toChannelAccount(payment.voucher.channelId)
  const start = [payment.network, escrowAddress, payer, `${computeBase(payment)}.`].join('/')
  const mark = digestQuote(payment.quoteId)
  return { payer, start, end: `.${digestVoucher(payment, sent)}`, mark }
}

function digestQuote(quoteId: string): string {
  return hash('sha256', `quote ${quoteId}`)
}

function digestVoucher({ voucher }: ChannelPayment, sent: { readonly hash: string }): string {
  const { maxClaimable, signature } = voucher
  return hash('sha256', [sent.hash, String(maxClaimable), signature].join(' ')).slice(0, 32)
}

/** Reads the voucher and the use that a payment of `makeVoucherPayment` stands for; undefined for any other one. */
export function readVoucher(
  payment: Payment,
): { readonly payer: string; readonly voucher: SaleVoucher; readonly use: NamedUse } | undefined {
  if (isNative(payment) || payment.channel === undefined) return undefined
  const { channel, payload } = payment
  const { payer, maxClaimable } = channel
  const { from, nonce, signature } = payload
  const id = from.slice(toChannelAccount('').length)
  const [base = '', uses] = nonce.split('.')
  return {
    payer,
    voucher: { id, base, max_claimable: String(maxClaimable), signature },
    use: { id, base: BigInt(base), uses: Number(uses) },
  }
}
