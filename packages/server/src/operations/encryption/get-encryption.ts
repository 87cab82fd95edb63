import { describeSettings } from '../../services/encryption/change-encryption.ts'
import type { Operation } from '../operation.ts'

export const getEncryption: Operation<'getEncryption', 'database' | 'tenants'> = async (
  { service },
  { params },
) => {
  const tenant = await service.tenants.load(params.app)
  return describeSettings(service.database, tenant)
}
