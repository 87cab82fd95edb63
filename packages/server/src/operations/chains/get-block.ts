import { Fault } from '../../base/fault.ts'
import type { Operation } from '../operation.ts'
import { requireVisibleChain } from './visible-chain.ts'

export const getBlock: Operation<'getBlock', 'tenants'> = async (call, { params }) => {
  const chain = await requireVisibleChain(call, params.app)
  const block = await chain.readOutline(params.height)
  if (block === undefined)
    throw new Fault('BLOCK_NOT_FOUND', {
      message: `There is no block ${params.height}; the newest is ${chain.head().height}`,
    })
  const { header } = block
  return {
    height: block.height,
    hash: block.hash.toString('hex'),
    previous_hash: Buffer.from(header.previousHash).toString('hex'),
    time: new Date(block.time).toISOString(),
    tree_size: header.treeSize,
    root: Buffer.from(header.root).toString('base64'),
    body_hash: Buffer.from(header.bodyHash).toString('hex'),
    entry_count: header.entryCount,
    header: block.headerText,
    signature: block.signature.toString('base64'),
    leaf_hashes: Array.from({ length: header.entryCount }, (_, at) =>
      block.leafHash(at).toString('hex'),
    ),
  }
}
