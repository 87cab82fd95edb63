import { type LookupAddress, lookup, type promises } from 'node:dns'
import { isIP } from 'node:net'
import { promisify } from 'node:util'
import { type AllowedHost, isAllowedHost } from './allowed-host.ts'
import { isPublicAddress } from './public-address.ts'
import { UpstreamError } from './upstream-error.ts'
import { findHostProblem, toAddress } from './upstream-url.ts'

export type Resolver = Pick<promises.Resolver, 'resolve4' | 'resolve6'>

/**
 * Finds the addresses of a URL's host, which are all public, or the operator allows the host. The connection is made
 * to these very addresses: a second look at the name could tell others.
 */
export async function resolveUpstream(
  url: URL,
  { allowed, resolver }: { readonly allowed: readonly AllowedHost[]; readonly resolver: Resolver },
): Promise<readonly LookupAddress[]> {
  const host = toAddress(url)
  const family = isIP(host)
  if (isAllowedHost(allowed, url))
    return family === 0 ? findLocally(host) : [{ address: host, family }]
  const problem = findHostProblem(url, allowed)
  if (problem !== undefined) throw new UpstreamError('forbidden', `its URL ${problem}`)
  const addresses = family === 0 ? await askServers(host, resolver) : [{ address: host, family }]
  if (addresses.length === 0) throw new UpstreamError('unreachable', `${host} has no address`)
  const other = addresses.find(({ address }) => !isPublicAddress(address))
  if (other !== undefined)
    throw new UpstreamError('forbidden', `${host} has the address ${other.address}`)
  return addresses
}

/** Names of the operator's own network may be known to the machine alone (its file of hosts). */
async function findLocally(host: string): Promise<readonly LookupAddress[]> {
  try {
    return await promisify(lookup)(host, { all: true })
  } catch (cause) {
    throw new UpstreamError('unreachable', `${host} has no address`, { cause })
  }
}

/**
 * Asks the name servers without a thread of the pool, which a few slow names would fill; the files of this machine
 * are left out with that.
 */
async function askServers(host: string, resolver: Resolver): Promise<readonly LookupAddress[]> {
  const [four, six] = await Promise.all([
    resolver.resolve4(host).catch((): string[] => []),
    resolver.resolve6(host).catch((): string[] => []),
  ])
  return [
    ...four.map((address) => ({ address, family: 4 })),
    ...six.map((address) => ({ address, family: 6 })),
  ]
}
