import { type ProofParts, proveRecord } from '../../services/records/record-proof.ts'
import type { Operation } from '../operation.ts'

export const getRecordProof: Operation<'getRecordProof', ProofParts> = async (
  call,
  { params, query },
) => {
  const tenant = await call.service.tenants.load(params.app)
  return proveRecord(call, tenant, { ...params, ...query })
}
