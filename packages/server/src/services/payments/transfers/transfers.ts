import { limits } from '@tollbase/contract/limits'
import type { Logger } from 'pino'
import { assert, requirePresent } from '../../../base/assert.ts'
import { Fault, makeInvalidFault } from '../../../base/fault.ts'
import { Singleflight } from '../../../base/singleflight.ts'
import type { BookedTransfer } from '../../../projections/ledger-transfers.ts'
import type { Settlement } from '../../../x402/facilitator.ts'
import { listSigned } from '../../../x402/journal.ts'
import { getTransferName, type Treasury } from '../../../x402/treasury.ts'
import { takeFromAccount } from '../accounts/account-lock.ts'
import { makeTooLowFault } from '../payment-faults.ts'
import type { PaymentMethod, PaymentPorts } from '../payment-ports.ts'
import { findRestoredAt } from '../settling/network-pin.ts'
import { makePaidEntry, makeReturnedEntry, makeStartEntry } from './transfer-entries.ts'
import {
  cancelledReason,
  findTransfer,
  insertTransfer,
  listOpenTransfers,
  listTransfers,
  noteAttempt,
  type OutgoingTransfer,
  sumTransfers,
  type TransferCursor,
  type TransferKind,
  updateTransfer,
} from './transfer-store.ts'
import { refuseTooMany } from './withdrawal-bounds.ts'

export type TransferPorts = Pick<
  PaymentPorts,
  'database' | 'tenants' | 'world' | 'methods' | 'refuseFullDisk'
> & {
  readonly log: Pick<Logger, 'warn'>
}

/** A transfer that is asked for. `id` names it for ever: asked again, it is the same one. */
export type TransferOrder = {
  readonly id: string
  readonly kind: TransferKind
  readonly account: string
  readonly network: string
  readonly recipient: string
  readonly amount: bigint
  /** Atomic units that the account pays beside the amount; nothing where it is not given. */
  readonly fee?: bigint
  /** As many as its account has made within a day count. */
  readonly isBounded?: boolean
}

/** A transaction that was signed for a transfer, with its time. */
export type SignedTransfer = { readonly transaction: string; readonly atMs: bigint }

const intervalMs = 5_000
const pageSize = 50
/** A transfer that was reverted so often needs a person: its order is given back at its end. */
const triesMax = 5
const beginning: TransferCursor = { at: -1n, id: '' }

type PayingMethod = PaymentMethod & { readonly treasury: Treasury }

/**
 * Sends money out of the networks' own addresses: withdrawals of payers, payouts of sellers. The ledger takes the
 * money from its account before anything is sent; the chain moves it once; what the chain can never move any more is
 * given back. A crash at any step is continued from the row.
 */
export class Transfers {
  readonly #ports: TransferPorts
  readonly #busy = new Singleflight()
  readonly #running = new Set<Promise<void>>()
  #stopped = false

  constructor(ports: TransferPorts) {
    this.#ports = ports
  }

  /** Returns the networks on which money can be sent out, by id. */
  listNetworks(): readonly PaymentMethod[] {
    return this.#ports.methods.filter(({ treasury }) => treasury !== undefined)
  }

