import { requirePresent } from '../../../base/assert.ts'
import type { Fault } from '../../../base/fault.ts'
import type { Queryable } from '../../../database/database.ts'
import type { Size } from '../../../model/compute-cost.ts'
import {
  findSpendingFault,
  formatSpendingDay,
  type KeySpending,
  readPrepaid,
  readSpent,
} from '../budgets/check-spending.ts'
import { formatUse, listFreeChannels } from '../channels/channel-register.ts'
import type { NamedUse } from '../channels/voucher-payment.ts'
import { type Claim, getPayerAccount } from '../claims/claim-store.ts'
import type { Keeping } from '../claims/reply-store.ts'
import type { Paid, PaymentPorts } from '../purchase.ts'
import type { Terms } from '../quotes/terms.ts'
import { readAllAvailable } from './account-lock.ts'

/** A claim whose cap is to be held on its payer's account. */
export type HoldOrder = {
  /** As it is to be. */
  readonly claim: Claim
  /** As it is, where it was made before. */
  readonly found: Claim | undefined
  readonly terms: Terms
  /** The answer that is kept with it, where that was made first. */
  readonly answer: Keeping | undefined
  readonly paid: Pick<Paid, 'mostUnder' | 'spending' | 'channel'>
  /** The largest sizes of what is metered. */
  readonly most?: readonly (Size | null)[]
}

type Ports = Pick<PaymentPorts, 'tenants' | 'world'>

/** The money of the accounts, keys and channels of a batch, read under their locks, less what its purchases took before. */
export class HoldFacts {
  readonly #ports: Ports
  readonly #available: Map<string, bigint>
  readonly #prepaid: Map<string, bigint>
  /** By budget, and by budget and day. */
  readonly #spent: Map<string, bigint>
  /** The uses of channels that are free. */
  readonly #channels: Set<string>

  private constructor(
    ports: Ports,
    read: {
      readonly available: ReadonlyMap<string, bigint>
      readonly prepaid: ReadonlyMap<string, bigint>
      readonly spent: ReadonlyMap<string, bigint>
      readonly channels: ReadonlySet<string>
    },
  ) {
    this.#ports = ports
    this.#available = new Map(read.available)
    this.#prepaid = new Map(read.prepaid)
    this.#spent = new Map(read.spent)
    this.#channels = new Set(read.channels)
  }

  /** Reads all that these orders need, by statements that travel together. */
  static async read(tx: Queryable, ports: Ports, orders: readonly HoldOrder[]): Promise<HoldFacts> {
    const spendings = orders.flatMap(({ paid }) => paid.spending ?? [])
    const uses = orders.flatMap(({ paid }) => paid.channel?.use ?? [])
    const [available, spent, prepaid, channels] = await Promise.all([
      readAllAvailable(
        tx,
        orders.map(({ claim }) => getPayerAccount(claim)),
      ),
      readSpent(tx, spendings),
      readPrepaid(tx, ports.tenants, spendings),
      listFreeChannels(tx, uses),
    ])
    return new HoldFacts(ports, { available, spent, prepaid, channels })
  }

  /** Takes what a purchase may cost; gives why not where that is too much. */
  take({ claim, paid }: Pick<HoldOrder, 'claim' | 'paid'>): Claim | 'short' | Fault {
    const account = getPayerAccount(claim)
    const available = requirePresent(this.#available.get(account), 'what the account has')
    if (available < claim.cap) return 'short'
    if (paid.channel !== undefined && !this.#takeChannel(paid.channel.use)) return 'short'
    const fault = paid.spending && this.#spend(paid.spending, claim.cap)
    if (fault !== undefined) return fault
    this.#available.set(account, available - claim.cap)
    return claim
  }

  /** A channel pays for one request at a time. */
  #takeChannel(use: NamedUse): boolean {
    return this.#channels.delete(formatUse(use))
  }

  #spend(spending: KeySpending, amount: bigint): Fault | undefined {
    const { budget, account } = spending.paying
    const today = formatSpendingDay(spending)
    const has = (name: string) => this.#spent.get(name) ?? 0n
    const sums = { spent: has(budget), spentToday: has(today), prepaid: this.#prepaid.get(account) }
    const fault = findSpendingFault(this.#ports, spending, { ...sums, amount })
    if (fault !== undefined) return fault
    this.#spent.set(budget, sums.spent + amount)
    this.#spent.set(today, sums.spentToday + amount)
    if (sums.prepaid !== undefined) this.#prepaid.set(account, sums.prepaid - amount)
    return undefined
  }
}
