import { listDefaults } from '@tollbase/contract/permissions'
import { describeKey, makeKey, writeKeys } from '../../services/keys/key-record.ts'
import type { Operation } from '../operation.ts'
import { toStoredPayLimits } from './pay-limits.ts'

export const regenerateKey: Operation<'regenerateKey', 'world' | 'tenants'> = async (
  { service },
  { params, body },
) => {
  const { definitions, keys } = service.tenants.system
  return definitions.run(async () => {
    const now = service.world.now()
    const name = body.name ?? 'default'
    const named = keys
      .listByApp(params.app)
      .filter((one) => one.name === name)
      .sort((one, other) => Date.parse(one.created_at) - Date.parse(other.created_at))
    const old = named.filter((one) => keys.isAlive(one, now))
    const replaced = old.at(-1)
    // A key that was revoked, or has run out, is followed by one that may do no more than it, and spends on its budget.
    const last = replaced ?? named.at(-1)
    const { text, record } = makeKey(service.world, {
      appId: params.app,
      name,
      permissions: body.permissions ?? last?.permissions ?? listDefaults('isInFirstKey'),
      payLimits:
        body.pay_limits === undefined
          ? (last?.pay_limits ?? null)
          : toStoredPayLimits(body.pay_limits),
      expiresAt: body.expires_at === undefined ? (replaced?.expires_at ?? null) : body.expires_at,
      successorOf: last,
    })
    const revoked = old.map((one) => ({ ...one, revoked_at: new Date(now).toISOString() }))
    const undo = old.map((one) => keys.kill(one.key_hash))
    try {
      await writeKeys(service.tenants, [...revoked, record])
    } catch (error) {
      for (const revive of undo) revive()
      throw error
    }
    return { key: text, ...describeKey(record), replaced_key_hash: replaced?.key_hash ?? null }
  })
}
