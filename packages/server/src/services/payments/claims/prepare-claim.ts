import { assert } from '../../../base/assert.ts'
import { chooseLarger } from '../../../base/bigint.ts'
import { Fault } from '../../../base/fault.ts'
import type { Queryable } from '../../../database/database.ts'
import { sql } from '../../../database/sql.ts'
import { lockName, takeFromAccount } from '../accounts/account-lock.ts'
import { insertHold } from '../accounts/holds.ts'
import { takePayment } from '../facilitating/two-uses.ts'
import type { PaymentPorts } from '../payment-ports.ts'
import type { Paid } from '../purchase.ts'
import { tryEvent } from './claim-steps.ts'
import { type Claim, claims, insertClaim } from './claim-store.ts'
import { putReply, type ReplyToKeep } from './reply-store.ts'
import { readPayerPrefix, type UnpaidAnswers } from './unpaid-answers.ts'

type PrepareOrder = {
  readonly claim: Claim
  /** The same as it is, where it failed before. */
  readonly found: Claim | undefined
  readonly keeping: ReplyToKeep
  readonly fee: { readonly account: string; readonly amount: bigint }
  /** Reads what the payer has on the chain, in atomic units; undefined where that is not known. */
  readonly readFunds: () => Promise<bigint | undefined>
  readonly unpaid: UnpaidAnswers
}

/** Times that a payment waits for others of its payer, and the time between them. */
const waitsMax = 10
const waitMs = 200

/**
 * Claims a payment with its answer, before its money is asked for, and holds what the sale will owe the platform on the
 * seller's account: all of it or nothing. `short` where that account has less. `promised` where the payer has other such
 * payments whose money may still come, and not the money for all of them: each would hold a share of its seller, and only
 * some could be made.
 */
export function prepareClaim(
  ports: Pick<PaymentPorts, 'database' | 'world'>,
  order: PrepareOrder,
): Promise<'prepared' | 'short' | 'promised' | 'overtaken'> {
  const by = { identity: order.claim.identity, readFunds: order.readFunds }
  return tryWithFunds(ports, by, (seen) => tryPreparing(ports, order, seen))
}

/** The money that a payer had on the chain, and the part of it that was promised just before; atomic units. */
export type SeenFunds = { readonly funds: bigint; readonly promised: bigint }

/**
 * Tries to claim a payment, first without a look at the chain, and then, while its payer has others that are under way,
 * by what the payer has there.
 */
export async function tryWithFunds<T>(
  { database, world }: Pick<PaymentPorts, 'database' | 'world'>,
  { identity, readFunds }: Pick<Claim, 'identity'> & Pick<PrepareOrder, 'readFunds'>,
  attempt: (seen: SeenFunds | undefined) => Promise<T | 'promised'>,
): Promise<T | 'promised'> {
  let outcome = await attempt(undefined)
  for (let n = 0; outcome === 'promised' && n < waitsMax; n++) {
    // One that was just made is off the payer's balance a moment before its claim says so.
    if (n > 0) await world.sleep(waitMs)
    // In this order: one that is made in between counts twice, and not as if its money were still there.
    const promised = await sumUnderWay(database, readPayerPrefix({ identity }), world.now())
    const funds = await readFunds()
    outcome = await attempt(funds === undefined ? undefined : { funds, promised })
  }
  return outcome
}

/** Returns true where the payer has the money for this payment beside its others that are under way. */
export async function isWithinFunds(
  tx: Queryable,
  claim: Pick<Claim, 'identity' | 'amount'>,
  { seen, nowMs }: { readonly seen: SeenFunds | undefined; readonly nowMs: number },
): Promise<boolean> {
  const promised = await sumUnderWay(tx, readPayerPrefix(claim), nowMs)
  if (seen === undefined) return promised === 0n
  return chooseLarger(promised, seen.promised) + claim.amount <= seen.funds
}

/**
 * Waits until a payer has the money for a payment beside its others that are under way; false where that takes too long.
 * Nobody makes an answer before this is so, or who has no money would make us work for nothing. The claim decides for
 * certain.
 */
export async function awaitFunds(
  { database, world }: Pick<PaymentPorts, 'database' | 'world'>,
  { identity, payment, settler }: Paid,
): Promise<boolean> {
  for (let n = 0; ; n++) {
    const promised = await sumUnderWay(database, readPayerPrefix({ identity }), world.now())
    if (promised === 0n) return true
    const funds = await settler.readFunds()
    if (funds !== undefined && promised + payment.payload.value <= funds) return true
    if (n === waitsMax) return false
    await world.sleep(waitMs)
  }
}

/** The time past its end after which a payment takes nothing off a wallet any more, also where the chain is late. */
const lateMs = 3_600_000

/**
 * Sums, in atomic units, the payments of a payer whose money is asked for and may still come, by the start of their
 * identities. A transfer that the payer made is off its wallet already, and so is what was used where nobody can look at
 * it: such a one may stay open for good.
 */
async function sumUnderWay(database: Queryable, payer: string, nowMs: number): Promise<bigint> {
  const [row] = await database.query<{ sum: string }>(sql`
    SELECT coalesce(sum(amount), 0)::text AS sum FROM ${claims}
    WHERE state IN ('claimed', 'ready') AND transfer IS NULL AND identity > ${payer} AND identity < ${`${payer}~`}
      AND valid_before > ${Math.floor((nowMs - lateMs) / 1000)}::numeric`)
  return BigInt(row?.sum ?? 0)
}

function tryPreparing(
  { database, world }: Pick<PaymentPorts, 'database' | 'world'>,
  { claim, found, keeping, fee, unpaid }: PrepareOrder,
  seen: SeenFunds | undefined,
): Promise<'prepared' | 'short' | 'promised' | 'overtaken'> {
  return takeFromAccount(database, fee.account, async (tx, available) => {
    if (available < fee.amount) return 'short'
    // The account of a seller is always locked before the name of a payer.
    const [, isWithin] = await Promise.all([
      lockName(tx, `direct:${readPayerPrefix(claim)}`),
      isWithinFunds(tx, claim, { seen, nowMs: world.now() }),
    ])
    if (!isWithin) return 'promised'
    await unpaid.refuse(tx, claim, keeping.body.length)
    const isOurs =
      found === undefined
        ? await insertClaim(tx, claim, 'prepared')
        : await tryEvent({ database: tx }, found, { event: 'prepared', use: claim })
    if (!isOurs) return 'overtaken'
    // Another server of its seller was told that it is made. The claim is undone with this.
    const use = { identity: claim.identity, taker: claim.id, nowMs: world.now() }
    if (!(await takePayment(tx, use))) throw new Fault('PAYMENT_ALREADY_USED')
    await putReply(tx, claim.id, keeping)
    if (fee.amount > 0n) {
      const isHeld = await insertHold(tx, { id: claim.id, ...fee })
      // A payment that waits with its answer is never tried anew, and all else that was given up holds nothing.
      assert(isHeld, 'the share that is held is of this try')
    }
    return 'prepared'
  })
}