  /**
   * Takes the amount from the account, durably in the ledger, and begins to send it; whoever wants the outcome asks
   * `find`. 409 where the account has not so much, or where this service cannot pay out on the network.
   */
  async request(order: TransferOrder): Promise<OutgoingTransfer> {
    const known = await this.find(order.id)
    if (known === undefined) this.#check(order)
    const asked = known ?? (await this.#ask(order))
    if (!isSame(asked, order)) throw new Fault('CONFLICT', { message: 'This id has another order' })
    const debited = await this.#busy.run(asked.id, 'debit', () => this.#debit(asked))
    if (debited.state === 'debited') this.#advanceSoon(debited)
    return debited
  }

  find(id: string): Promise<OutgoingTransfer | undefined> {
    return findTransfer(this.#ports.database, id)
  }

  /** Lists the transfers of an account, newest first. */
  list(page: Parameters<typeof listTransfers>[1]): Promise<OutgoingTransfer[]> {
    return listTransfers(this.#ports.database, page)
  }

  /** Lists the transactions that were signed for a transfer, oldest first; one of them at most moves its money. */
  async listSigned({ id, tries }: OutgoingTransfer): Promise<SignedTransfer[]> {
    const attempts = Array.from({ length: Math.min(tries, triesMax) + 1 }, (_, at) => at)
    const names = attempts.map((attempt) => getTransferName(id, attempt))
    const rows = await listSigned(this.#ports.database, names)
    return rows
      .flatMap(({ hash, earlierHashes, createdAtMs, replacedAtMs }) =>
        [...earlierHashes, hash].map((transaction, at) => {
          const atMs = at === 0 ? createdAtMs : (replacedAtMs[at - 1] ?? createdAtMs)
          return { transaction, atMs }
        }),
      )
      .sort((one, other) => Number(one.atMs - other.atMs))
  }

  /** Sums what is on its way out of an account, and what payouts have brought out of it. */
  sum(account: string): ReturnType<typeof sumTransfers> {
    return sumTransfers(this.#ports.database, account)
  }

  /** Brings a transfer as far as it goes now. */
  async advance(id: string): Promise<void> {
    await this.#busy.run(id, 'advance', async () => {
      const found = await this.find(id)
      const debited = found?.state === 'asked' ? await this.#debit(found) : found
      if (debited?.state === 'cancelled') await this.#giveBack(debited)
      else if (debited?.state === 'debited' || debited?.state === 'sent') await this.#send(debited)
    })
  }

  /**
   * Cancels a transfer of which nothing was sent, and gives its money back; cancelled before, it is the same. 409 where
   * it is on its way, or has an outcome. The lock of its account decides between this and its sending.
   */
  async cancel(one: OutgoingTransfer): Promise<OutgoingTransfer> {
    const { database } = this.#ports
    const { id, account } = one
    // Its network may be open no more.
    const restoredAt = await findRestoredAt(database, one.network)
    // It may have been sent in the life that the backup does not know.
    if (restoredAt !== undefined && one.created_at_ms <= (restoredAt + 1n) * 1000n)
      throw new Fault('CONFLICT', {
        message: `${id} is older than the backup that this service was restored from, so it may have been sent`,
      })
    // A transfer that is asked for has no entry yet that another one could take back.
    if (one.state === 'asked') await this.#busy.run(id, 'debit', () => this.#debit(one))
    await takeFromAccount(database, account, (tx) =>
      updateTransfer(tx, { id, state: 'debited' }, { state: 'cancelled', reason: cancelledReason }),
    )
    const now = await this.#require(id)
    const isCancelled = now.state === 'cancelled' || isCancellation(now)
    if (!isCancelled)
      throw new Fault('CONFLICT', {
        message: `${id} cannot be cancelled: it may have been signed, or it has an outcome`,
      })
    await this.#busy.run(id, 'give back', () => this.#giveBack(now))
    return this.#require(id)
  }

  /** Books the money of a cancelled transfer back to its account; the ledger counts its first end alone. */
  async #giveBack({ id }: OutgoingTransfer): Promise<void> {
    const now = await this.#require(id)
    if (now.state !== 'cancelled') return
    const booked = await this.#findBooked(id)
    if (booked?.outcome == null) await this.#append(makeReturnedEntry(now, cancelledReason))
    const to = { state: 'returned', reason: cancelledReason } as const
    await updateTransfer(this.#ports.database, now, to)
  }

  /** Marks, under the lock of its account, that a transfer may be signed from now on; false where it is cancelled. */
  async #begin({ id, account }: OutgoingTransfer): Promise<boolean> {
    const { database } = this.#ports
    await takeFromAccount(database, account, (tx) =>
      updateTransfer(tx, { id, state: 'debited' }, { state: 'sent' }),
    )
    return (await this.#require(id)).state === 'sent'
  }

  async #require(id: string): Promise<OutgoingTransfer> {
    return requirePresent(await this.find(id), 'a transfer that was asked for')
  }

  /** Continues, at start and at intervals, what is without an outcome. The returned function ends it. */
  start(): () => Promise<void> {
    let round: Promise<void> | undefined
    const run = () => {
      round ??= this.#advanceAll()
        .catch((error: unknown) => this.#warn('transfers could not be read', error))
        .finally(() => {
          round = undefined
        })
    }
    run()
    const stop = this.#ports.world.every(intervalMs, run)
    return async () => {
      this.#stopped = true
      stop()
      await round
      await Promise.all(this.#running)
    }
  }

  #check({ network, recipient, amount }: TransferOrder): void {
    const { network: settings } = this.#requireMethod(network)
    const least = settings.withdrawalMinimum
    if (amount < least)
      throw makeInvalidFault('/amount', `must be at least ${least}: a transfer costs gas`)
    if (amount > limits.amountAtomicMax)
      throw makeInvalidFault('/amount', `must be at most ${limits.amountAtomicMax}`)
    if (
      recipient === settings.payTo ||
      recipient === settings.asset.address ||
      /^0x0+$/.test(recipient)
    )
      throw makeInvalidFault(
        '/destination',
        "must not be the zero address, the token's address or an address of this service",
      )
  }

  async #ask(order: TransferOrder): Promise<OutgoingTransfer> {
    const { database, world, tenants, refuseFullDisk } = this.#ports
    refuseFullDisk?.()
    const now = world.now()
    const { isBounded = false, fee = 0n, ...ordered } = order
    const one: OutgoingTransfer = {
      ...ordered,
      fee,
      unspent: false,
      state: 'asked',
      tries: 0,
      reason: null,
      transaction: null,
      valid_before: BigInt(Math.floor(now / 1000) + limits.transferSeconds),
      created_at_ms: BigInt(now),
    }
    // All that was credited until now counts.
    await tenants.system.chain.whenApplied(tenants.system.chain.head().height)
    const isNew = await takeFromAccount(database, order.account, async (tx, available) => {
      if ((await findTransfer(tx, order.id)) !== undefined) return false
      if (available < order.amount + fee) throw makeTooLowFault(available, order.amount + fee)
      const { schema } = tenants.system
      const { minimumPayment: least } = this.#requireMethod(order.network).network
      const asking = { ...order, fee, least, nowMs: now }
      const unspent = isBounded && (await refuseTooMany(tx, schema, asking))
      return insertTransfer(tx, { ...one, unspent })
    })
    return isNew ? one : requirePresent(await this.find(order.id), 'the transfer of this id')
  }

  /** Books that the money is on its way out, and waits until the ledger's tables have it. */
  async #debit(one: OutgoingTransfer): Promise<OutgoingTransfer> {
    const { database } = this.#ports
    // Read anew: another may have moved it since.
    const now = requirePresent(await this.find(one.id), 'a transfer that was asked for')
    if (now.state !== 'asked') return now
    if ((await this.#findBooked(one.id)) === undefined) await this.#append(makeStartEntry(one))
    await updateTransfer(database, now, { state: 'debited' })
    return requirePresent(await this.find(one.id), 'a transfer that was debited')
  }

  async #send(one: OutgoingTransfer): Promise<void> {
    const { database } = this.#ports
    const booked = await this.#findBooked(one.id)
    assert(booked !== undefined, 'what is sent out was taken from its account')
    assert(isBooked(one, booked), `the transfer ${one.id} is what the ledger has`)
    // Whoever booked it died. Where its chain has it no more, or by another transaction, the watch of moves judges.
    if (booked.outcome === 'transfer_paid') return this.#endPaid(one, booked)
    const { treasury } = this.#requireMethod(one.network)
    const order = {
      id: one.id,
      to: one.recipient,
      amount: one.amount,
      validBefore: one.valid_before,
    }
    const attempt = Math.min(one.tries, triesMax)
    const outcome = await treasury.transfer(order, attempt, () => this.#begin(one))
    const now = await this.#require(one.id)
    // Its canceller gives the money back; another process may have been first with the outcome.
    if (now.state !== 'debited' && now.state !== 'sent') return
    if (outcome.state === 'settled') {
      await this.#append(makePaidEntry(one, outcome.transaction))
      await this.#endPaid(now, await this.#findBooked(one.id))
    } else if (outcome.state === 'failed' && outcome.final) {
      const { reason } = outcome
      if (booked.outcome === null) await this.#append(makeReturnedEntry(one, reason))
      await updateTransfer(database, now, { state: 'returned', reason })
    } else await this.#noteOpen(one, outcome)
  }

  /** Ends a transfer as the ledger has it: of two processes with two transactions, the first one's entry counts. */
  async #endPaid(one: OutgoingTransfer, booked: BookedTransfer | undefined): Promise<void> {
    const transaction = requirePresent(booked?.transaction, 'the transaction of a paid transfer')
    await updateTransfer(this.#ports.database, one, { state: 'paid', transaction })
  }

  async #noteOpen(one: OutgoingTransfer, { reason }: Exclude<Settlement, { state: 'settled' }>) {
    const isReverted = reason === 'transaction_reverted'
    const isOver = isReverted && one.tries < triesMax
    await noteAttempt(this.#ports.database, one, { reason, isOver })
    if (isReverted) this.#warn('a transfer was reverted', reason, one.id)
  }

  async #findBooked(id: string) {
    const { database, tenants } = this.#ports
    const { chain, ledger, schema } = tenants.system
    await chain.whenApplied(chain.head().height)
    return ledger.findTransfer(database, schema, id)
  }

  async #append(entry: ReturnType<typeof makeStartEntry>): Promise<void> {
    const { chain } = this.#ports.tenants.system
    await chain.append([entry], { isOwed: true })
    await chain.whenApplied(chain.head().height)
  }

  async #advanceAll(): Promise<void> {
    for (let after: TransferCursor | undefined = beginning; after !== undefined; ) {
      const page = await listOpenTransfers(this.#ports.database, { after, limit: pageSize })
      if (this.#stopped) return
      await Promise.all(page.map((one) => this.#advanceSafely(one.id)))
      const last: OutgoingTransfer | undefined = page.length < pageSize ? undefined : page.at(-1)
      after = last && { at: last.created_at_ms, id: last.id }
    }
  }

  #advanceSoon({ id }: OutgoingTransfer): void {
    if (this.#stopped) return
    const run = this.#advanceSafely(id).finally(() => this.#running.delete(run))
    this.#running.add(run)
  }

  async #advanceSafely(id: string): Promise<void> {
    await this.advance(id).catch((error: unknown) => {
      this.#warn('a transfer could not be continued; trying again', error, id)
    })
  }

  #requireMethod(network: string): PayingMethod {
    const method = this.#ports.methods.find((one) => one.network.id === network)
    const treasury = method?.treasury
    if (method !== undefined && treasury !== undefined) return { ...method, treasury }
    throw new Fault('TRANSFERS_NOT_CONFIGURED', {
      message: `This service does not hold the key of its address on ${network}: its operator must give networks[].pay_to_key_file`,
    })
  }

  #warn(text: string, error: unknown, transfer?: string): void {
    this.#ports.log.warn({ ...(transfer && { transfer }), error: String(error) }, text)
  }
}

/** Returns whether its money is on the account again because it was cancelled. */
export function isCancellation({ state, reason }: OutgoingTransfer): boolean {
  return state === 'returned' && reason === cancelledReason
}

/** Returns whether the row says what was booked: the row alone could be changed in the database. */
function isBooked(one: OutgoingTransfer, booked: BookedTransfer): boolean {
  const isOrdered = isSame(one, { ...booked, amount: BigInt(booked.amount) })
  return isOrdered && one.fee === BigInt(booked.fee) && one.valid_before === booked.valid_before
}

type Ordered = Pick<TransferOrder, 'account' | 'network' | 'recipient' | 'amount'> & {
  readonly kind: string
}

function isSame(known: OutgoingTransfer, order: Ordered): boolean {
  const { kind, account, network, recipient, amount } = order
  return (
    known.kind === kind &&
    known.account === account &&
    known.network === network &&
    known.recipient === recipient &&
    known.amount === amount
  )
}
