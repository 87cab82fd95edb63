import { makeInvalidFault } from '../../base/fault.ts'
import type { ApplicationRecord } from '../../model/application.ts'
import {
  applyLock,
  chooseDestination,
  chooseLock,
  isOwnerTrusted,
  type PayoutSettings,
} from '../../model/payout-settings.ts'
import type { Caller } from '../../services/access/access.ts'
import { refuseLapsedCaller } from '../../services/access/lapsed-caller.ts'
import type { Uses } from '../../services/call.ts'
import { writePayoutSettings } from '../../services/payments/payouts/locks.ts'
import { readPayoutState } from '../../services/payments/payouts/payouts.ts'
import type { Operation } from '../operation.ts'
import { describeSettings } from './describe-payout.ts'

export const setPayoutSettings: Operation<
  'setPayoutSettings',
  'database' | 'tenants' | 'transfers' | 'world'
> = async (call, { params, body }) => {
  const { service, caller } = call
  const { tenants, world } = service
  const address = body.payout_destination?.toLowerCase()
  if (address !== undefined) refuseOwnAddress(service, address)
  const entry = await tenants.system.definitions.run(async () => {
    refuseLapsedCaller(call, params.app, { permission: 'Admin', evenArchived: true })
    const record = tenants.requireRecord(params.app)
    const nowMs = world.now()
    const by = { owned: record, isOwner: isOwner(caller, record), nowMs }
    const isTrusted = by.isOwner && isOwnerTrusted(record, nowMs)
    const before = applyLock(tenants.system.payoutSettings.get(params.app), nowMs)
    const isAtOnce = isTrusted || caller.kind === 'operator'
    const changed = changeLock(changeAmounts(before, body), body, { isAtOnce, nowMs })
    return writePayoutSettings(service, {
      ...(address === undefined ? changed : chooseDestination(changed, address, by)),
      changed_by: formatCaller(caller),
    })
  })
  const state = describeSettings(await readPayoutState(service, params.app))
  return { success: true, message: formatMessage(state), ...state, entry }
}

function formatMessage({
  pending_destination: next,
  payout_destination: now,
  pending_locked_balance: more,
  locked_balance: locked,
}: ReturnType<typeof describeSettings>): string {
  const later = [
    ...(next === null
      ? []
      : [`Payouts go to ${next.address} from ${next.from}, and until then to ${now ?? 'nobody'}`]),
    ...(more === null
      ? []
      : [`${more.amount} is locked from ${more.from}, and ${locked} until then`]),
  ]
  if (later.length === 0) return 'The settings are in force'
  return [...later, 'a change that the owner signs takes effect at once'].join('; ')
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
  const threshold = change.payout_threshold ?? before.payout_threshold
  return {
    ...before,
    auto_payout_enabled: change.auto_payout_enabled ?? before.auto_payout_enabled,
    min_payout: String(change.min_payout ?? before.min_payout),
    payout_threshold: threshold === null ? null : String(threshold),
    direct_settlement: change.direct_settlement ?? before.direct_settlement ?? false,
  }
}

function changeLock(
  before: PayoutSettings,
  { locked_balance: locked }: Amounts,
  by: Parameters<typeof chooseLock>[2],
): PayoutSettings {
  if (locked === undefined || locked === null) return before
  if (BigInt(locked) < BigInt(before.locked_balance))
    throw makeInvalidFault('/locked_balance', `can only grow, and is ${before.locked_balance}`)
  return chooseLock(before, BigInt(locked), by)
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
