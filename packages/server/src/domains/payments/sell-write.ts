import type { HttpReply } from '../../http/reply.ts'
import type { Call } from '../call.ts'
import { costOf, writePriceOf } from '../tenancy/price.ts'
import type { Tenant } from '../tenancy/tenancy.ts'
import type { Delivery } from './offer.ts'

export type PaidWrite = {
  readonly tenant: Tenant
  readonly collection: string
  readonly size: { readonly rows: number; readonly bytes: number }
  /** Writes, under the payment's id where there is one, and answers. */
  readonly run: (paymentId: string | undefined) => Promise<HttpReply>
  /** The answer of an earlier try, if it wrote after this height. */
  readonly recover: (paymentId: string, afterHeight: number) => Promise<HttpReply | undefined>
}

/** Sells a write: what it costs is known before, so the cap is the charge. */
export function sellWrite(call: Call, write: PaidWrite): Promise<HttpReply> {
  const { tenant, size } = write
  const price = writePriceOf(tenant.data.catalog, tenant.data.catalog.byName.get(write.collection))
  const delivered = (reply: HttpReply, charge: bigint): Delivery => ({
    status: reply.status ?? 202,
    body: Buffer.from(reply.text),
    charge,
    rows: size.rows,
    asOf: null,
  })
  const costUnder: (catalog: Tenant['data']['catalog']) => bigint = (catalog) =>
    costOf(writePriceOf(catalog, catalog.byName.get(write.collection)), size)
  return call.service.payments.sell(call.facts, {
    tenant,
    operation: 'store',
    description: `Store ${size.rows} ${size.rows === 1 ? 'record' : 'records'} in ${tenant.application.app_id}::${write.collection}`,
    capUnder: costUnder,
    breakdown: {
      per_access: Number(price.perAccess),
      per_record: Number(price.perRow) * size.rows,
      per_kb: Number(costOf({ perAccess: 0n, perRow: 0n, perKb: price.perKb }, size)),
    },
    deliver: async (catalog, paymentId) =>
      delivered(await write.run(paymentId), costUnder(catalog)),
    recover: async (catalog, paymentId, afterHeight) => {
      const reply = await write.recover(paymentId, afterHeight)
      return reply && delivered(reply, costUnder(catalog))
    },
  })
}
