import { limits } from '@tollbase/contract/limits'
import type { ReceiptFacts } from '@tollbase/verify/receipt'
import type { SaleDetails } from '@tollbase/verify/sale-details'
import { Fault } from '../../../base/fault.ts'
import { type FileBody, HttpReply } from '../../../http/reply.ts'
import type { PaymentNetwork } from '../../../x402/networks.ts'
import { encodeSettlement } from '../../../x402/payment-response.ts'
import { isNative, type Payment } from '../../../x402/protocol.ts'
import type { Claim } from '../claims/claim-store.ts'
import type { KeptReply } from '../claims/reply-store.ts'
import { type SaleBody, sumShare } from '../make-sale.ts'
import type { PaymentPorts } from '../payment-ports.ts'
import type { Delivery } from '../purchase.ts'
import { toReceiptId } from './receipt-id.ts'
import { decodeSoldFile, soldFileType } from './sold-file.ts'

/** The reply that a payment bought, exactly as it was first delivered. */
export type BoughtReply = {
  readonly paymentId: string
  readonly status: number
  readonly body: Buffer
  /** JSON where there is none. */
  readonly contentType: string | undefined
  /** Null where a balance was charged. */
  readonly transaction: string | null
  /** Atomic units. */
  readonly charge: bigint
  /** The amount that its own transaction moved, where a sale says so. */
  readonly moved?: bigint
  /** True where a free quota was used for it; a sale that is read from the ledger says so. */
  readonly usesQuota?: boolean
  /** True where the platform's share pays for the entry of the sale; a deposit has brought its own money. */
  readonly paysForEntry: boolean
  /** False of a deposit: receipts are of sales. */
  readonly hasReceipt?: boolean
}

/** The sale says how it was paid; what becomes of the payment's own money later changes no answer. */
export function toBoughtReply(
  { id }: Claim,
  { status, body, contentType, sale }: KeptReply,
): BoughtReply {
  const facts: ReceiptFacts & SaleDetails & Pick<SaleBody, 'postings'> = JSON.parse(sale)
  const { transaction, amount, deposited, uses = [], postings } = facts
  const sums = { charge: BigInt(amount), moved: BigInt(deposited) }
  const usesQuota = uses.some(({ free_request: request, free_row: row, free_kb: kb }) =>
    [request, row, kb].some((units) => units !== '0'),
  )
  return {
    paymentId: id,
    status,
    body,
    contentType: contentType ?? undefined,
    transaction,
    ...sums,
    usesQuota,
    paysForEntry: sumShare(postings) >= limits.entryShareAtomicMin,
  }
}

/**
 * Makes the HTTP reply of what was bought, with the settlement in the form of the client's version of x402, and the id of
 * the receipt. The receipt itself is made when it is asked for (`operations/payments/get-receipt.ts`).
 */
export async function toHttpReply(
  ports: Pick<PaymentPorts, 'files'>,
  { payment, network }: { readonly payment: Payment; readonly network: PaymentNetwork },
  bought: BoughtReply,
): Promise<HttpReply> {
  const isFromBalance = bought.transaction === null
  const notice = encodeSettlement(payment, {
    success: true,
    transaction: bought.transaction ?? '',
    network,
    payer: payment.payload.from,
    amount: isFromBalance ? bought.charge : (bought.moved ?? payment.payload.value),
    ...(isFromBalance && { paidFrom: 'balance' }),
    ...(isNative(payment) && {
      blockNumber: payment.payload.blockNumber,
      confirmedAt: new Date(Number(payment.payload.blockTime) * 1000).toISOString(),
    }),
  })
  return makeBoughtReply(ports, { [notice.name.toLowerCase()]: notice.value }, bought)
}

/** The same with a header that tells the client about its payment. */
export async function makeBoughtReply(
  { files }: Pick<PaymentPorts, 'files'>,
  notice: Readonly<Record<string, string>>,
  bought: BoughtReply,
): Promise<HttpReply> {
  const headers = {
    ...notice,
    ...(bought.hasReceipt !== false && { 'x-receipt-id': toReceiptId(bought.paymentId) }),
    'x-payment-id': bought.paymentId,
  }
  const reply = await makeReply(files, bought, 'sold')
  if (reply === undefined)
    throw new Fault('PAYMENT_REPLY_GONE', { details: { payment_id: bought.paymentId } })
  return new HttpReply(reply.text, { ...reply, headers, paysForEntry: bought.paysForEntry })
}

/** Makes the reply of a priced operation to a request that costs nothing. */
export async function makeFreeReply(
  { files }: Pick<PaymentPorts, 'files'>,
  delivery: Delivery,
): Promise<HttpReply> {
  const reply = await makeReply(files, delivery, 'public')
  if (reply === undefined) throw new Fault('BLOB_GONE')
  return new HttpReply(reply.text, reply)
}

type Reply = {
  readonly text: Buffer
  readonly status: number
  readonly contentType?: string
  readonly file?: FileBody
}

/** Undefined where the file that the reply names is not there any more. */
async function makeReply(
  files: PaymentPorts['files'],
  { status, body, contentType }: Pick<Delivery, 'status' | 'body' | 'contentType'>,
  access: FileBody['access'],
): Promise<Reply | undefined> {
  if (contentType !== soldFileType)
    return { text: body, status, ...(contentType !== undefined && { contentType }) }
  const { folder, ...facts } = decodeSoldFile(body)
  const found = await files?.find({ folder, sha256: facts.sha256 }, facts.size)
  return found && { text: noText, status, file: { ...facts, access, read: found.read } }
}

const noText = Buffer.alloc(0)
