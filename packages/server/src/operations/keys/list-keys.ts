import { describeKey } from '../../services/keys/key-record.ts'
import type { Operation } from '../operation.ts'

export const listKeys: Operation<'listKeys', 'world' | 'tenants' | 'keyUse'> = async (
  { service },
  { params },
) => {
  const { keys } = service.tenants.system
  const now = service.world.now()
  return {
    keys: keys.listByApp(params.app).map((record) => ({
      ...describeKey(record),
      status: keys.isAlive(record, now)
        ? 'active'
        : record.revoked_at === null
          ? 'expired'
          : 'revoked',
      revoked_at: record.revoked_at,
      last_used_at: service.keyUse.getLastUsed(record.key_hash),
    })),
  }
}
