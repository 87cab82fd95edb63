import { applyLock, type PayoutSettings } from '../../../model/payout-settings.ts'
import { toApplicationAccount } from '../../../projections/ledger-entry.ts'
import type { Uses } from '../../call.ts'
import { noteTaking } from '../accounts/account-lock.ts'

type LockParts = Uses<'database' | 'tenants' | 'world'>

/** Writes settings of payouts, while nobody else does; gives the place of their entry once they are in force. */
export async function writePayoutSettings(
  { database, tenants }: Omit<LockParts, 'world'>,
  settings: PayoutSettings,
): Promise<{ readonly height: number; readonly sequence: number }> {
  const { chain } = tenants.system
  const header = { type: 'payout_settings', app: settings.app_id }
  const { height, sequence } = await chain.append([{ header, body: JSON.stringify(settings) }])
  await chain.whenApplied(height)
  // Nobody who knows the balance from before takes what is locked from now on.
  await noteTaking(database, toApplicationAccount(settings.app_id))
  return { height, sequence }
}

/**
 * Puts in force what keys have locked and nobody has undone in time. The tables lock an amount by an entry, so that they
 * are made from entries alone. `onFailure` is told of each application where it failed; the next round tries again.
 */
export async function putLocksInForce(
  parts: LockParts,
  onFailure: (app: string, error: unknown) => void,
): Promise<void> {
  const { tenants, world } = parts
  const { definitions, payoutSettings } = tenants.system
  for (const { app_id: app } of payoutSettings.listLocking())
    await definitions
      .run(async () => {
        const settings = payoutSettings.get(app)
        const settled = applyLock(settings, world.now())
        if (settled !== settings) await writePayoutSettings(parts, settled)
      })
      .catch((error: unknown) => onFailure(app, error))
}
