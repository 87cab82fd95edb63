import type { Operation } from '../operation.ts'

export const getCheckpoint: Operation<'getCheckpoint'> = async ({ service }, { params }) => {
  const { chain } = await service.tenancy.chain(params.app)
  const checkpoint = chain.checkpoint()
  const { size, root, height } = chain.head()
  return { origin: chain.origin, size, root, height, checkpoint, key: chain.vkey }
}
