import { makeInvalidFault } from '../../base/fault.ts'
import type { ApplicationRecord } from '../../model/application.ts'
import { chooseDestination, type PayoutSettings } from '../../model/payout-settings.ts'
import { toApplicationAccount } from '../../projections/ledger-entry.ts'
import type { Caller } from '../../services/access/access.ts'
import type { Uses } from '../../services/call.ts'
import { noteTaking } from '../../services/payments/accounts/account-lock.ts'
import { readPayoutState } from '../../services/payments/payouts/payouts.ts'
import type { Operation } from '../operation.ts'
import { describeSettings } from './describe-payout.ts'

export const setPayoutSettings: Operation<
  'setPayoutSettings',
  'database' | 'tenants' | 'transfers' | 'world'
> = async ({ service, caller }, { params, body }) => {
  const { tenants, world } = service
  const address = body.payout_destination?.toLowerCase()
  if (address !== undefined) refuseOwnAddress(service, address)
  const entry = await tenants.system.definitions.run(async () => {
    const record = tenants.requireRecord(params.app)
    const { chain, payoutSettings } = tenants.system
    const changed = changeAmounts(payoutSettings.get(params.app), body)
    const by = { owned: record, isOwner: isOwner(caller, record), nowMs: world.now() }
    const settings: PayoutSettings = {
      ...(address === undefined ? changed : chooseDestination(changed, address, by)),
      changed_by: formatCaller(caller),
    }
    const header = { type: 'payout_settings', app: params.app }
    const { height, sequence } = await chain.append([{ header, body: JSON.stringify(settings) }])
    await chain.whenApplied(height)
    // Nobody who knows the balance from before takes what is locked from now on.
    await noteTaking(service.database, toApplicationAccount(params.app))
    return { height, sequence }
  })
  const state = describeSettings(await readPayoutState(service, params.app))
  return { success: true, message: formatMessage(state), ...state, entry }
}

function formatMessage({
  pending_destination: pending,
  payout_destination: now,
}: ReturnType<typeof describeSettings>): string {
  if (pending === null) return 'The settings are in force'
  return `Payouts go to ${pending.address} from ${pending.from}, and until then to ${now ?? 'nobody'}; a change that the owner signs takes effect at once`
}

type Amounts = {
  readonly auto_payout_enabled?: boolean | null
  readonly locked_balance?: string | number | null
  readonly min_payout?: string | number | null
  readonly payout_threshold?: string | number | null
  readonly direct_settlement?: boolean | null
}

/** Null stands for what is not changed, as public clients send it. */
function changeAmounts(before: PayoutSettings, change: Amounts): PayoutSettings {
  const locked = change.locked_balance ?? before.locked_balance
  if (BigInt(locked) < BigInt(before.locked_balance))
    throw makeInvalidFault('/locked_balance', `can only grow, and is ${before.locked_balance}`)
  const threshold = change.payout_threshold ?? before.payout_threshold
  return {
    ...before,
    auto_payout_enabled: change.auto_payout_enabled ?? before.auto_payout_enabled,
    locked_balance: String(locked),
    min_payout: String(change.min_payout ?? before.min_payout),
    payout_threshold: threshold === null ? null : String(threshold),
    direct_settlement: change.direct_settlement ?? before.direct_settlement ?? false,
  }
}

/** A transfer to where our money lies, or to nobody, pays nobody. */
function refuseOwnAddress({ transfers }: Uses<'transfers'>, address: string): void {
  const isOurs = transfers
    .listNetworks()
    .some(({ network }) => address === network.payTo || address === network.asset.address)
  if (isOurs || /^0x0+$/.test(address))
    throw makeInvalidFault(
      '/payout_destination',
      "must not be the zero address, the token's address or an address of this service",
    )
}

function isOwner(caller: Caller, { owner_address: owner }: ApplicationRecord): boolean {
  return caller.kind === 'wallet' && caller.address === owner
}

function formatCaller(caller: Caller): string {
  if (caller.kind === 'key') return `key ${caller.key.key_hash}`
  return caller.kind === 'wallet' ? `wallet ${caller.address}` : caller.kind
}
