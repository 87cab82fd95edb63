import { readFileSync } from 'node:fs'
import { limits } from '@tollbase/contract/limits'
import type { Logger } from 'pino'
import type { World } from './base/world.ts'
import type { Config } from './config.ts'
import { ConfigError } from './config-file.ts'
import type { Database } from './database/database.ts'
import type { Devnet } from './devnet/devnet.ts'
import { pinNetwork } from './domains/payments/network-pin.ts'
import type { Way } from './domains/payments/purchase.ts'
import { checkChain, genesisHashOf } from './x402/chain.ts'
import { evmFacilitator } from './x402/evm-facilitator.ts'
import { bytesOf } from './x402/hex.ts'
import { nativeTransfers } from './x402/native-transfer.ts'
import { networkIdOf, type PaymentNetwork, paymentNetwork } from './x402/networks.ts'
import { remoteFacilitator } from './x402/remote-facilitator.ts'
import { openRpc, type Rpc } from './x402/rpc.ts'
import { JournaledSender } from './x402/sender.ts'

type Parts = { readonly database: Database; readonly world: World; readonly log: Logger }
/** A key of ours that pays gas. */
export type GasKey = {
  readonly network: string
  readonly address: string
  /** In the smallest unit of the chain's own coin. */
  readonly balance: () => Promise<bigint>
}

export type Ways = {
  readonly ways: readonly Way[]
  readonly gasKeys: readonly GasKey[]
  readonly close: () => Promise<void>
}

/** The networks on which the service takes payments: those of the configuration, or the devnet's alone. */
export async function openWays(
  config: Config,
  devnet: Devnet | undefined,
  parts: Parts,
): Promise<Ways> {
  const opened = devnet
    ? [await devnetWay(devnet, parts)]
    : await Promise.all(config.networks.map((one, at) => configuredWay(one, at, parts)))
  return {
    ways: opened.map(({ way }) => way),
    gasKeys: opened.flatMap(({ gasKey }) => gasKey ?? []),
    close: async () => {
      await Promise.all(opened.map((one) => one.close()))
    },
  }
}

type Opened = {
  readonly way: Way
  readonly gasKey?: GasKey
  readonly close: () => Promise<void>
}

async function devnetWay(devnet: Devnet, parts: Parts): Promise<Opened> {
  const { id } = devnet.network
  const genesisHash = await pinNetwork(parts.database, id, devnet.genesisHash)
  const network = { ...devnet.network, genesisHash }
  const rpc = openRpc({ url: devnet.rpcUrl, world: parts.world })
  // Another chain of the same id is other money: balances earned on it would not be there.
  await checkChain(rpc, network)
  const opened = await ownWay({ network, rpc, key: devnet.keys.gas, pollMs: 4 }, parts)
  return withNative(opened, { rpc, confirmations: 1, pollMs: 20 }, parts)
}

async function configuredWay(
  settings: Config['networks'][number],
  at: number,
  parts: Parts,
): Promise<Opened> {
  const where = `networks[${at}]`
  const id = settings.network.startsWith('eip155:')
    ? settings.network
    : networkIdOf(settings.network)
  const chainId = Number(id?.slice('eip155:'.length))
  if (!Number.isSafeInteger(chainId) || chainId <= 0)
    throw new ConfigError(
      `${where}.network: ${settings.network} is not known; use a CAIP-2 id such as eip155:8453`,
    )
  const { asset, rpc_url: rpcUrl, facilitator_url: facilitatorUrl } = settings
  const bare = paymentNetwork({
    chainId,
    payTo: settings.pay_to,
    ...(asset && { asset: { ...asset, symbol: asset.symbol ?? asset.name } }),
    ...(rpcUrl !== undefined && { rpcUrl }),
    ...(facilitatorUrl !== undefined && { facilitatorUrl }),
  })
  const rpc = rpcUrl === undefined ? undefined : openRpc({ url: rpcUrl, world: parts.world })
  const network = rpc ? await pinned(bare, rpc, parts) : bare
  const confirmations = settings.confirmations ?? 1
  const finish = (opened: Opened): Opened => {
    if (settings.native_transfers !== true) return opened
    if (rpc === undefined) throw new ConfigError(`${where}.native_transfers needs rpc_url`)
    return withNative(opened, { rpc, confirmations, pollMs: 1_000 }, parts)
  }
  if (facilitatorUrl !== undefined) {
    const facilitator = remoteFacilitator({
      url: facilitatorUrl,
      world: parts.world,
      log: parts.log,
      ...(rpc && { rpc }),
    })
    return finish({ way: { network, facilitator }, close: async () => rpc?.close() })
  }
  if (rpc === undefined)
    throw new ConfigError(`${where}: give rpc_url and signer_key_file, or facilitator_url`)
  if (settings.signer_key_file === undefined)
    throw new ConfigError(`${where}.signer_key_file is needed to settle with our own key`)
  const key = readKey(settings.signer_key_file, where)
  return finish(await ownWay({ network, rpc, key, pollMs: 500, confirmations }, parts))
}

/** The way, with transfers that payers make themselves: read from a node that must serve the network's own chain. */
function withNative(
  opened: Opened,
  by: { rpc: Rpc; confirmations: number; pollMs: number },
  parts: Parts,
): Opened {
  const { network } = opened.way
  let isChecked = network.genesisHash !== undefined
  const checked = async () => {
    if (isChecked) return
    const genesisHash = await pinNetwork(parts.database, network.id, await genesisHashOf(by.rpc))
    await checkChain(by.rpc, { ...network, genesisHash })
    isChecked = true
  }
  const returnSeconds = BigInt(limits.nativeProofSeconds)
  const native = nativeTransfers({ ...parts, ...by, network, returnSeconds, checked })
  return { ...opened, way: { ...opened.way, native } }
}

/** The network with its genesis pinned; one that cannot be reached now is checked by settlement later. */
async function pinned(network: PaymentNetwork, rpc: Rpc, parts: Parts): Promise<PaymentNetwork> {
  try {
    const genesisHash = await pinNetwork(parts.database, network.id, await genesisHashOf(rpc))
    const whole = { ...network, genesisHash }
    await checkChain(rpc, whole)
    return whole
  } catch (error) {
    parts.log.warn(
      { network: network.id, error: String(error) },
      'a payment network cannot be reached; settlements on it will answer 503',
    )
    return network
  }
}

async function ownWay(
  own: {
    network: PaymentNetwork
    rpc: Rpc
    key: Uint8Array
    pollMs: number
    confirmations?: number
  },
  parts: Parts,
): Promise<Opened> {
  const { network, rpc, key, pollMs } = own
  const sender = new JournaledSender({ ...parts, rpc, network, key })
  await sender.start()
  const confirmations = own.confirmations ?? 1
  const facilitator = evmFacilitator({
    rpc,
    sender,
    world: parts.world,
    log: parts.log,
    pollMs,
    confirmations,
  })
  const close = async () => {
    await sender.stop()
    rpc.close()
  }
  const gasKey = {
    network: network.id,
    address: sender.address,
    balance: () => sender.balance(),
  }
  return { way: { network, facilitator }, gasKey, close }
}

function readKey(path: string, where: string): Uint8Array {
  let text: string
  try {
    text = readFileSync(path, 'utf8').trim()
  } catch (error) {
    throw new ConfigError(`${where}.signer_key_file cannot be read: ${String(error)}`)
  }
  if (!/^0x[0-9a-fA-F]{64}$/.test(text))
    throw new ConfigError(`${where}.signer_key_file must hold one key as 0x and 64 hex digits`)
  return bytesOf(text)
}
