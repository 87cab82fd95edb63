import type { SoldUse } from '@tollbase/verify/sale-details'
import type { Queryable } from '../../../database/database.ts'
import { sql } from '../../../database/sql.ts'
import { noSize, type Size } from '../../../model/compute-cost.ts'
import {
  computeMeteredCost,
  listPeriods,
  type MeterState,
  reserveUses,
  sumUses,
  type Usage,
} from '../../../model/compute-metered-cost.ts'
import type { Payee, Terms } from '../purchase.ts'
import { findUse, readUsed } from './use-store.ts'

/** A purchase under the lock of its buyer's account. */
export type Metered = {
  /** The claim's id; empty where it is yet to be made. */
  readonly id: string
  /** The buyer's account. */
  readonly account: string
  readonly terms: Pick<Terms, 'prices' | 'payees'>
  readonly nowMs: number
}

/** The most that a purchase can cost its buyer, and the uses to keep for it. */
export type MeteredCap = {
  readonly cap: bigint
  readonly atMs: number
  readonly uses: readonly SoldUse[]
}

/** Computes the most that the purchase can cost this buyer, less what quotas and passes take off it for certain. */
export async function computeMeteredCap(
  tx: Queryable,
  metered: Metered,
  most: readonly (Size | null)[],
): Promise<MeteredCap> {
  const { terms, nowMs } = metered
  const states = await readStates(tx, metered)
  let cap = 0n
  const uses: SoldUse[] = []
  terms.prices.forEach((price, at) => {
    const [part, state] = [most[at], states[at] ?? makeEmptyState(nowMs)]
    if (part === null) return
    const size = part ?? noSize
    cap += computeMeteredCost(price, size, state).cost
    uses.push(...describeUses(terms.payees[at], reserveUses(price, size, state)))
  })
  return { cap, atMs: nowMs, uses }
}

/** The charge for each part, and the uses of it. */
export type MeteredSale = {
  readonly due: readonly bigint[]
  readonly uses?: readonly SoldUse[]
}

/**
 * Computes what the answer costs this buyer. It counts at the time at which it was held, so that neither the end of a
 * month nor that of a pass makes it dearer than it was then.
 */
export async function computeMeteredSale(
  tx: Queryable,
  metered: Metered,
  sizes: readonly (Size | null)[],
): Promise<MeteredSale & { readonly atMs: number }> {
  const { terms } = metered
  const held = await findUse(tx, metered.id)
  const nowMs = held?.atMs ?? metered.nowMs
  const states = await readStates(tx, { ...metered, nowMs })
  const uses: SoldUse[] = []
  const due = terms.prices.map((price, at) => {
    const size = sizes[at]
    if (size === null) return 0n
    const state = states[at] ?? makeEmptyState(nowMs)
    const part = computeMeteredCost(price, size ?? noSize, state)
    uses.push(...describeUses(terms.payees[at], part.uses))
    return part.cost
  })
  return { due, uses, atMs: nowMs }
}

/**
 * Returns true if the buyer may have a discount: who has paid none of these sellers once, and has no pass of theirs, pays
 * what a stranger pays.
 */
export async function isKnownBuyer(
  database: Queryable,
  {
    account,
    terms,
    nowMs,
  }: Pick<Metered, 'account' | 'nowMs'> & { readonly terms: Pick<Terms, 'payees'> },
): Promise<boolean> {
  const buyer = account.replace(/^wallet:/, '')
  const sellers = terms.payees.map((payee) => payee.account)
  const apps = sellers.map((seller) => seller.replace(/^app:/, ''))
  const [row] = await database.query<{ known: boolean }>(sql`
    SELECT EXISTS (SELECT 1 FROM system.sold_total WHERE app = ANY(${apps}::text[]) AND total_by = 'buyer'
        AND key = ${buyer} AND gross > 0)
      OR EXISTS (SELECT 1 FROM system.pass WHERE buyer = ${buyer} AND account = ANY(${sellers}::text[])
        AND until_ms > ${nowMs}::int8) AS known`)
  return row?.known ?? false
}

function makeEmptyState(nowMs: number): MeterState {
  return { nowMs, hasPass: false, hasPaid: false, used: [] }
}

/** Reads what the buyer had of each part, in one statement and so one snapshot; others of this account wait. */
async function readStates(
  tx: Queryable,
  { id, account: buyerAccount, terms, nowMs }: Metered,
): Promise<readonly MeterState[]> {
  const buyer = buyerAccount.replace(/^wallet:/, '')
  const periods = terms.prices.flatMap(({ discounts }) =>
    discounts === undefined ? [] : listPeriods(discounts, nowMs),
  )
  const used = await readUsed(tx, { id, account: buyerAccount, buyer, periods })
  return Promise.all(
    terms.prices.map(async ({ discounts }, at): Promise<MeterState> => {
      const { account = '', item } = terms.payees[at] ?? {}
      if (discounts === undefined || item === undefined) return makeEmptyState(nowMs)
      const { kind, name } = item
      // A pass that has not ended has begun, or follows one that has; its sale may have been written by a faster clock.
      const [row] = await tx.query<{ pass: boolean; paid: boolean }>(sql`
        SELECT EXISTS (SELECT 1 FROM system.pass WHERE buyer = ${buyer} AND account = ${account} AND item_kind = ${kind}
            AND item = ${name} AND until_ms > ${nowMs}::int8) AS pass,
          EXISTS (SELECT 1 FROM system.sold_total WHERE app = ${account.replace(/^app:/, '')} AND total_by = 'buyer'
            AND key = ${buyer} AND gross > 0) AS paid`)
      const own = used.filter(
        (one) => one.account === account && one.kind === kind && one.name === name,
      )
      return {
        nowMs,
        hasPass: row?.pass ?? false,
        hasPaid: row?.paid ?? false,
        used: sumUses(own.map(({ usage }) => usage)),
      }
    }),
  )
}

function describeUses(payee: Payee | undefined, uses: readonly Usage[]): readonly SoldUse[] {
  const { account = '', item } = payee ?? {}
  if (item === undefined) return []
  return uses.map(({ period, paid, free }) => ({
    ...{ account, kind: item.kind, name: item.name, period },
    ...{ request: String(paid.request), row: String(paid.row), kb: String(paid.kb) },
    ...{ free_request: String(free.request), free_row: String(free.row), free_kb: String(free.kb) },
  }))
}
