import { readFileSync } from 'node:fs'
import { limits } from '@tollbase/contract/limits'
import type { Logger } from 'pino'
import { SetupError } from '../../base/setup-error.ts'
import type { World } from '../../base/world.ts'
import type { Config } from '../../config/config.ts'
import { ConfigError } from '../../config/config-file.ts'
import type { Database } from '../../database/database.ts'
import type { Devnet } from '../../devnet/devnet.ts'
import { checkChain, genesisHashOf, headOf, WrongChain } from '../../x402/evm-chain.ts'
import { evmFacilitator } from '../../x402/evm-facilitator.ts'
import { bytesOf } from '../../x402/hex.ts'
import { nativeTransfers } from '../../x402/native-transfer.ts'
import { networkIdOf, type PaymentNetwork, paymentNetwork } from '../../x402/networks.ts'
import { remoteFacilitator } from '../../x402/remote-facilitator.ts'
import { checkedRpc, openRpc, type Rpc } from '../../x402/rpc.ts'
import { JournaledSender } from '../../x402/sender.ts'
import { noteRestore, pinNetwork, restoredAt, vouchedCount, vouchFor } from './network-pin.ts'
import type { Way } from './purchase.ts'

type Parts = {
  readonly database: Database
  readonly world: World
  readonly log: Logger
  /** The operator vouches for what this database does not know. */
  readonly isRestored: boolean
}

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
  { database, world, log }: Omit<Parts, 'isRestored'>,
): Promise<Ways> {
  const parts = { database, world, log, isRestored: config.afterRestore }
  const opened = devnet
    ? [await devnetWay(devnet, parts)]
    : await Promise.all(config.networks.map((one, at) => configuredWay(one, at, parts)))
  if (config.afterRestore) await noteRestore(database, world.now())
  return {
    ways: await Promise.all(opened.map(({ way }) => sinceRestore(way, database))),
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

async function sinceRestore(way: Way, database: Database): Promise<Way> {
  const seconds = await restoredAt(database, way.network.id)
  return seconds === undefined ? way : { ...way, restoredAt: seconds }
}

async function devnetWay(devnet: Devnet, parts: Parts): Promise<Opened> {
  const genesisHash = await pinNetwork(parts.database, devnet.network.id, devnet.genesisHash)
  if (genesisHash !== devnet.genesisHash)
    throw new SetupError(
      `the devnet of --data-dir begins with ${devnet.genesisHash}, and this database took money on one that begins with ${genesisHash}: data folder and database belong to different services`,
    )
  const { network } = devnet
  const rpc = openRpc({ url: devnet.rpcUrl, world: parts.world })
  const own = { network, rpc, key: devnet.keys.gas, pollMs: 4, where: 'the devnet' }
  return withNative(await ownWay(own, parts), { rpc, confirmations: 1, pollMs: 20 }, parts)
}

async function configuredWay(
  settings: Config['networks'][number],
  at: number,
  parts: Parts,
): Promise<Opened> {
  const where = `networks[${at}]`
  const network = networkOf(settings, where)
  const { rpcUrl, facilitatorUrl } = network
  const node = rpcUrl === undefined ? undefined : openRpc({ url: rpcUrl, world: parts.world })
  const rpc = node && checkedRpc(node, () => checkPin(node, network, parts))
  if (rpc !== undefined) await tryNode(rpc, network, { where, log: parts.log })
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
  return finish(await ownWay({ network, rpc, key, pollMs: 500, confirmations, where }, parts))
}

function networkOf(settings: Config['networks'][number], where: string): PaymentNetwork {
  const id = settings.network.startsWith('eip155:')
    ? settings.network
    : networkIdOf(settings.network)
  const chainId = Number(id?.slice('eip155:'.length))
  if (!Number.isSafeInteger(chainId) || chainId <= 0)
    throw new ConfigError(
      `${where}.network: ${settings.network} is not known; use a CAIP-2 id such as eip155:8453`,
    )
  const { asset, rpc_url: rpcUrl, facilitator_url: facilitatorUrl } = settings
  return paymentNetwork({
    chainId,
    payTo: settings.pay_to,
    ...amountsOf(settings),
    ...(asset && { asset: { ...asset, symbol: asset.symbol ?? asset.name } }),
    ...(rpcUrl !== undefined && { rpcUrl }),
    ...(facilitatorUrl !== undefined && { facilitatorUrl }),
  })
}

function amountsOf({ minimum_payment, sweep_minimum }: Config['networks'][number]) {
  return {
    ...(minimum_payment !== undefined && { minimumPayment: BigInt(minimum_payment) }),
    ...(sweep_minimum !== undefined && { sweepMinimum: BigInt(sweep_minimum) }),
  }
}

/** The way, with transfers that payers make themselves. */
function withNative(
  opened: Opened,
  by: { rpc: Rpc; confirmations: number; pollMs: number },
  parts: Parts,
): Opened {
  const { network } = opened.way
  const returnSeconds = BigInt(limits.nativeProofSeconds)
  const native = nativeTransfers({ ...parts, ...by, network, returnSeconds })
  return { ...opened, way: { ...opened.way, native } }
}

/** Throws where the node serves another chain than the one that this database first took money on. */
async function checkPin(rpc: Rpc, network: PaymentNetwork, { database }: Parts): Promise<void> {
  await checkChain(rpc, network)
  const genesisHash = await pinNetwork(database, network.id, await genesisHashOf(rpc))
  await checkChain(rpc, { ...network, genesisHash })
}

/** A node that cannot be reached now is checked when it can; one of another chain is a mistake. */
async function tryNode(
  rpc: Rpc,
  network: PaymentNetwork,
  { where, log }: { where: string; log: Logger },
): Promise<void> {
  try {
    await headOf(rpc)
  } catch (error) {
    if (error instanceof WrongChain) throw new ConfigError(`${where}.rpc_url: ${error.internal}`)
    const fields = { network: network.id, error: String(error) }
    log.warn(fields, 'a payment network cannot be reached; settlements on it will answer 503')
  }
}

type Own = {
  readonly network: PaymentNetwork
  readonly rpc: Rpc
  readonly key: Uint8Array
  readonly pollMs: number
  readonly confirmations?: number
  /** Names the settings in what the operator is told. */
  readonly where: string
}

async function ownWay(own: Own, parts: Parts): Promise<Opened> {
  const { network, rpc, key, pollMs } = own
  const sender = new JournaledSender({ ...parts, rpc, network, key })
  await refuseForeignKey(sender, own, parts)
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

/**
 * Every transaction of our key is journaled before it leaves. Where the chain knows of more, another database takes
 * payments with the same settings, or this one is older than it was: either sells for what was sold already.
 */
async function refuseForeignKey(
  sender: JournaledSender,
  { network: { id: network }, where }: Own,
  { database, log, isRestored }: Parts,
): Promise<void> {
  const { address: signer } = sender
  const sent = await sender.sent().catch((error: unknown) => {
    log.warn(
      { network, error: String(error) },
      'whether the gas key is used elsewhere is not known',
    )
  })
  if (sent === undefined) return
  const vouched = await vouchedCount(database, { network, signer })
  const { mined, journaled } = sent
  if (mined <= journaled || mined <= vouched) return
  if (isRestored) return vouchFor(database, { network, signer, count: mined })
  throw new ConfigError(
    `${where}: on ${network} the gas key ${signer} has sent ${mined - journaled} transactions that this database does not know. ` +
      'A gas key and a pay_to serve one database: where another service uses them, take others. ' +
      'Where this database was restored from a backup, or the key had another use before, start once with --after-restore.',
  )
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
