import type { Tollbase } from '@tollbase/contract/contract'
import { limits } from '@tollbase/contract/limits'
import type { Input } from '@tollbase/contract/route'
import { dayMs } from '../../base/durations.ts'
import { Fault, makeInvalidFault } from '../../base/fault.ts'
import type { World } from '../../base/world.ts'
import type { AuthorizationRecord } from '../../model/authorization.ts'
import { hashKey, makeKeyText } from '../../projections/keys.ts'
import type { Operation } from '../operation.ts'
import { describeAuthorization } from './describe-authorization.ts'
import { requireGranter } from './granters.ts'
import { writeAuthorization } from './write-authorization.ts'

type Body = Input<Tollbase['createAuthorization']>['body']

export const createAuthorization: Operation<
  'createAuthorization',
  'tenants' | 'world' | 'keyUse'
> = async (call, { params: { app }, body }) => {
  const { tenants, world } = call.service
  const account = requireGranter(call, app)
  const { definitions, authorizations } = tenants.system
  return definitions.run(async () => {
    tenants.requireApplication(app)
    const live = authorizations
      .listByApp(app)
      .filter((one) => one.account === account && authorizations.isAlive(one, world.now()))
    if (live.length >= limits.authorizationsOfAccountMax)
      throw new Fault('CONFLICT', {
        message: `There are at most ${limits.authorizationsOfAccountMax} live authorizations from one balance; revoke one first`,
      })
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
    return { ...describeAuthorization(call, one, 0n), user_key: text, entry }
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
