import type { Fault } from '../../../base/fault.ts'
import type { Queryable } from '../../../database/database.ts'
import {
  findSpendingFault,
  formatSpendingDay,
  type KeySpending,
} from '../budgets/check-spending.ts'
import { readPrepaid, readSpent } from '../budgets/read-spent.ts'
import { formatUse, listFreeChannels } from '../channels/channel-register.ts'
import type { NamedUse } from '../channels/voucher-payment.ts'
import { type Claim, getPayerAccount } from '../claims/claim-store.ts'
import type { PaymentPorts } from '../payment-ports.ts'
import type { Paid } from '../purchase.ts'
import { readAllAvailable } from './account-lock.ts'

/** A claim that is to be charged to an account, at most its cap. */
export type Taking = {
  readonly claim: Claim
  readonly paid: Pick<Paid, 'spending' | 'channel'>
}

type Ports = Pick<PaymentPorts, 'tenants' | 'world'>

/** The money of an account as it was read, with what its keys spent and its channel's place, less what was taken since. */
export class AccountBook {
  #available: bigint
  /** Undefined for an account that spends all that it has. */
  #prepaid: bigint | undefined
  /** By budget, and by budget and day. */
  readonly #spent = new Map<string, bigint>()
  /** The use of its channel that is free. */
  #freeUse: string | undefined

  private constructor(available: bigint, prepaid: bigint | undefined) {
    this.#available = available
    this.#prepaid = prepaid
  }

  /** Reads the books of the accounts of these takings, by statements that travel together. */
  static async read(
    database: Queryable,
    { tenants }: Ports,
    takings: readonly Taking[],
  ): Promise<ReadonlyMap<string, AccountBook>> {
    const spendings = takings.flatMap(({ paid }) => paid.spending ?? [])
    const uses = takings.flatMap(({ paid }) => paid.channel?.use ?? [])
    const accounts = takings.map(({ claim }) => getPayerAccount(claim))
    const [available, spent, prepaid, free] = await Promise.all([
      readAllAvailable(database, accounts),
      readSpent(database, spendings),
      readPrepaid(database, tenants, spendings),
      listFreeChannels(database, uses),
    ])
    const books = new Map(
      [...available].map(([name, amount]) => [name, new AccountBook(amount, prepaid.get(name))]),
    )
    for (const { claim, paid } of takings) {
      const book = books.get(getPayerAccount(claim))
      if (book !== undefined) book.#note(paid, { spent, free })
    }
    return books
  }

  /** Keeps what an older book of the same version knows of other budgets. */
  keepFrom(older: AccountBook): void {
    for (const [name, amount] of older.#spent)
      if (!this.#spent.has(name)) this.#spent.set(name, amount)
    this.#prepaid ??= older.#prepaid
  }

  /** The amount that takings without a budget may have. */
  get available(): bigint {
    return this.#available
  }

  /** Says whether all is known that decides on this taking. */
  knows({ spending, channel }: Taking['paid']): boolean {
    if (channel !== undefined) return this.#freeUse === formatUse(channel.use)
    if (spending === undefined) return true
    const isOfPrepaid = spending.paying.account.startsWith('app:')
    const names = [spending.paying.budget, formatSpendingDay(spending)]
    return (
      names.every((name) => this.#spent.has(name)) && (!isOfPrepaid || this.#prepaid !== undefined)
    )
  }

  /**
   * Takes `amount`, where the cap is not more than there is, or may be spent; gives why not otherwise. An account that owes
   * more than it has gets the things that a quota or a pass makes free, too.
   */
  take(ports: Ports, { claim, paid }: Taking, amount: bigint): Claim | 'short' | Fault {
    if (claim.cap > 0n && this.#available < claim.cap) return 'short'
    const { channel, spending } = paid
    // A channel pays for one request at a time.
    if (channel !== undefined && this.#freeUse !== formatUse(channel.use)) return 'short'
    const fault = spending && this.#spend(ports, spending, { cap: claim.cap, amount })
    if (fault !== undefined) return fault
    if (channel !== undefined) this.#freeUse = undefined
    this.#available -= amount
    return claim
  }

  /** Notes that a sale was charged to the channel, which is free again. */
  moveChannel({ id, base, uses }: NamedUse, charge: bigint): void {
    this.#freeUse = formatUse({ id, base: base + charge, uses: uses + 1 })
  }

  #note(
    { spending, channel }: Taking['paid'],
    read: { readonly spent: ReadonlyMap<string, bigint>; readonly free: ReadonlySet<string> },
  ): void {
    if (spending !== undefined)
      for (const name of [spending.paying.budget, formatSpendingDay(spending)])
        this.#spent.set(name, read.spent.get(name) ?? 0n)
    const use = channel && formatUse(channel.use)
    if (use !== undefined && read.free.has(use)) this.#freeUse = use
  }

  #spend(
    ports: Ports,
    spending: KeySpending,
    { cap, amount }: { readonly cap: bigint; readonly amount: bigint },
  ): Fault | undefined {
    const { budget } = spending.paying
    const today = formatSpendingDay(spending)
    const has = (name: string) => this.#spent.get(name) ?? 0n
    const sums = { spent: has(budget), spentToday: has(today), prepaid: this.#prepaid }
    const fault = findSpendingFault(ports, spending, { ...sums, amount: cap })
    if (fault !== undefined) return fault
    this.#spent.set(budget, sums.spent + amount)
    this.#spent.set(today, sums.spentToday + amount)
    if (sums.prepaid !== undefined) this.#prepaid = sums.prepaid - amount
    return undefined
  }
}
