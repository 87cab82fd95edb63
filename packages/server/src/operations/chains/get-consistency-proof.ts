import type { Operation } from '../operation.ts'
import { visibleChain } from './visible-chain.ts'

export const getConsistencyProof: Operation<'getConsistencyProof'> = async (
  call,
  { params, query },
) => {
  const chain = await visibleChain(call, params.app)
  const { from, to, hashes } = await chain.consistency(query.from, query.to)
  return { from, to, hashes: [...hashes] }
}
