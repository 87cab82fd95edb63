import type { Operation } from '../operation.ts'

export const getEntryProof: Operation<'getEntryProof'> = async ({ service }, { params, query }) => {
  const { chain } = await service.tenancy.chain(params.app)
  const proof = await chain.prove(query.height, query.sequence)
  const block = await chain.readBlock(query.height)
  return {
    height: query.height,
    sequence: query.sequence,
    leaf_index: proof.leaf_index,
    leaf_hash: block?.leafHash(query.sequence).toString('hex') ?? '',
    inclusion: proof.inclusion,
    checkpoint: proof.checkpoint,
  }
}
