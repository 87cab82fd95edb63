import type { Operation } from '../operation.ts'

export const getConsistencyProof: Operation<'getConsistencyProof'> = async (
  { service },
  { params, query },
) => {
  const { chain } = await service.tenancy.chain(params.app)
  const { from, to, hashes } = await chain.consistency(query.from, query.to)
  return { from, to, hashes: [...hashes] }
}
