import type { ChannelRow } from '../../../projections/channel-tables.ts'
import {
  type LedgerBody,
  type Posting,
  platformAccount,
} from '../../../projections/ledger-entry.ts'
import type { ChannelConfig, Voucher } from '../../../x402/channels/channel.ts'
import type { EscrowState } from '../../../x402/channels/escrow.ts'

type Entry = { readonly header: { readonly type: 'ledger' }; readonly body: string }

/** The account of a channel: what was charged to it and not claimed yet, as a debt. */
export const toChannelAccount = (id: string) => `channel:${id}`
const toEscrowAccount = (network: string) => `escrow:${network}`

/**
 * Makes the entry that says what the chain knows of a channel. A claim beyond all known charges is of charges
 * in a life of the database that is lost: it is the platform's.
 */
export function makeSeenEntry(
  channel: { readonly id: string; readonly network: string; readonly config: ChannelConfig },
  known: Pick<ChannelRow, 'balance' | 'withdrawing' | 'claimed' | 'charged'> | undefined,
  seen: EscrowState & {
    readonly isRefund?: true
    readonly isEarned?: boolean
    /** The transactions of ours that the reading follows: one that claimed, and one that deposited or gave back. */
    readonly claimedBy?: string | undefined
    readonly movedBy?: string | undefined
  },
): Entry {
  const { id, network, config } = channel
  const before = { claimed: known?.claimed ?? 0n, charged: known?.charged ?? 0n }
  const claimed = seen.claimed - before.claimed
  const isMoved = seen.balance !== (known?.balance ?? 0n)
  const lost = seen.claimed > before.charged ? seen.claimed - before.charged : 0n
  return makeEntry(
    {
      kind: 'channel_seen',
      payment_id: id,
      identity: id,
      network,
      config,
      balance: String(seen.balance),
      claimed: String(seen.claimed),
      withdrawing: String(seen.withdrawing),
      balance_before: String(known?.balance ?? 0n),
      withdrawing_before: String(known?.withdrawing ?? 0n),
      claimed_before: String(before.claimed),
      charged_before: String(before.charged),
      ...(isMoved && { balance_by: seen.movedBy ?? null }),
      ...(claimed !== 0n && { claimed_by: claimed > 0n ? (seen.claimedBy ?? null) : null }),
      ...(seen.isRefund && { is_refund: true, ...(seen.isEarned === true && { is_earned: true }) }),
    },
    [
      [toChannelAccount(id), -lost],
      [platformAccount, lost],
      [toEscrowAccount(network), -claimed],
      [toChannelAccount(id), claimed],
    ],
  )
}

/** Makes the entry that takes over a total that the payer's voucher proves and the log does not know. */
export function makeAdoptedEntry(
  { id, network, charged }: Pick<ChannelRow, 'id' | 'network' | 'charged'>,
  base: bigint,
  { maxClaimable, signature }: Voucher,
): Entry {
  const channel = { id, base: String(base), max_claimable: String(maxClaimable), signature }
  return makeEntry(
    {
      kind: 'channel_adopted',
      payment_id: id,
      identity: id,
      network,
      channel,
      charged_before: String(charged),
    },
    [
      [toChannelAccount(id), charged - base],
      [platformAccount, base - charged],
    ],
  )
}

/** Makes the entry that says that the contract has sent us what was claimed; the payment is the network. */
export function makeSettledEntry(network: string, before: bigint, settled: bigint): Entry {
  return makeEntry(
    {
      kind: 'channel_settled',
      payment_id: network,
      identity: network,
      network,
      settled: String(settled),
      settled_before: String(before),
    },
    [
      [`outside:${network}`, before - settled],
      [toEscrowAccount(network), settled - before],
    ],
  )
}

function makeEntry(
  facts: Omit<LedgerBody, 'postings'>,
  amounts: readonly (readonly [string, bigint])[],
): Entry {
  const postings = amounts
    .filter(([, amount]) => amount !== 0n)
    .map(([account, amount]): Posting => ({ account, amount: String(amount) }))
  return { header: { type: 'ledger' }, body: JSON.stringify({ ...facts, postings }) }
}
