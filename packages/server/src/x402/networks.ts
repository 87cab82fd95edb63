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
  /** The least amount that is sent out to payers and sellers, in atomic units, as each transfer costs gas. */
  readonly withdrawalMinimum: bigint
  /** The operator's fee for a withdrawal, in atomic units, beside its amount. */
  readonly withdrawalFee: bigint
  readonly rpcUrl?: string
  readonly facilitatorUrl?: string
  /** An explorer of the chain, which shows a transaction at `/tx/<hash>`; without a slash at its end. */
  readonly explorer?: string
  /** The hash of block 0, so that a test chain cannot pass as the real one of the same id. */
  readonly genesisHash?: string
  /** True of the local chain of this service, whose money is worth nothing. */
  readonly isDevnet?: true
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
  /** Defaults to a hundred times the smallest payment. */
  readonly withdrawalMinimum?: bigint
  /** Defaults to nothing. */
  readonly withdrawalFee?: bigint
  readonly rpcUrl?: string
  readonly facilitatorUrl?: string
  /** Defaults to the known one of the chain, except for a devnet; `none` for no explorer. */
  readonly explorer?: string
  readonly genesisHash?: string
  readonly isDevnet?: true
}

export type KnownNetwork = {
  /** The EIP-155 id. */
  readonly chainId: number
  /** The names that version 1 clients know it by (x402 1.2.0 and @x402/evm 2.27.0); we use the first. */
  readonly names: readonly string[]
  /** An explorer of the chain, as viem 2.57.0 has it. */
  readonly explorer?: string
  /** Circle's USDC with EIP-3009; address and domain name as @x402/evm 2.27.0 has them. */
  readonly usdc?: { readonly address: string; readonly name: string }
  /** Its money is worth nothing. */
  readonly isTest?: true
}

/** The networks that need no more settings than their name. */
const knownNetworks: readonly KnownNetwork[] = [
  {
    chainId: 1,
    names: ['ethereum'],
    explorer: 'https://etherscan.io',
    usdc: { address: '0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48', name: 'USD Coin' },
  },
  {
    chainId: 11155111,
    names: ['ethereum-sepolia', 'sepolia'],
    explorer: 'https://sepolia.etherscan.io',
    isTest: true,
  },
  { chainId: 2741, names: ['abstract'], explorer: 'https://abscan.org' },
  {
    chainId: 11124,
    names: ['abstract-testnet'],
    explorer: 'https://sepolia.abscan.org',
    isTest: true,
  },
  {
    chainId: 84532,
    names: ['base-sepolia'],
    explorer: 'https://sepolia.basescan.org',
    usdc: { address: '0x036cbd53842c5426634e7929541ec2318f3dcf7e', name: 'USDC' },
    isTest: true,
  },
  {
    chainId: 8453,
    names: ['base'],
    explorer: 'https://basescan.org',
    usdc: { address: '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913', name: 'USD Coin' },
  },
  {
    chainId: 43113,
    names: ['avalanche-fuji'],
    explorer: 'https://testnet.snowtrace.io',
    isTest: true,
  },
  {
    chainId: 43114,
    names: ['avalanche'],
    explorer: 'https://snowtrace.io',
    usdc: { address: '0xb97ef9ef8734c71904d8002f8b6bc66dd9c48a6e', name: 'USD Coin' },
  },
  { chainId: 4689, names: ['iotex'], explorer: 'https://iotexscan.io' },
  { chainId: 1329, names: ['sei'], explorer: 'https://seiscan.io' },
  { chainId: 1328, names: ['sei-testnet'], explorer: 'https://testnet.seiscan.io', isTest: true },
  { chainId: 137, names: ['polygon'], explorer: 'https://polygonscan.com' },
  {
    chainId: 80002,
    names: ['polygon-amoy'],
    explorer: 'https://amoy.polygonscan.com',
    isTest: true,
  },
  { chainId: 3338, names: ['peaq'], explorer: 'https://peaq.subscan.io' },
  { chainId: 1514, names: ['story'] },
  { chainId: 41923, names: ['educhain'], explorer: 'https://explorer.educhain.xyz' },
  {
    chainId: 324705682,
    names: ['skale-base-sepolia'],
    explorer: 'https://base-sepolia-testnet-explorer.skalenodes.com',
    isTest: true,
  },
  { chainId: 42161, names: ['arbitrum'], explorer: 'https://arbiscan.io' },
  {
    chainId: 421614,
    names: ['arbitrum-sepolia'],
    explorer: 'https://sepolia.arbiscan.io',
    isTest: true,
  },
]

/** Completes and checks settings; the messages are for the operator who wrote them. */
export function makePaymentNetwork(settings: NetworkSettings): PaymentNetwork {
  const { chainId, rpcUrl, facilitatorUrl, minimumPayment = 1_000n } = settings
  const known = knownNetworks.find((one) => one.chainId === chainId)
  const v1Name = settings.v1Name ?? known?.names[0]
  assert(v1Name !== undefined, `payment network ${chainId}: give its version 1 name`)
  const asset = settings.asset ?? findKnownAsset(known)
  assert(asset !== undefined, `payment network ${chainId}: give the asset`)
  const address = asset.address.toLowerCase()
  const payTo = settings.payTo.toLowerCase()
  const genesisHash = settings.genesisHash?.toLowerCase()
  const explorer = settings.explorer ?? (settings.isDevnet ? undefined : known?.explorer)
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
    withdrawalMinimum: settings.withdrawalMinimum ?? 100n * minimumPayment,
    withdrawalFee: settings.withdrawalFee ?? 0n,
    ...(rpcUrl === undefined ? {} : { rpcUrl }),
    ...(facilitatorUrl === undefined ? {} : { facilitatorUrl }),
    ...(explorer === undefined || explorer === 'none'
      ? {}
      : { explorer: explorer.replace(/\/+$/, '') }),
    ...(genesisHash === undefined ? {} : { genesisHash }),
    ...(settings.isDevnet === undefined ? {} : { isDevnet: settings.isDevnet }),
  }
}

/** Finds the explorer of a public chain by its CAIP-2 id. */
export function findKnownExplorer(id: string): string | undefined {
  return knownNetworks.find(({ chainId }) => id === `eip155:${chainId}`)?.explorer
}

/** Returns true if the network of this CAIP-2 id is known to be one for tests. */
export function isTestNetwork(id: string): boolean {
  return knownNetworks.some(({ chainId, isTest }) => isTest === true && id === `eip155:${chainId}`)
}

/** Finds a chain that money can be taken on, by a name of x402 or its CAIP-2 id. */
export function findKnownNetwork(name: string): KnownNetwork | undefined {
  return knownNetworks.find(
    ({ names, chainId }) => names.includes(name) || name === `eip155:${chainId}`,
  )
}

/** Lists the chains that money can be taken on, each by the name that we use. */
export function listNetworkNames(): readonly string[] {
  return knownNetworks.flatMap(({ names }) => names[0] ?? [])
}

/** Finds the CAIP-2 id of a version 1 name; undefined if no client knows the name. */
export function findNetworkId(v1Name: string): string | undefined {
  const known = knownNetworks.find(({ names }) => names.includes(v1Name))
  return known && `eip155:${known.chainId}`
}

function findKnownAsset(known: KnownNetwork | undefined): Asset | undefined {
  return known?.usdc && { ...known.usdc, version: '2', symbol: 'USDC', decimals: 6 }
}
