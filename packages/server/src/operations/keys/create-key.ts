import { listDefaults } from '@tollbase/contract/permissions'
import { refuseLapsedCaller } from '../../services/access/lapsed-caller.ts'
import { describeKey, makeKey, parseKeyEnd, writeKeys } from '../../services/keys/key-record.ts'
import type { Operation } from '../operation.ts'
import { toStoredPayLimits } from './pay-limits.ts'
import { refuseTooManyKeys } from './refuse-keys.ts'

export const createKey: Operation<'createKey', 'world' | 'tenants'> = async (
  call,
  { params, body },
) => {
  const { tenants, world } = call.service
  return tenants.system.definitions.run(async () => {
    refuseLapsedCaller(call, params.app, { permission: 'Admin' })
    refuseTooManyKeys(call, params.app)
    const { text, record } = makeKey(world, {
      appId: params.app,
      name: body.name ?? 'unnamed',
      permissions: body.permissions ?? listDefaults('isInNewKeys'),
      payLimits: toStoredPayLimits(body.pay_limits ?? null),
      expiresAt: parseKeyEnd(body.expires_at ?? null, world.now()),
    })
    await writeKeys(tenants, [record])
    return { key: text, ...describeKey(record) }
  })
}
