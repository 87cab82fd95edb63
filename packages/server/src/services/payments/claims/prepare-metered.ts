import type { Size } from '../../../model/compute-cost.ts'
import { lockName } from '../accounts/account-lock.ts'
import { computeMeteredSale, type MeteredSale } from '../meters/meter.ts'
import { putUse } from '../meters/use-store.ts'
import type { PaymentPorts } from '../payment-ports.ts'
import type { Terms } from '../purchase.ts'
import { type Claim, insertClaim } from './claim-store.ts'
import { decideStep } from './payment-states.ts'
import { isWithinFunds, type SeenFunds, tryWithFunds } from './prepare-claim.ts'
import { keepReply, putReply, type ReplyToKeep } from './reply-store.ts'
import type { UnpaidAnswers } from './unpaid-answers.ts'

/** An answer at metered prices that its buyer has not paid for yet. */
export type MeteredOrder = {
  /** The buyer's. */
  readonly account: string
  readonly terms: Pick<Terms, 'prices' | 'payees'>
  readonly sizes: readonly (Size | null)[]
  /** That of the payment. */
  readonly identity: string
  /** Reads what the payer has on the chain, in atomic units; undefined where that is not known. */
  readonly readFunds: () => Promise<bigint | undefined>
  readonly unpaid: UnpaidAnswers
  /** Makes the claim for what the answer costs this buyer (`ready`, or `held` where that is nothing), with the answer. */
  readonly bind: (sale: MeteredSale) => { readonly claim: Claim; readonly keeping: ReplyToKeep }
}

/**
 * Claims a payment for the true cost of its answer, with that answer and what it uses of quotas, in one commit under the
 * lock of its buyer. So nobody else counts on the same rest of a quota, and what is asked for now is what is charged later,
 * whatever the buyer buys in between. An answer that costs nothing waits for no money. `promised` where the buyer has other
 * payments whose money may still come, and not the money for this one as well: each would keep its answer until its permit
 * ends, and only some could be paid.
 */
export function prepareMetered(
  ports: Pick<PaymentPorts, 'database' | 'world' | 'tenants'>,
  order: MeteredOrder,
): Promise<Claim | 'promised' | 'overtaken'> {
  return tryWithFunds(ports, order, (seen) => tryPreparing(ports, order, seen))
}

async function tryPreparing(
  { database, world, tenants }: Pick<PaymentPorts, 'database' | 'world' | 'tenants'>,
  { account, terms, sizes, bind, unpaid }: MeteredOrder,
  seen: SeenFunds | undefined,
): Promise<Claim | 'promised' | 'overtaken'> {
  const { chain } = tenants.system
  // A pass or a purchase of a moment ago counts.
  await chain.whenApplied(chain.head().height)
  return database.transaction(async (tx) => {
    await lockName(tx, account)
    // The claim is yet to be made, so it has no uses that are its own.
    const metered = { id: '', account, terms, nowMs: world.now() }
    const { atMs, ...sale } = await computeMeteredSale(tx, metered, sizes)
    const { claim, keeping } = bind(sale)
    const isFree = claim.state === 'held'
    if (!isFree && !(await isWithinFunds(tx, claim, { seen, nowMs: world.now() })))
      return 'promised'
    if (!isFree) await unpaid.refuse(tx, claim, keeping.body.length)
    if (!(await insertClaim(tx, claim, isFree ? 'covered' : 'prepared'))) return 'overtaken'
    if (isFree) await keepReply(tx, { claim, event: 'served', keeping })
    else await putReply(tx, claim.id, keeping)
    await putUse(tx, { id: claim.id, account, atMs, uses: sale.uses ?? [] })
    return isFree ? { ...claim, state: decideStep('held', 'served').to } : claim
  })
}
