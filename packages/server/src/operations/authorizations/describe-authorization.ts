import { toGivenUsd } from '../../base/format-usd.ts'
import type { AuthorizationRecord } from '../../model/authorization.ts'
import type { Call } from '../../services/call.ts'

/** Describes an authorization to who may see it; `spent` in atomic units, `lastUsed` an ISO time. */
export function describeAuthorization(
  { service: { tenants, world } }: Call<'tenants' | 'world'>,
  one: AuthorizationRecord,
  { spent, lastUsed = null }: { readonly spent: bigint; readonly lastUsed?: string | null },
) {
  const isAlive = tenants.system.authorizations.isAlive(one, world.now())
  const { spend_limit, max_per_tx, daily_limit } = one
  const ended = one.revoked_at === null ? ('expired' as const) : ('revoked' as const)
  return {
    id: one.id,
    app_id: one.app_id,
    granter: one.account.replace(/^(wallet|app):/, ''),
    grantee: one.grantee,
    spend_limit,
    max_per_tx,
    daily_limit,
    allowed_targets: one.allowed_targets === null ? null : [...one.allowed_targets],
    expires_at: one.expires_at,
    created_at: one.created_at,
    revoked_at: one.revoked_at,
    status: isAlive ? ('active' as const) : ended,
    spent: String(spent),
    usd: toGivenUsd({ spend_limit, max_per_tx, daily_limit, spent: String(spent) }),
    last_used_at: lastUsed,
    key_prefix: one.prefix,
  }
}
