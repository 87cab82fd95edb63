import { limits } from '@tollbase/contract/limits'
import type { Logger } from 'pino'
import { assert } from '../../base/assert.ts'
import { SetupError } from '../../base/setup-error.ts'
import type { World } from '../../base/world.ts'
import type { Config } from '../../config/config.ts'
import { ConfigError } from '../../config/config-file.ts'
import type { Database } from '../../database/database.ts'
import type { Devnet } from '../../devnet/devnet.ts'
import { BlockWatch } from '../../x402/block-watch.ts'
import { findForeignCode, makeEscrow } from '../../x402/channels/escrow.ts'
import {
  checkChain,
  readChainTime,
  readGenesisHash,
  readHead,
  readTransactionTime,
  WrongChain,
} from '../../x402/evm-chain.ts'
import { makeEvmFacilitator, settleTimeoutMs } from '../../x402/evm-facilitator.ts'
import { Failures } from '../../x402/failures.ts'
import { makeNativeTransfers } from '../../x402/native-transfer.ts'
import {
  findKnownNetwork,
  isTestNetwork,
  makePaymentNetwork,
  type PaymentNetwork,
} from '../../x402/networks.ts'
import { makePaymentsUnderWay } from '../../x402/payments-under-way.ts'
import { makeRemoteFacilitator } from '../../x402/remote-facilitator.ts'
import { makeCheckedRpc, openRpc, type Rpc } from '../../x402/rpc.ts'
import { JournaledSender } from '../../x402/sender.ts'
import { deriveAddress } from '../../x402/signature.ts'
import { makeTreasury } from '../../x402/treasury.ts'
import { findMissingCode, makeUptoFacilitator } from '../../x402/upto/upto-facilitator.ts'
import { toWei } from '../anchoring/open-evm-chain.ts'
import { readKey } from '../identity/read-key.ts'
import type { PaymentMethod } from './payment-ports.ts'
import {
  findRestoredAt,
  listPinnedNetworks,
  noteRestore,
  noteRestoredBlock,
  pinNetwork,
  readVouchedCount,
  vouchFor,
} from './settling/network-pin.ts'
import { isOfPayments } from './signed-transactions.ts'

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

export type PaymentMethods = {
  readonly methods: readonly PaymentMethod[]
  readonly gasKeys: readonly GasKey[]
  readonly close: () => Promise<void>
}

/** Opens the payment methods: those of the configured networks, or the devnet's alone. */
export async function openPaymentMethods(
  config: Config,
  devnet: Devnet | undefined,
  { database, world, log }: Omit<Parts, 'isRestored'>,
): Promise<PaymentMethods> {
  const parts = { database, world, log, isRestored: config.afterRestore }
  const opened = devnet
    ? [await openDevnetMethod(devnet, parts, config)]
    : await Promise.all(
        config.networks.map((one, at) =>
          openConfiguredMethod(
            {
              ...one,
              channels: config.channels && (one.channels ?? false),
              upto: config.upto && one.upto === true,
            },
            at,
            parts,
          ),
        ),
      )
  await refuseMixedMoney(opened, database)
  if (config.afterRestore) {
    await noteRestore(database, world.now())
    for (const { method, rpc } of opened)
      if (rpc !== undefined)
        await noteRestoredBlock(database, method.network.id, () => readChainTime(rpc))
  }
  return {
    methods: await Promise.all(opened.map((one) => addChainReads(one, database))),
    gasKeys: opened.flatMap(({ gasKey }) => gasKey ?? []),
    close: async () => {
      await Promise.all(opened.map((one) => one.close()))
    },
  }
}

type OpenedMethod = {
  readonly method: PaymentMethod
  readonly gasKey?: GasKey
  readonly rpc?: Rpc | undefined
  readonly close: () => Promise<void>
}

/**
 * A payer has one balance for all networks, so money that came in on one may leave on another: where money goes out, test
 * money must never have come in.
 */
