import { proveRecord } from '../../services/records/record-proof.ts'
import type { Operation } from '../operation.ts'

export const getRecordProof: Operation<'getRecordProof', 'database' | 'tenancy'> = async (
  call,
  { params, query },
) => {
  const tenant = await call.service.tenancy.loadTenant(params.app)
  return proveRecord(call, tenant, { ...params, ...query })
}
