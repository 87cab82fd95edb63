import { limits } from '@tollbase/contract/limits'
import { makeInvalidFault } from '../../base/fault.ts'
import type { ChannelRow } from '../../projections/channel-tables.ts'
import { listPayerChannels } from '../../projections/read-channels.ts'
import { refuseOtherWallet } from '../../services/access/refuse-other-wallet.ts'
import type { Uses } from '../../services/call.ts'
import type { Operation } from '../operation.ts'

const cursorForm = /^0x[0-9a-f]{64}$/
const pageSize = 100

export const listWalletChannels: Operation<
  'listWalletChannels',
  'database' | 'tenants' | 'payments'
> = async ({ service, caller }, { params, query }) => {
  const payer = params.address.toLowerCase()
  refuseOtherWallet(caller, payer)
  const { cursor: after = '', limit = pageSize } = query
  if (after !== '' && !cursorForm.test(after))
    throw makeInvalidFault('/query/cursor', 'is not one of this list')
  const { chain, schema } = service.tenants.system
  await chain.whenApplied(chain.head().height)
  const page = { payer, after, limit: limit + 1 }
  const found = await listPayerChannels(service.database, schema, page)
  const rows = found.slice(0, limit)
  return {
    channels: await Promise.all(rows.map((row) => describe(service, row))),
    next_cursor: found.length > limit ? (rows.at(-1)?.id ?? null) : null,
  }
}

async function describe(service: Uses<'payments'>, channel: ChannelRow) {
  const { id, network, balance, charged, claimed, withdrawing } = channel
  const left = balance - withdrawing - charged
  return {
    channel_id: id,
    network,
    balance: String(balance),
    charged: String(charged),
    claimed: String(claimed),
    available: String(left > 0n ? left : 0n),
    withdrawing: String(withdrawing),
    withdrawal_ends_at: withdrawing === 0n ? null : await readWithdrawalEnd(service, channel),
  }
}

/** The chain alone knows when a withdrawal began; null where it does not answer, or it is over. */
async function readWithdrawalEnd(
  { payments }: Uses<'payments'>,
  { id, network }: ChannelRow,
): Promise<string | null> {
  const escrow = payments.ports.methods.find((one) => one.network.id === network)?.escrow
  const seen = await escrow?.readState(id).catch(() => undefined)
  if (seen === undefined || seen.withdrawingSince === 0n) return null
  const endSeconds = Number(seen.withdrawingSince) + limits.channelWithdrawSeconds
  return new Date(endSeconds * 1000).toISOString()
}
