import ipaddr from 'ipaddr.js'

/**
 * Public addresses that belong to the machine's own surroundings all the same: the host agent of Azure, which hands
 * out what only the machine may know.
 */
const ownSurroundings: ReadonlySet<string> = new Set(['168.63.129.16'])

/**
 * Returns true for an address of the public internet. Every form of IPv6 that carries an IPv4 address (mapped, 6to4,
 * NAT64, Teredo) counts as none, whatever it carries, and so does all that is not global unicast.
 */
export function isPublicAddress(address: string): boolean {
  if (address.includes('%')) return false
  const parsed = ipaddr.parse(address)
  if (parsed.range() !== 'unicast') return false
  if (parsed.kind() === 'ipv4') return !ownSurroundings.has(parsed.toString())
  const [first = 0] = parsed.toByteArray()
  return first >> 5 === 1
}
