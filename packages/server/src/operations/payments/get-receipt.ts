import {
  encodeReceiptMessage,
  type Receipt,
  receiptType,
  type UnsignedReceipt,
} from '@tollbase/verify/receipt'
import { requirePresent } from '../../base/assert.ts'
import { Fault } from '../../base/fault.ts'
import { findAnchorProof } from '../../services/anchoring/prove-anchor.ts'
import type { Uses } from '../../services/call.ts'
import type { SaleBody } from '../../services/payments/make-sale.ts'
import { findPaymentId, toReceiptId } from '../../services/payments/replies/receipt-id.ts'
import type { Operation } from '../operation.ts'

export const getReceipt: Operation<'getReceipt', 'database' | 'tenants'> = async (
  { service, requestInfo },
  { params },
) => {
  const paymentId = findPaymentId(params.id)
  const receipt =
    paymentId && (await makeReceipt(service, paymentId, requestInfo.context.getAbortSignal()))
  if (!receipt)
    throw new Fault('RECEIPT_NOT_FOUND', { message: `There is no receipt ${params.id}` })
  return receipt
}

/** Makes the receipt of a payment anew from the ledger's entry: proof and checkpoint are of this moment. */
async function makeReceipt(
  service: Uses<'database' | 'tenants'>,
  paymentId: string,
  signal: AbortSignal,
): Promise<Receipt | undefined> {
  const { system } = service.tenants
  await system.chain.whenApplied(system.chain.head().height)
  const sale = await system.ledger.findSale(service.database, system.schema, paymentId)
  if (sale === undefined) return undefined
  const {
    identity: _identity,
    kind: _kind,
    postings: _postings,
    claim_hash: _claimHash,
    answer_hash: _answerHash,
    ...facts
  }: SaleBody = JSON.parse(sale.body)
  const at = { height: Number(sale.height), sequence: sale.sequence }
  const proof = await system.chain.prove(at, signal)
  const { chain } = system
  const place = { app: 'system', chain, leafIndex: proof.leaf_index }
  const anchor = await findAnchorProof(service, place)
  const unsigned: UnsignedReceipt = {
    type: receiptType,
    receipt_id: toReceiptId(paymentId),
    ...facts,
    ledger: {
      height: proof.height,
      sequence: proof.sequence,
      leaf_index: proof.leaf_index,
      entry: requirePresent(proof.entry, 'the entry of a sale'),
      inclusion: proof.inclusion,
      checkpoint: proof.checkpoint,
    },
    key: proof.key,
    ...(anchor && { anchor }),
  }
  return {
    ...unsigned,
    signature: system.signer.sign(encodeReceiptMessage(unsigned)).toString('base64'),
  }
}
