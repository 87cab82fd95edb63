import { findKnownExplorer } from '../../x402/networks.ts'
import type { Payments } from './payments.ts'

/**
 * Finds where an explorer of the chain shows a transaction; undefined where the chain has none, as a devnet, though it
 * has the number of a public chain. A chain that takes no payments has its known explorer.
 */
export function findExplorerLink(
  { ports }: Pick<Payments, 'ports'>,
  { network, hash }: { readonly network: string; readonly hash: string | null },
): string | undefined {
  if (hash === null) return undefined
  const method = ports.methods.find((one) => one.network.id === network)
  const explorer = method === undefined ? findKnownExplorer(network) : method.network.explorer
  return explorer && `${explorer}/tx/${hash}`
}
