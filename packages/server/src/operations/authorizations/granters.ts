import { Fault } from '../../base/fault.ts'
import type { AuthorizationRecord } from '../../model/authorization.ts'
import { findSettledOwner } from '../../model/payout-settings.ts'
import { toApplicationAccount, toWalletAccount } from '../../projections/ledger-entry.ts'
import { requirePermission } from '../../services/access/access.ts'
import type { Tenants } from '../../services/applications/tenants.ts'
import type { Call } from '../../services/call.ts'

/**
 * Returns the account from which the caller may let others spend: a wallet's own, or the application's for who has
 * Admin on it; 401, 403 or 404 for all others.
 */
export function requireGranter({ caller, service }: Call<'tenants'>, app: string): string {
  const { tenants } = service
  if (caller.kind === 'wallet') {
    tenants.requireApplication(app)
    return toWalletAccount(caller.address)
  }
  requirePermission(caller, 'Admin', { appId: app, tenants })
  return toApplicationAccount(app)
}

/**
 * Requires a caller who may see and revoke authorizations of the application: wallets, and who has Admin on it. It may
 * be archived, since an authorization spends on; then it is 404 to a wallet without a part in it, as to everybody.
 */
export function requireManager(call: Call<'tenants'>, app: string): void {
  const { caller, service } = call
  const { tenants } = service
  if (caller.kind !== 'wallet') {
    requirePermission(caller, 'Admin', { appId: app, tenants, evenArchived: true })
    return
  }
  if (isOwner(tenants, app, caller.address)) return
  const all = tenants.system.authorizations.listByApp(app)
  if (!all.some((one) => canManage(call, app, one))) tenants.requireApplication(app)
}

/** Returns whether the caller may see and revoke this one: a wallet its own, and whoever has Admin all of them. */
export function canManage(
  { caller, service: { tenants } }: Call<'tenants'>,
  app: string,
  { account }: Pick<AuthorizationRecord, 'account'>,
): boolean {
  if (caller.kind !== 'wallet') return true
  return account === toWalletAccount(caller.address) || isOwner(tenants, app, caller.address)
}

/** Whoever was replaced by a stolen key must see what that key lets others spend, and end it. */
function isOwner(tenants: Tenants, app: string, address: string): boolean {
  const record = tenants.requireRecord(app)
  return [record.owner_address, findSettledOwner(record, tenants.now())].includes(address)
}

/** Returns the authorization, or throws 404 where the caller may not know of it. */
export async function requireAuthorization(
  call: Call<'tenants' | 'database'>,
  app: string,
  id: string,
): Promise<AuthorizationRecord> {
  requireManager(call, app)
  const { tenants, database } = call.service
  const { authorizations, schema } = tenants.system
  const one = await authorizations.read(database, schema, { appId: app, id })
  if (one === undefined || !canManage(call, app, one)) throw new Fault('AUTHORIZATION_NOT_FOUND')
  return one
}
