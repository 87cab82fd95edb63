import { readBlockHash, readHead } from './evm-chain.ts'
import type { Rpc } from './rpc.ts'

/** The block that a node names for a transaction. */
type Block = { readonly blockNumber: bigint; readonly blockHash: string | undefined }

/**
 * Finds what is in a block that is deep enough: so many blocks hold or follow it, its own included. One of several nodes
 * behind a URL may be of another fork than the one that tells the head, so that one must have the very block: both answers
 * travel in one batch. The head that is read beside only spares that look while the block is not deep.
 */
export async function findConfirmed<T extends Block>(
  rpc: Rpc,
  confirmations: number,
  find: () => Promise<T | undefined>,
): Promise<T | undefined> {
  const list = async () => {
    const one = await find()
    return one === undefined ? [] : [one]
  }
  // Its caller may call it gone.
  const [found] = await filterConfirmed(rpc, confirmations, { list, onSilence: 'throw' })
  return found
}

/** `skip`: a height of which the node says nothing holds up no other one, and is asked for again. */
type Listing<T> = {
  readonly list: () => Promise<readonly T[]>
  readonly onSilence: 'skip' | 'throw'
}

/** The same of several; the chain is asked once for each of their heights. */
export async function filterConfirmed<T extends Block>(
  rpc: Rpc,
  confirmations: number,
  { list, onSilence }: Listing<T>,
): Promise<readonly T[]> {
  if (confirmations <= 1) return list()
  const [head, all] = await Promise.all([readHead(rpc), list()])
  const isDeep = (newest: bigint, height: bigint) => newest - height + 1n >= BigInt(confirmations)
  const deep = all.filter(({ blockNumber }) => isDeep(head, blockNumber))
  const heights = [...new Set(deep.map(({ blockNumber }) => blockNumber))]
  const findIn = async (height: bigint): Promise<readonly T[]> => {
    const [newest, hash] = await Promise.all([readHead(rpc), readBlockHash(rpc, height)])
    const isIn = ({ blockNumber, blockHash }: T) => blockNumber === height && blockHash === hash
    return isDeep(newest, height) && hash !== undefined ? deep.filter(isIn) : []
  }
  const looks = heights.map(findIn)
  const confirmed = onSilence === 'throw' ? looks : looks.map((look) => look.catch(() => []))
  return (await Promise.all(confirmed)).flat()
}
