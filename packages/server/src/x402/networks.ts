import { assert } from '../base/assert.ts'
import { isAddress, isHash } from './hex.ts'

/** An EIP-3009 token. `name` and `version` are those of its EIP-712 domain, not of a display. */
export type Asset = {
  /** Lower case. */
  readonly address: string
  readonly name: string
  readonly version: string
  readonly symbol: string
  readonly decimals: number
}

/** One chain on which the service takes one token at one address. */
export type PaymentNetwork = {
  /** CAIP-2, such as eip155:84532. */
  readonly id: string
  /** The name that version 1 of x402 uses, such as base-sepolia. */
  readonly v1Name: string
  readonly chainId: number
  readonly asset: Asset
  /** The payee's address; lower case. */
  readonly payTo: string
  /** The smallest payment that is asked for, in atomic units, as each payment costs a transaction. */
  readonly minimumPayment: bigint
  /** The least value at a quote's own deposit address that is swept to the payee, in atomic units. */
  readonly sweepMinimum: bigint
  readonly rpcUrl?: string
  readonly facilitatorUrl?: string
  /** The hash of block 0, so that a test chain cannot pass as the real one of the same id. */
  readonly genesisHash?: string
}

export type NetworkSettings = {
  readonly chainId: number
  /** Required if the chain is not a known one. */
  readonly v1Name?: string
  /** Defaults to the known USDC of the chain. */
  readonly asset?: Asset
  readonly payTo: string
  /** Defaults to a tenth of a cent, for a token with six decimals. */
  readonly minimumPayment?: bigint
  /** Defaults to the smallest payment. */
  readonly sweepMinimum?: bigint
  readonly rpcUrl?: string
  readonly facilitatorUrl?: string
  readonly genesisHash?: string
}

/** Names that version 1 clients know (x402 1.2.0 and @x402/evm 2.27.0) and their EIP-155 chain ids. */
const chainIds: Readonly<Record<string, number>> = {
  ethereum: 1,
  'ethereum-sepolia': 11155111,
  sepolia: 11155111,
  abstract: 2741,
  'abstract-testnet': 11124,
  'base-sepolia': 84532,
  base: 8453,
  'avalanche-fuji': 43113,
  avalanche: 43114,
  iotex: 4689,
  sei: 1329,
  'sei-testnet': 1328,
  polygon: 137,
  'polygon-amoy': 80002,
  peaq: 3338,
  story: 1514,
  educhain: 41923,
  'skale-base-sepolia': 324705682,
  arbitrum: 42161,
  'arbitrum-sepolia': 421614,
}

/** Circle's USDC with EIP-3009; addresses and domain names as @x402/evm 2.27.0 has them. */
const usdc: Readonly<Record<number, readonly [address: string, name: string]>> = {
  1: ['0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48', 'USD Coin'],
  8453: ['0x833589fcd6edb6e08f4c7c32d4f71b54bda02913', 'USD Coin'],
  84532: ['0x036cbd53842c5426634e7929541ec2318f3dcf7e', 'USDC'],
  43114: ['0xb97ef9ef8734c71904d8002f8b6bc66dd9c48a6e', 'USD Coin'],
}

/** Completes and checks settings; the messages are for the operator who wrote them. */
export function makePaymentNetwork(settings: NetworkSettings): PaymentNetwork {
  const { chainId, rpcUrl, facilitatorUrl, minimumPayment = 1_000n } = settings
  const v1Name = settings.v1Name ?? findNetworkName(chainId)
  assert(v1Name !== undefined, `payment network ${chainId}: give its version 1 name`)
  const asset = settings.asset ?? findKnownAsset(chainId)
  assert(asset !== undefined, `payment network ${chainId}: give the asset`)
  const address = asset.address.toLowerCase()
  const payTo = settings.payTo.toLowerCase()
  const genesisHash = settings.genesisHash?.toLowerCase()
  assert(isAddress(address), `payment network ${chainId}: the asset's address has 20 bytes`)
  assert(isAddress(payTo), `payment network ${chainId}: payTo is an address of 20 bytes`)
  assert(genesisHash === undefined || isHash(genesisHash), `${chainId}: genesisHash has 32 bytes`)
  return {
    id: `eip155:${chainId}`,
    v1Name,
    chainId,
    asset: { ...asset, address },
    payTo,
    minimumPayment,
    sweepMinimum: settings.sweepMinimum ?? minimumPayment,
    ...(rpcUrl === undefined ? {} : { rpcUrl }),
    ...(facilitatorUrl === undefined ? {} : { facilitatorUrl }),
    ...(genesisHash === undefined ? {} : { genesisHash }),
  }
}

/** Finds the CAIP-2 id of a version 1 name; undefined if no client knows the name. */
export function findNetworkId(v1Name: string): string | undefined {
  return Object.hasOwn(chainIds, v1Name) ? `eip155:${chainIds[v1Name]}` : undefined
}

function findNetworkName(chainId: number): string | undefined {
  return Object.keys(chainIds).find((name) => chainIds[name] === chainId)
}

function findKnownAsset(chainId: number): Asset | undefined {
  const known = usdc[chainId]
  if (known === undefined) return undefined
  return { address: known[0], name: known[1], version: '2', symbol: 'USDC', decimals: 6 }
}
