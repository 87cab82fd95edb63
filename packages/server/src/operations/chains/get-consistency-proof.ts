import type { Operation } from '../operation.ts'
import { requireVisibleChain } from './visible-chain.ts'

export const getConsistencyProof: Operation<'getConsistencyProof', 'tenants'> = async (
  call,
  { params, query },
) => {
  const chain = await requireVisibleChain(call, params.app)
  const { from, to, hashes } = await chain.consistency(query.from, query.to)
  return { from, to, hashes: [...hashes] }
}
