import type { Operation } from '../operation.ts'
import { requireVisibleChain } from './visible-chain.ts'

export const listCosignatures: Operation<'listCosignatures', 'tenants' | 'witnesses'> = async (
  call,
  { params },
) => {
  await requireVisibleChain(call, params.app)
  return { cosignatures: [...call.service.witnesses.list(params.app)] }
}
