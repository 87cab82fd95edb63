import type { Operation } from '../operation.ts'
import { requireVisibleChain } from './visible-chain.ts'

export const getCheckpoint: Operation<'getCheckpoint', 'tenants'> = async (call, { params }) => {
  const chain = await requireVisibleChain(call, params.app)
  const checkpoint = chain.checkpoint()
  const { size, root, height } = chain.head()
  return { origin: chain.origin, size, root, height, checkpoint, key: chain.vkey }
}
