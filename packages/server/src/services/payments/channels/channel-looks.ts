import { chooseLarger } from '../../../base/bigint.ts'
import { Gatherer } from '../../../database/gatherer.ts'
import type { ChannelRow } from '../../../projections/channel-tables.ts'
import type { Voucher } from '../../../x402/channels/channel.ts'
import type { PaymentPorts } from '../payment-ports.ts'
import { type ChannelLook, readChannelLooks } from './channel-register.ts'

/** Channels that are remembered. */
const channelsMax = 10_000

type Remembered = {
  readonly channel: ChannelRow
  readonly mostUsed: bigint
  /** The news of channels when it was sold to. */
  readonly channelNews: number
}

/**
 * Looks at channels as payments find them. One that this process sold to last is remembered as its sale left it, so that
 * the next voucher waits for no table. Memory decides nothing: the sale desk sells only where nobody else has taken from
 * the channel's account, and all else forgets it.
 */
export class ChannelLooks {
  readonly #ports: Pick<PaymentPorts, 'tenants'>
  readonly #reads: Gatherer<Voucher, ChannelLook>
  readonly #known = new Map<string, Remembered>()

  constructor(ports: Pick<PaymentPorts, 'database' | 'tenants'>) {
    this.#ports = ports
    this.#reads = new Gatherer((vouchers) => readChannelLooks(ports.database, vouchers))
  }

  /** Looks at the channel with all that was appended until now: the sale before this one holds it no more. */
  async look(voucher: Voucher): Promise<ChannelLook> {
    const { chain, ledger } = this.#ports.tenants.system
    const known = this.#known.get(voucher.channelId)
    const isCurrent = known?.channelNews === ledger.channelNews
    // A voucher that may have been used before is looked up.
    if (known !== undefined && isCurrent && voucher.maxClaimable > known.mostUsed)
      return { ...known, isHeld: false, usedFor: undefined }
    await chain.whenApplied(chain.head().height)
    return this.#reads.add(voucher)
  }

  /** Remembers a channel after a sale that is in the log. */
  noteSale(
    { channel, mostUsed }: { readonly channel: ChannelRow; readonly mostUsed: bigint },
    { voucher, charge }: { readonly voucher: Voucher; readonly charge: bigint },
  ): void {
    const { maxClaimable, signature } = voucher
    const sold = {
      ...channel,
      ...{
        max_claimable: maxClaimable,
        signature,
        last_base: channel.charged,
        last_charge: charge,
      },
      ...{ charged: channel.charged + charge, uses: channel.uses + 1 },
    }
    this.forget(channel.id)
    this.#known.set(channel.id, {
      channel: sold,
      mostUsed: chooseLarger(maxClaimable, mostUsed),
      channelNews: this.#ports.tenants.system.ledger.channelNews,
    })
    const [oldest] = this.#known.keys()
    if (this.#known.size > channelsMax && oldest !== undefined) this.forget(oldest)
  }

  forget(id: string): void {
    this.#known.delete(id)
  }
}
