import type { Tollbase } from '@tollbase/contract/contract'
import { limits } from '@tollbase/contract/limits'
import type { Input } from '@tollbase/contract/route'
import { dayMs } from '../../base/durations.ts'
import { Fault, makeInvalidFault } from '../../base/fault.ts'
import type { World } from '../../base/world.ts'
import type { AuthorizationRecord } from '../../model/authorization.ts'
import { hashKey, makeKeyText } from '../../projections/keys.ts'
import { toApplicationAccount } from '../../projections/ledger-entry.ts'
import { refuseDeadCaller } from '../../services/access/lapsed-caller.ts'
import type { Call } from '../../services/call.ts'
import type { Operation } from '../operation.ts'
import { describeAuthorization } from './describe-authorization.ts'
import { requireGranter } from './granters.ts'
import { writeAuthorization } from './write-authorization.ts'

type Body = Input<Tollbase['createAuthorization']>['body']

export const createAuthorization: Operation<'createAuthorization', 'tenants' | 'world'> = async (
  call,
  { params: { app }, body },
) => {
  const { tenants, world } = call.service
  requireGranter(call, app)
  return tenants.system.definitions.run(async () => {
    refuseDeadCaller(call)
    const account = requireGranter(call, app)
    refuseTooMany(call, app, account)
    const text = makeKeyText(world.randomBytes)
    const one: AuthorizationRecord = {
      id: `auth_${world.randomBytes(16).toString('hex')}`,
      app_id: app,
      account,
      ...parseLimits(body, world),
      key_hash: hashKey(text),
      prefix: text.slice(0, 8),
      created_at: new Date(world.now()).toISOString(),
      revoked_at: null,
    }
    const entry = await writeAuthorization(tenants, one)
    return { ...describeAuthorization(call, one, { spent: 0n }), user_key: text, entry }
  })
}

function refuseTooMany(
  { service: { tenants, world } }: Call<'tenants' | 'world'>,
  app: string,
  account: string,
): void {
  const { authorizations } = tenants.system
  const {
    authorizationsOfAccountMax: max,
    walletAuthorizationsBytesMax: bytesMax,
    allWalletAuthorizationsBytesMax: allBytesMax,
  } = limits
  const now = world.now()
  const live = authorizations
    .listByApp(app, account)
    .filter((one) => authorizations.isAlive(one, now))
  if (live.length >= max)
    throw new Fault('CONFLICT', {
      message: `There are at most ${max} live authorizations from one balance; revoke one first`,
    })
  if (account === toApplicationAccount(app)) return
  const full = authorizations.findFull(app)
  if (full === 'application')
    throw new Fault('CONFLICT', {
      message: `Wallets have as many live authorizations through ${app} as the service keeps for one application (${bytesMax} bytes); grant through another application, which makes no difference to what may be bought, or ask this one to revoke some`,
    })
  if (full === 'all')
    throw new Fault('CONFLICT', {
      message: `Wallets have almost as many live authorizations as the service keeps for all applications (${allBytesMax} bytes), and ${app} has its share of them; grant through an application with fewer, which makes no difference to what may be bought, or revoke some`,
    })
}

function parseLimits(
  { grantee, spend_limit, max_per_tx, daily_limit, allowed_targets, expires_at }: Body,
  world: World,
) {
  const toText = (amount: string | number | null = null) =>
    amount === null ? null : String(amount)
  return {
    grantee,
    spend_limit: String(spend_limit),
    max_per_tx: toText(max_per_tx),
    daily_limit: toText(daily_limit),
    allowed_targets: allowed_targets ?? null,
    expires_at: parseEnd(expires_at ?? null, world.now()),
  }
}

function parseEnd(asked: string | null, nowMs: number): string {
  const end = asked === null ? nowMs + limits.authorizationDays * dayMs : Date.parse(asked)
  // RFC 3339 has a 61st second, which is no time that can be reckoned with.
  if (!(end > nowMs)) throw makeInvalidFault('/expires_at', 'must be a time in the future')
  return new Date(end).toISOString()
}
