import { createHash } from 'node:crypto'
import type { ReceiptFacts } from '@tollbase/verify/receipt'
import { assert } from '../../../base/assert.ts'
import type { MeasuredPart } from '../../../model/measured-use.ts'
import type { PaymentNetwork } from '../../../x402/networks.ts'
import type { Part } from '../ledger-entries.ts'
import type { FundedClaim, Purchase } from '../purchase.ts'
import type { Delivery, Payee } from '../quotes/offer.ts'
import { decodeSoldFile, soldFileType } from './sold-file.ts'

/** The payment behind a sale, and the network that its amounts are of. */
export type PaidBy = Pick<Purchase, 'payment' | 'channel' | 'paidTo'> & {
  readonly network: PaymentNetwork
}

/** Makes the facts of a receipt: what was paid, for which request, and what was delivered for it. */
export function makeReceiptFacts(
  { payment, network, channel, paidTo }: PaidBy,
  { claim, transaction }: Pick<FundedClaim, 'claim' | 'transaction'>,
  delivery: Delivery & { due: readonly bigint[]; nowMs: number },
): ReceiptFacts {
  const charge = delivery.due.reduce((sum, amount) => sum + amount, 0n)
  const isFromBalance = transaction === null
  // An error costs nothing: its money is the payer's balance, as all that is not charged.
  assert(charge <= claim.cap, 'no charge is above its quote')
  return {
    payment_id: claim.id,
    request_hash: claim.request_hash,
    quote_hash: claim.quote_id && hashSha256(claim.quote_id),
    payer: channel?.payer ?? payment.payload.from,
    payee: `app:${claim.app}`,
    amount: String(charge),
    deposited: String(isFromBalance ? 0n : claim.amount),
    change: String(isFromBalance ? 0n : claim.amount - charge),
    asset: network.asset.address,
    network: network.id,
    transaction,
    ...(isFromBalance && { paid_from: channel ? 'channel' : 'balance' }),
    ...(!isFromBalance && paidTo !== undefined && { paid_to: paidTo }),
    app: claim.app,
    operation: claim.operation,
    as_of: delivery.asOf,
    row_count: delivery.rows,
    result_hash: hashResult(delivery),
    delivered_at: new Date(delivery.nowMs).toISOString(),
  }
}

/** Lists the parts of a charge, each with its owner and what it is paid for. */
export function listParts(due: readonly bigint[], payees: readonly Payee[]): readonly Part[] {
  return payees.map(({ account, platformBasisPoints, item }, at) => ({
    amount: due[at] ?? 0n,
    platformBasisPoints: BigInt(platformBasisPoints),
    account,
    item,
  }))
}

/** Lists the use of each part that has a price; undefined where the delivery does not say. */
export function listMeasured(
  { measured }: Delivery,
  due: readonly bigint[],
  payees: readonly Payee[],
): readonly MeasuredPart[] | undefined {
  return measured?.flatMap((use, at) => {
    const { account = '', item } = payees[at] ?? {}
    if (use === undefined || item === undefined) return []
    return [{ account, kind: item.kind, name: item.name, ...use, charged: String(due[at] ?? 0n) }]
  })
}

function hashSha256(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('hex')
}

/** A file's hash is its name; every other answer is hashed as it goes out. */
function hashResult({ body, contentType }: Delivery): string {
  return contentType === soldFileType ? decodeSoldFile(body).sha256 : hashSha256(body)
}
