import { usdDecimals } from '../base/format-usd.ts'
import { findKnownNetwork, listNetworkNames } from '../x402/networks.ts'
import { ConfigError, type ConfigFile } from './config-file.ts'

type Networks = NonNullable<ConfigFile['networks']>

/** Checks the payment networks, and returns them. Throws a ConfigError where one cannot be used. */
export function readNetworks(networks: Networks): Networks {
  networks.forEach(({ network, asset }, at) => {
    const where = `networks[${at}]`
    const known = findKnownNetwork(network)
    if (known === undefined)
      throw new ConfigError(
        `${where}.network: ${network} is no chain that x402 has a name for; use one of ${listNetworkNames().join(', ')}, or its CAIP-2 id such as eip155:8453`,
      )
    if (asset === undefined && known.usdc === undefined)
      throw new ConfigError(
        `${where}.asset is needed: the USDC of ${known.names[0]} is not known here; name it as {"address", "name", "version", "symbol", "decimals": ${usdDecimals}}`,
      )
    // Every account and price counts dollars so; another token would be stated as wrong dollars, and priced so.
    if (asset !== undefined && asset.decimals !== usdDecimals)
      throw new ConfigError(
        `${where}.asset.decimals must be ${usdDecimals}, not ${asset.decimals}: balances and prices are counted in millionths of a dollar`,
      )
  })
  return networks
}
