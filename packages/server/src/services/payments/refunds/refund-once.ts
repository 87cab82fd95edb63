import type { Logger } from 'pino'
import { requirePresent } from '../../../base/assert.ts'
import { Fault } from '../../../base/fault.ts'
import { formatUnits } from '../../../base/format-usd.ts'
import type { Database } from '../../../database/database.ts'
import { sql } from '../../../database/sql.ts'
import { toApplicationAccount } from '../../../projections/ledger-entry.ts'
import { findRefund, type Refund } from '../../../projections/refunds.ts'
import type { Uses } from '../../call.ts'
import { takeFromAccount } from '../accounts/account-lock.ts'
import { findHold, holds, insertHold, printHoldDeletion } from '../accounts/holds.ts'
import { makeTooLowFault } from '../payment-faults.ts'
import { checkRefund, type RefundOrder } from './check-refund.ts'
import { makeRefundEntry } from './refund-entries.ts'
import { refuseUnpaid } from './refuse-unpaid.ts'

type RefundParts = Uses<'database' | 'tenants'>

/**
 * Gives a sale, or a part of it, back to its buyer's balance, once: asked again it is the same refund. The amount is
 * held on the seller's balance before its entry is written, so it is never below zero, and a refund that a crash cut
 * off is brought to its end.
 */
export async function refundOnce(parts: RefundParts, order: RefundOrder): Promise<Refund> {
  const { database, tenants } = parts
  const { chain, schema } = tenants.system
  await chain.whenApplied(chain.head().height)
  const { app, paymentId } = order
  const amount = await checkRefund(database, order)
  const id = formatRefundId(order)
  const account = toApplicationAccount(app)
  await takeFromAccount(database, account, async (tx, available) => {
    // In this order: a hold ends once its refund is in the tables, and seen the other way round both could be missed.
    const held = await findHold(tx, id)
    const booked = await findRefund(tx, schema, id)
    const known = booked === undefined ? held : BigInt(booked.amount)
    if (known !== undefined && known !== amount)
      throw new Fault('CONFLICT', {
        message: `The sale ${paymentId} was refunded before: ${formatUnits(known)}; a sale is refunded once`,
        details: { refunded: String(known) },
      })
    if (known !== undefined) return
    await refuseUnpaid(tx, tenants.system, paymentId)
    if (available < amount) throw makeTooLowFault(available, amount)
    await insertHold(tx, { id, account, amount })
  })
  await bookRefund(parts, { id, amount })
  return requirePresent(await findRefund(database, schema, id), 'the refund that is booked')
}

/** Writes the entry of a refund that is held; the ledger counts it once, so it may be written again. */
async function bookRefund(
  { database, tenants }: RefundParts,
  { id, amount }: { readonly id: string; readonly amount: bigint },
): Promise<void> {
  const { chain, ledger, schema } = tenants.system
  if ((await findRefund(database, schema, id)) === undefined) {
    const { app, paymentId } = parseRefundId(id)
    const sale = requirePresent(await ledger.findSale(database, schema, paymentId), 'the sale')
    const { payer, network }: { payer: string; network: string } = JSON.parse(sale.body)
    const entry = makeRefundEntry({ id, paymentId, app, payer, amount, network })
    await chain.append([entry], { isOwed: true })
    await chain.whenApplied(chain.head().height)
  }
  // It counts twice for a moment, and never not at all.
  await database.execute(printHoldDeletion(sql`(SELECT ${id} AS id) AS ended`))
}

/** Brings refunds to their end that were cut off. One that cannot be is told of, and keeps no other one waiting. */
export async function endRefunds(
  parts: RefundParts,
  onFailure: (error: unknown, refund: string) => void,
): Promise<void> {
  for (let after: string | undefined = ''; after !== undefined; ) {
    const page: HeldRefund[] = await listHeld(parts.database, after)
    for (const held of page)
      await bookRefund(parts, held).catch((error: unknown) => onFailure(error, held.id))
    after = page.length < pageSize ? undefined : page.at(-1)?.id
  }
}

const intervalMs = 30_000
const pageSize = 100

/** Brings refunds to their end that were cut off: now, and at intervals. The returned function ends it. */
export function startRefunds(
  parts: RefundParts & Uses<'world'>,
  log: Pick<Logger, 'warn'>,
): () => Promise<void> {
  let round: Promise<void> | undefined
  const warn = (error: unknown, refund?: string) => {
    const about = refund === undefined ? {} : { refund }
    log.warn({ ...about, error: String(error) }, 'a refund is not booked yet; trying again')
  }
  const run = () => {
    round ??= endRefunds(parts, warn)
      .catch(warn)
      .finally(() => {
        round = undefined
      })
  }
  const stop = parts.world.every(intervalMs, run)
  run()
  return async () => {
    stop()
    await round
  }
}

function formatRefundId({ app, paymentId }: Pick<RefundOrder, 'app' | 'paymentId'>): string {
  return `refund_${paymentId.slice('pay_'.length)}_${app}`
}

function parseRefundId(id: string): { readonly app: string; readonly paymentId: string } {
  const [, hex = '', app = ''] = /^refund_([0-9a-f]{32})_(.+)$/.exec(id) ?? []
  return { app, paymentId: `pay_${hex}` }
}

type HeldRefund = { readonly id: string; readonly amount: bigint }

async function listHeld(database: Database, after: string): Promise<HeldRefund[]> {
  const rows = await database.query<{ id: string; amount: string }>(
    sql`SELECT id, amount::text AS amount FROM ${holds} WHERE id LIKE 'refund\\_%' AND id > ${after}::text
      ORDER BY id LIMIT ${pageSize}`,
  )
  return rows.map(({ id, amount }) => ({ id, amount: BigInt(amount) }))
}
