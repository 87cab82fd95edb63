import { SetupError } from '../base/setup-error.ts'
import { readHead } from '../x402/evm-chain.ts'
import type { Rpc } from '../x402/rpc.ts'

/** No EVM chain has as many blocks: a hundred a second make them in twenty years. */
const evmHeadMax = 2n ** 36n

/** Reads the newest block of an EVM chain that is to be searched up to there. */
export async function readSearchedHead(rpc: Rpc): Promise<bigint> {
  const head = await readHead(rpc)
  refuseImpossibleHead(head, { max: evmHeadMax, way: 'ask another node' })
  return head
}

/** Refuses a newest block that no chain can have: a search that believed the node would never end. */
export function refuseImpossibleHead(
  head: bigint,
  { max, way }: { readonly max: bigint; readonly way: string },
): void {
  if (head > max)
    throw new SetupError(`the node names block ${head} as its newest, which no chain has; ${way}`)
}
