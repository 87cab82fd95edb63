import { Fault } from '../../base/fault.ts'
import type { AuthorizationRecord } from '../../model/authorization.ts'
import { toApplicationAccount, toWalletAccount } from '../../projections/ledger-entry.ts'
import { requirePermission } from '../../services/access/access.ts'
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
  if (caller.address === tenants.requireRecord(app).owner_address) return
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
  const { owner_address: owner } = tenants.requireRecord(app)
  return account === toWalletAccount(caller.address) || caller.address === owner
}

/** Returns the authorization, or throws 404 where the caller may not know of it. */
export function requireAuthorization(
  call: Call<'tenants'>,
  app: string,
  id: string,
): AuthorizationRecord {
  requireManager(call, app)
  const one = call.service.tenants.system.authorizations.get(app, id)
  if (one === undefined || !canManage(call, app, one)) throw new Fault('AUTHORIZATION_NOT_FOUND')
  return one
}
