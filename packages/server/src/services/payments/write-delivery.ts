import type { HttpReply } from '../../http/reply.ts'
import { noSize } from '../../model/compute-cost.ts'
import type { Tenant, Tenants } from '../applications/tenants.ts'
import { type StoredGroup, sliceGroup } from '../records/stored-records.ts'
import type { Claim } from './claims/claim-store.ts'
import type { Delivery, PartPrice } from './purchase.ts'
import type { WriteForm } from './quotes/write-answer-form.ts'

/** Makes the delivery of a write: its cost is known before, so each part costs what was quoted for it. */
export function makeWriteDelivery(
  reply: HttpReply,
  { rows, measured }: WriteForm,
  prices: readonly PartPrice[],
): Delivery {
  return {
    status: reply.status ?? 202,
    body: Buffer.from(reply.text),
    sizes: prices.map(() => noSize),
    measured,
    rows,
    asOf: null,
  }
}

/**
 * Finds what the request of a claim has written, in the blocks after the height that its application had then. Its
 * chain is ours when the log is read, so that nobody else who is at work on the same request can write any more; in
 * this process nobody is.
 */
export async function findWritten(
  tenants: Pick<Tenants, 'loadEvenArchived'>,
  { id, app, write_after: afterHeight }: Pick<Claim, 'id' | 'app' | 'write_after'>,
  { rows }: Pick<WriteForm, 'rows'>,
): Promise<{ readonly tenant: Tenant; readonly group: StoredGroup } | undefined> {
  if (afterHeight === null) return undefined
  const tenant = await tenants.loadEvenArchived(app)
  const { chain } = tenant
  await chain.confirmHeld()
  await chain.flushed()
  for await (const block of chain.blocksFrom(Number(afterHeight) + 1)) {
    const sequence = block.entries.findIndex((one) => one?.header.payment === id)
    if (sequence >= 0) return { tenant, group: sliceGroup(block, sequence, rows) }
  }
  return undefined
}