async function refuseMixedMoney(
  opened: readonly OpenedMethod[],
  database: Database,
): Promise<void> {
  const networks = opened.map(({ method }) => method.network)
  const paying = opened.find(({ method }) => method.treasury !== undefined)?.method.network
  if (paying === undefined) return
  const known = [...(await listPinnedNetworks(database)), ...networks.map(({ id }) => id)]
  const mixed = known.find((id) => isTestNetwork(id) !== isTestNetwork(paying.id))
  if (mixed !== undefined)
    throw new ConfigError(
      `networks: pay_to_key_file lets money out on ${paying.id}, and this database took money on ${mixed}, of which one is a test network: use a separate database for it, or no pay_to_key_file`,
    )
}

async function addChainReads(
  { method: opened, rpc }: OpenedMethod,
  database: Database,
): Promise<PaymentMethod> {
  const { address } = opened.network.asset
  const method = { ...opened, ...(rpc && { blocks: new BlockWatch(rpc, address) }) }
  const restoredAt = await findRestoredAt(database, method.network.id)
  if (restoredAt === undefined) return method
  const readTime = rpc && ((transaction: string) => readTransactionTime(rpc, transaction))
  return { ...method, restoredAt, ...(readTime && { readTime }) }
}

async function openDevnetMethod(
  devnet: Devnet,
  parts: Parts,
  { channels: hasChannels, upto: hasUpto }: Pick<Config, 'channels' | 'upto'>,
): Promise<OpenedMethod> {
  const genesisHash = await pinNetwork(parts.database, devnet.network.id, devnet.genesisHash)
  if (genesisHash !== devnet.genesisHash)
    throw new SetupError(
      `the devnet of --data-dir begins with ${devnet.genesisHash}, and this database took money on one that begins with ${genesisHash}: data folder and database belong to different services`,
    )
  const { network } = devnet
  const rpc = openRpc({ url: devnet.rpcUrl, world: parts.world })
  const where = 'the devnet'
  const own = { network, rpc, key: devnet.keys.gas, pollMs: 4, where, hasChannels, hasUpto }
  return addNativeTransfers(
    addTreasury(await openOwnMethod(own, parts), { rpc, key: devnet.keys.treasury }, parts),
    { rpc, confirmations: 1, pollMs: 20 },
    parts,
  )
}

async function openConfiguredMethod(
  settings: Config['networks'][number],
  at: number,
  parts: Parts,
): Promise<OpenedMethod> {
  const where = `networks[${at}]`
  const network = parseNetwork(settings, where)
  const { rpcUrl, facilitatorUrl } = network
  const node = rpcUrl === undefined ? undefined : openRpc({ url: rpcUrl, world: parts.world })
  const rpc = node && makeCheckedRpc(node, () => checkPin(node, network, parts))
  if (rpc !== undefined) await checkNode(rpc, network, { where, log: parts.log })
  const confirmations = settings.confirmations ?? 1
  const finish = (plain: OpenedMethod): OpenedMethod => {
    const opened = addConfiguredTreasury(plain, { rpc, settings, where }, parts)
    if (settings.native_transfers !== true) return opened
    if (rpc === undefined) throw new ConfigError(`${where}.native_transfers needs rpc_url`)
    return addNativeTransfers(opened, { rpc, confirmations, pollMs: 1_000 }, parts)
  }
  const { channels = false, upto: hasUpto = false } = settings
  if (facilitatorUrl !== undefined) {
    if (hasUpto) throw new ConfigError(`${where}.upto needs signer_key_file, not facilitator_url`)
    if (channels !== false)
      throw new ConfigError(`${where}.channels needs signer_key_file, not facilitator_url`)
    const facilitator = makeRemoteFacilitator({
      url: facilitatorUrl,
      network,
      world: parts.world,
      log: parts.log,
      ...(rpc && { rpc }),
    })
    return finish({ method: { network, facilitator }, rpc, close: async () => rpc?.close() })
  }
  if (rpc === undefined)
    throw new ConfigError(`${where}: give rpc_url and signer_key_file, or facilitator_url`)
  if (settings.signer_key_file === undefined)
    throw new ConfigError(`${where}.signer_key_file is needed to settle with our own key`)
  const key = readKey(settings.signer_key_file, `${where}.signer_key_file`)
  if (channels !== false) await refuseForeignCode(rpc, { channels, where })
  const missing = hasUpto ? await findMissingCode(rpc) : undefined
  if (missing !== undefined) throw new ConfigError(`${where}.upto: ${missing}; leave upto out`)
  const feeMax = toWei(settings.base_fee_gwei_max)
  const own = { network, rpc, key, pollMs: 500, confirmations, feeMax, where, hasUpto }
  return finish(await openOwnMethod({ ...own, hasChannels: channels !== false }, parts))
}

