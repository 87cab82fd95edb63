import { BlockStore } from '../../packages/server/src/chain/block-store.ts'
import { parseBlock } from '../../packages/server/src/chain/parse-block.ts'
import type { Database } from '../../packages/server/src/database/database.ts'
import {
  type ChannelBooks,
  type ChannelFacts,
  makeChannelBooks,
  noteChannelFact,
  noteVoucher,
} from './channel-books.ts'

/** A ledger entry's body. */
export type Body = ChannelFacts & {
  /** The amounts as they are booked. */
  readonly text: string
  readonly kind:
    | 'deposit'
    | 'sale'
    | 'refund'
    | 'withdrawal'
    | 'payout'
    | 'transfer_paid'
    | 'transfer_returned'
    | 'reversal'
    | 'storage_fee'
    | 'release'
    | 'channel_seen'
    | 'channel_adopted'
    | 'channel_settled'
  readonly payment_id: string
  /** The payment whose sale a refund is of. */
  readonly sale?: string
  readonly identity: string
  readonly amount: string
  /** The sums that a reversal took from its account, and that the operator lost. */
  readonly moved: string
  readonly lost: string
  /** The day of a fee for storage, in UTC; what was taken for it, and what is owed after it. */
  readonly day: string
  readonly paid: string
  readonly owed: string
  readonly deposited: string
  readonly payer: string
  /** Whose discounts count, where it is not the payer. */
  readonly buyer?: string
  readonly payee: string
  readonly network: string
  readonly asset: string
  readonly transaction: string | null
  readonly paid_from?: 'balance' | 'channel'
  readonly paid_to?: string
  readonly app: string
  readonly operation: string
  readonly change: string
  readonly quote_hash: string | null
  readonly as_of: { readonly block_height: number; readonly sequence: number } | null
  readonly request_hash: string
  readonly result_hash: string
  readonly delivered_at: string
  readonly row_count: number
  /** Units that were paid for in a period, and those that were free, of what has tiers or quotas; decimal strings. */
  readonly uses?: readonly ({ readonly period: string } & Readonly<
    Record<'row' | 'free_row' | 'request' | 'free_request', string>
  >)[]
  readonly recipient: string
  /** The name of the money that a key spent. */
  readonly budget?: string
  readonly postings: readonly { readonly account: string; readonly amount: string }[]
}

export type Reversed = {
  readonly body: Body
  /** Its place among all entries. */
  readonly nth: number
  /** The balances of all accounts just before it. */
  readonly before: ReadonlyMap<string, bigint>
}

/**
 * The books that the entries of the system chain give by the booking rules alone: no tables, no code of the ledger.
 */
export type Books = {
  readonly deposits: Map<string, Body>
  readonly sales: Map<string, Body>
  /** Transfers of ours by id: the entry that began it, and the one that says what became of it. */
  readonly transfers: Map<string, { readonly start: Body; readonly end?: Body }>
  /** The moves that were booked and are not on their chain, by the id of the payment or of the transfer. */
  readonly reversals: Map<string, Reversed>
  /** By id. */
  readonly refunds: Map<string, Body>
  /** The fees for storage in their order. */
  readonly fees: readonly Body[]
  readonly channels: ChannelBooks
  readonly balances: Map<string, bigint>
  /** By account, the place of the last entry that took from it, reversals left out. */
  readonly takenAt: Map<string, number>
}

export async function readBodies(database: Database): Promise<Body[]> {
  const entries = await readEntries(database, 'system')
  return entries
    .filter(({ type }) => type === 'ledger')
    .map(({ body }) => ({ ...JSON.parse(body), text: body }))
}

/**
 * Makes the books. The first of several deposits of one settled payment counts, the first of several sales of a
 * payment that was deposited, or that its payer's balance was charged for, what goes on from the books of a channel,
 * the first refund of a sale by each of its sellers, the first fee for a day's storage, the first start of a transfer, the first end of one that was
 * started, the first reversal of what was deposited or paid, and the first release of what is held: whichever of a release
 * and a reversal comes second does not count.
 */
