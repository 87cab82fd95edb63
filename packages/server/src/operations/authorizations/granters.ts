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
 * Lists the authorizations through the application that the caller may see and revoke: a wallet its own, and whoever has
 * Admin all of them. It may be archived, since an authorization spends on; then it is 404 to a wallet without a part in
 * it, as to everybody.
 */
export function listManaged(call: Call<'tenants'>, app: string): AuthorizationRecord[] {
  const { tenants } = call.service
  const account = findOnlyAccount(call, app)
  const managed = tenants.system.authorizations.listByApp(app, account)
  if (account !== undefined && managed.length === 0) tenants.requireApplication(app)
  return managed
}

/** Finds the one account whose authorizations the caller may manage; undefined where these are all, and else 401 or 403. */
function findOnlyAccount(
  { caller, service: { tenants } }: Call<'tenants'>,
  app: string,
): string | undefined {
  if (caller.kind === 'wallet')
    return isOwner(tenants, app, caller.address) ? undefined : toWalletAccount(caller.address)
  requirePermission(caller, 'Admin', { appId: app, tenants, evenArchived: true })
  return undefined
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
  const account = findOnlyAccount(call, app)
  const { tenants, database } = call.service
  const { authorizations, schema } = tenants.system
  const one = await authorizations.read(database, schema, { appId: app, id })
  if (one !== undefined && (account === undefined || one.account === account)) return one
  listManaged(call, app)
  throw new Fault('AUTHORIZATION_NOT_FOUND')
}
