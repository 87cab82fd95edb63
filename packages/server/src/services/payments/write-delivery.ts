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

/** The entries that the request of a claim has written. */
type Written = { readonly tenant: Tenant; readonly group: StoredGroup }

/**
 * Finds what the request of a claim has written, in the blocks after the height that its application had then. Its
 * chain is ours when the log is read, so that nobody else who is at work on the same request can write any more; in
 * this process nobody is.
 */
export async function findWritten(
  tenants: Pick<Tenants, 'loadEvenArchived'>,
  claim: Pick<Claim, 'id' | 'app' | 'write_after'>,
  form: Pick<WriteForm, 'rows'>,
): Promise<Written | undefined> {
  return (await locateWritten(tenants, claim, form)).written
}

/** The same with the height up to which it was looked for; undefined where there was nothing to look for. */
export async function locateWritten(
  tenants: Pick<Tenants, 'loadEvenArchived'>,
  { id, app, write_after: afterHeight }: Pick<Claim, 'id' | 'app' | 'write_after'>,
  { rows }: Pick<WriteForm, 'rows'>,
): Promise<{ readonly written?: Written; readonly upTo?: number }> {
  if (afterHeight === null) return {}
  const tenant = await tenants.loadEvenArchived(app)
  const { chain } = tenant
  await chain.confirmHeld()
  await chain.flushed()
  let upTo = Number(afterHeight)
  for await (const block of chain.blocksFrom(upTo + 1)) {
    const sequence = block.entries.findIndex((one) => one?.header.payment === id)
    upTo = block.height
    if (sequence >= 0)
      return { written: { tenant, group: sliceGroup(block, sequence, rows) }, upTo }
  }
  return { upTo }
}
