import { limits } from '@tollbase/contract/limits'
import { listDefaults } from '@tollbase/contract/permissions'
import { Fault } from '../../base/fault.ts'
import { describeKey, makeKey, writeKeys } from '../../services/keys/key-record.ts'
import type { Operation } from '../operation.ts'
import { toStoredPayLimits } from './pay-limits.ts'

export const createKey: Operation<'createKey', 'world' | 'tenants'> = async (
  { service },
  { params, body },
) => {
  const { definitions, keys } = service.tenants.system
  return definitions.run(async () => {
    if (
      keys.listByApp(params.app).filter((one) => keys.isAlive(one, service.world.now())).length >=
      limits.keysPerApplicationMax
    ) {
      throw new Fault('CONFLICT', {
        message: `An application has at most ${limits.keysPerApplicationMax} live keys; revoke one first`,
      })
    }
    const { text, record } = makeKey(service.world, {
      appId: params.app,
      name: body.name ?? 'unnamed',
      permissions: body.permissions ?? listDefaults('isInNewKeys'),
      payLimits: toStoredPayLimits(body.pay_limits ?? null),
      expiresAt: body.expires_at ?? null,
    })
    await writeKeys(service.tenants, [record])
    return { key: text, ...describeKey(record) }
  })
}