/** Money must not go into a contract that nobody has looked at. */
async function refuseForeignCode(
  rpc: Rpc,
  { channels, where }: { channels: true | { readonly code_hash: string }; where: string },
): Promise<void> {
  const codeHash = channels === true ? undefined : channels.code_hash
  const problem = await findForeignCode(rpc, codeHash)
  if (problem === undefined) return
  throw new ConfigError(
    `${where}.channels: ${problem}; leave channels out, or see "Channels on your network" in docs/channels.md`,
  )
}

function parseNetwork(settings: Config['networks'][number], where: string): PaymentNetwork {
  const known = findKnownNetwork(settings.network)
  assert(known !== undefined, `${where}.network was refused when it was read`)
  const { asset, rpc_url: rpcUrl, facilitator_url: facilitatorUrl, explorer } = settings
  return makePaymentNetwork({
    chainId: known.chainId,
    payTo: settings.pay_to,
    ...parseAmounts(settings),
    ...(asset && { asset: { ...asset, symbol: asset.symbol ?? asset.name } }),
    ...(rpcUrl !== undefined && { rpcUrl }),
    ...(facilitatorUrl !== undefined && { facilitatorUrl }),
    ...(explorer !== undefined && { explorer }),
  })
}

function parseAmounts(settings: Config['networks'][number]) {
  const { minimum_payment, sweep_minimum, withdrawal_minimum, withdrawal_fee } = settings
  return {
    ...(withdrawal_minimum !== undefined && { withdrawalMinimum: BigInt(withdrawal_minimum) }),
    ...(withdrawal_fee !== undefined && { withdrawalFee: BigInt(withdrawal_fee) }),
    ...(minimum_payment !== undefined && { minimumPayment: BigInt(minimum_payment) }),
    ...(sweep_minimum !== undefined && { sweepMinimum: BigInt(sweep_minimum) }),
  }
}

/** Adds transfers that payers make themselves to the payment method. */
function addNativeTransfers(
  opened: OpenedMethod,
  by: { rpc: Rpc; confirmations: number; pollMs: number },
  parts: Parts,
): OpenedMethod {
  const { network } = opened.method
  const returnSeconds = BigInt(limits.nativeProofSeconds)
  const native = makeNativeTransfers({ ...parts, ...by, network, returnSeconds })
  return { ...opened, method: { ...opened.method, native } }
}

function addConfiguredTreasury(
  opened: OpenedMethod,
  by: { rpc: Rpc | undefined; settings: Config['networks'][number]; where: string },
  parts: Parts,
): OpenedMethod {
  const { rpc, settings, where } = by
  const { pay_to_key_file: path } = settings
  if (path === undefined) return opened
  if (rpc === undefined) throw new ConfigError(`${where}.pay_to_key_file needs rpc_url`)
  const key = readKey(path, `${where}.pay_to_key_file`)
  const address = deriveAddress(key)
  if (address !== opened.method.network.payTo)
    throw new ConfigError(`${where}.pay_to_key_file is the key of ${address}, not of pay_to`)
  return addTreasury(opened, { rpc, key }, parts)
}

