import { describeKey } from '../../services/keys/key-record.ts'
import type { Operation } from '../operation.ts'

export const listKeys: Operation<'listKeys', 'world' | 'tenants' | 'keyUse'> = async (
  { service },
  { params },
) => {
  const { keys } = service.tenants.system
  const now = service.world.now()
  const all = keys
    .listByApp(params.app)
    .sort((one, other) => Date.parse(one.created_at) - Date.parse(other.created_at))
  const used = await service.keyUse.readLastUsed(all.map(({ key_hash: hash }) => hash))
  return {
    keys: all.map((record) => ({
      ...describeKey(record),
      status: keys.isAlive(record, now)
        ? 'active'
        : record.revoked_at === null
          ? 'expired'
          : 'revoked',
      revoked_at: record.revoked_at,
      last_used_at: used.get(record.key_hash) ?? null,
    })),
  }
}