export function makeBooks(bodies: readonly Body[]): Books {
  const deposits = new Map<string, Body>()
  const sales = new Map<string, Body>()
  const transfers = new Map<string, { start: Body; end?: Body }>()
  const refunds = new Map<string, Body>()
  const reversals = new Map<string, Reversed>()
  const fees: Body[] = []
  const channels = makeChannelBooks()
  const balances = new Map<string, bigint>()
  const takenAt = new Map<string, number>()
  const sold = new Set<string>()
  /** Notes what the entry says; false where it does not count. */
  const note = (body: Body, nth: number): boolean => {
    const { kind, identity, payment_id: id, paid_from } = body
    const transfer = transfers.get(id)
    const heldOn = findHeldOn(body)
    switch (kind) {
      case 'deposit':
        if (deposits.has(identity)) return false
        deposits.set(identity, body)
        return true
      case 'sale':
        if (sold.has(identity)) return false
        if (paid_from === undefined && deposits.get(identity)?.payment_id !== id) return false
        if (paid_from === 'channel' && !noteVoucher(channels, body)) return false
        sold.add(identity)
        sales.set(id, body)
        return true
      case 'refund':
        if (refunds.has(id)) return false
        refunds.set(id, body)
        return true
      case 'withdrawal':
      case 'payout':
        if (transfer !== undefined) return false
        transfers.set(id, { start: body })
        return true
      case 'transfer_paid':
      case 'transfer_returned':
        if (transfer === undefined || transfer.end !== undefined) return false
        transfer.end = body
        return true
      case 'reversal':
        if (reversals.has(id)) return false
        if (deposits.get(identity)?.payment_id !== id && transfer?.end?.kind !== 'transfer_paid')
          return false
        if (heldOn !== undefined && (balances.get(heldOn) ?? 0n) <= 0n) return false
        reversals.set(id, { body, nth, before: new Map(balances) })
        return true
      case 'release':
        return heldOn !== undefined && (balances.get(heldOn) ?? 0n) > 0n
      case 'storage_fee':
        if (fees.some(({ app, day }) => app === body.app && day === body.day)) return false
        fees.push(body)
        return true
      default:
        return noteChannelFact(channels, body)
    }
  }
  for (const [nth, body] of bodies.entries()) {
    if (!note(body, nth)) continue
    for (const { account, amount } of body.postings) {
      balances.set(account, (balances.get(account) ?? 0n) + BigInt(amount))
      if (BigInt(amount) < 0n && body.kind !== 'reversal') takenAt.set(account, nth)
    }
  }
  return { deposits, sales, transfers, refunds, reversals, fees, channels, balances, takenAt }
}

/** All entries of a chain, in their order. */
export async function readEntries(database: Database, schema: string) {
  const store = new BlockStore(database, schema)
  const last = (await store.last())?.height ?? 0
  const bounds = { from: 1, to: last, blocksMax: 100_000, bytesMax: 1 << 30 }
  const rows = last === 0 ? [] : await store.blocks(bounds)
  return rows.flatMap((row) =>
    parseBlock(row).entries.flatMap((entry, sequence) => {
      if (entry === undefined) return []
      const { header, body } = entry
      return [{ height: row.height, sequence, type: header.type, header, body }]
    }),
  )
}

/** Lists the texts that are expected and not found as often, and the other way round. */
export function listDifferences(
  what: string,
  given: { expected: readonly string[]; found: readonly string[] },
): string[] {
  const found = new Map<string, number>()
  for (const one of given.found) found.set(one, (found.get(one) ?? 0) + 1)
  const problems: string[] = []
  for (const one of given.expected) {
    const count = found.get(one) ?? 0
    if (count === 0) problems.push(`${what}: ${one} is missing`)
    else found.set(one, count - 1)
  }
  for (const [one, count] of found)
    if (count > 0) problems.push(`${what}: ${one} is ${count} times too many`)
  return problems
}

/** Finds the account on which an entry holds money for the operator's decision, or from which it takes such money. */
export function findHeldOn({ postings }: Body): string | undefined {
  return postings.find(({ account }) => account.startsWith('held:'))?.account
}

/** Finds the account that the entry which begins a transfer takes the money from. */
export function findPayingAccount({ postings, payment_id: id }: Body): string {
  const taken = postings.find(({ amount }) => amount.startsWith('-'))
  if (taken === undefined) throw new Error(`${id} takes nothing from any account`)
  return taken.account
}