/** Adds that money can be sent out of the network's own address. */
function addTreasury(
  opened: OpenedMethod,
  { rpc, key }: { rpc: Rpc; key: Uint8Array },
  { world }: Parts,
): OpenedMethod {
  const { network, facilitator } = opened.method
  const treasury = makeTreasury({ network, facilitator, rpc, world, key })
  return { ...opened, method: { ...opened.method, treasury } }
}

/** Throws where the node serves another chain than the one that this database first took money on. */
async function checkPin(rpc: Rpc, network: PaymentNetwork, { database }: Parts): Promise<void> {
  await checkChain(rpc, network)
  const genesisHash = await pinNetwork(database, network.id, await readGenesisHash(rpc))
  await checkChain(rpc, { ...network, genesisHash })
}

/** A node that cannot be reached now is checked once it can be; a node of another chain is a configuration error. */
async function checkNode(
  rpc: Rpc,
  network: PaymentNetwork,
  { where, log }: { where: string; log: Logger },
): Promise<void> {
  try {
    await readHead(rpc)
  } catch (error) {
    if (error instanceof WrongChain) throw new ConfigError(`${where}.rpc_url: ${error.internal}`)
    const fields = { network: network.id, error: String(error) }
    log.warn(fields, 'a payment network cannot be reached; settlements on it will answer 503')
  }
}

type OwnKeySettings = {
  readonly network: PaymentNetwork
  readonly rpc: Rpc
  readonly key: Uint8Array
  readonly pollMs: number
  readonly confirmations?: number
  /** Wei. */
  readonly feeMax?: bigint | undefined
  /** The name of the settings in messages to the operator. */
  readonly where: string
  /** The network's contracts of payment channels are there, and are known. */
  readonly hasChannels: boolean
  /** The same of the scheme `upto`. */
  readonly hasUpto: boolean
}

async function openOwnMethod(own: OwnKeySettings, parts: Parts): Promise<OpenedMethod> {
  const { network, rpc, key, pollMs, feeMax } = own
  const adopts = isOfPayments
  const sender = new JournaledSender({ ...parts, rpc, network, key, feeMax, adopts })
  await refuseForeignKey(sender, own, parts)
  await sender.start()
  const confirmations = own.confirmations ?? 1
  const { world, log } = parts
  const failures = new Failures({ rpc, world })
  const underWay = makePaymentsUnderWay({ rpc, network, world, pollMs, waitMs: settleTimeoutMs })
  const by = { rpc, network, sender, world, log, pollMs, confirmations, failures, underWay }
  const facilitator = makeEvmFacilitator(by)
  const close = async () => {
    await sender.stop()
    rpc.close()
  }
  const gasKey = {
    network: network.id,
    address: sender.address,
    balance: () => sender.balance(),
  }
  const method = {
    ...{ network, facilitator },
    ...(own.hasUpto && { upto: makeUptoFacilitator(by) }),
    ...(own.hasChannels && { escrow: makeEscrow(by) }),
  }
  return { method, rpc, gasKey, close }
}

/**
 * Every transaction of our key is journaled before it is sent. Where the chain knows of more, another database
 * takes payments with the same settings, or this one was restored to an older state: either would accept payments
 * that have already bought something.
 */
async function refuseForeignKey(
  sender: JournaledSender,
  { network: { id: network }, where }: OwnKeySettings,
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
  const vouched = await readVouchedCount(database, { network, signer })
  const { mined, journaled } = sent
  if (mined <= journaled || mined <= vouched) return
  if (isRestored) return vouchFor(database, { network, signer, count: mined })
  throw new ConfigError(
    `${where}: on ${network} the gas key ${signer} has sent ${mined - journaled} transactions that this database does not know. ` +
      'A gas key and a pay_to serve one database: where another service uses them, take others. ' +
      'Where this database was restored from a backup, or the key had another use before, start once with --after-restore.',
  )
}
