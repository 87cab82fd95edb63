import type { Logger } from 'pino'
import { EvmAnchors } from '../../anchors/evm-anchors.ts'
import type { World } from '../../base/world.ts'
import type { Config } from '../../config/config.ts'
import { ConfigError } from '../../config/config-file.ts'
import type { Database } from '../../database/database.ts'
import type { Devnet } from '../../devnet/devnet.ts'
import { checkChain, readGenesisHash, readHead, WrongChain } from '../../x402/evm-chain.ts'
import { findNetworkId } from '../../x402/networks.ts'
import { makeCheckedRpc, openRpc, type Rpc } from '../../x402/rpc.ts'
import { JournaledSender } from '../../x402/sender.ts'
import type { Tenants } from '../applications/tenants.ts'
import { readKey } from '../identity/read-key.ts'
import type { GasKey } from '../payments/open-payments.ts'
import { pinNetwork } from '../payments/settling/network-pin.ts'
import { Anchoring } from './anchoring.ts'

type Parts = {
  readonly database: Database
  readonly world: World
  readonly log: Logger
  readonly tenants: Tenants
  /** Keys of ours that pay gas already; a nonce has one sender. */
  readonly gasKeys: readonly GasKey[]
}

type Settings = {
  readonly network: { readonly id: string; readonly chainId: number }
  readonly rpc: Rpc
  readonly key: Uint8Array
  readonly contract?: string | undefined
  readonly confirmations: number
  readonly baseFeeMax?: bigint | undefined
  readonly intervalMs: number
  readonly pollMs: number
}

const devnetIntervalMs = 5_000
const weiPerGwei = 1e9

/** Starts to anchor on the configured chains and, unless that is off, on the devnet. */
export async function startAnchoring(
  config: Config,
  devnet: Devnet | undefined,
  parts: Parts,
): Promise<readonly Anchoring[]> {
  if (config.anchors === 'off') return []
  const settings = [
    ...(devnet === undefined ? [] : [readDevnetSettings(devnet, parts.world)]),
    ...(await Promise.all(
      config.anchors.map((one, at) => readSettings(one, { where: `anchors[${at}]`, parts })),
    )),
  ]
  const anchoring = settings.map((one) => makeAnchoring(one, parts))
  refuseSharedKeys(anchoring, parts)
  for (const one of anchoring) one.start()
  return anchoring
}

function makeAnchoring(settings: Settings, parts: Parts): Anchoring {
  const { network, rpc, key, intervalMs, pollMs } = settings
  const { database, world, log, tenants } = parts
  const sender = new JournaledSender({ database, rpc, world, network, key, log })
  const anchors = new EvmAnchors({ ...settings, sender, world })
  return new Anchoring({
    ...{ anchors, sender, rpc, tenants, database, world, log, intervalMs, pollMs },
  })
}

function readDevnetSettings({ network, rpcUrl, keys }: Devnet, world: World): Settings {
  return {
    network,
    rpc: openRpc({ url: rpcUrl, world }),
    key: keys.anchors,
    confirmations: 1,
    intervalMs: devnetIntervalMs,
    pollMs: 100,
  }
}

async function readSettings(
  settings: Exclude<Config['anchors'], 'off'>[number],
  { where, parts }: { readonly where: string; readonly parts: Parts },
): Promise<Settings> {
  const { database, world, log } = parts
  const id = settings.network.startsWith('eip155:')
    ? settings.network
    : findNetworkId(settings.network)
  const chainId = Number(id?.slice('eip155:'.length))
  if (id === undefined || !Number.isSafeInteger(chainId) || chainId <= 0)
    throw new ConfigError(
      `${where}.network: ${settings.network} is not known; use a CAIP-2 id such as eip155:8453`,
    )
  const network = { id, chainId }
  const plain = openRpc({ url: settings.rpc_url, world })
  const rpc = makeCheckedRpc(plain, async () => {
    await checkChain(plain, network)
    const genesisHash = await pinNetwork(database, id, await readGenesisHash(plain))
    await checkChain(plain, { ...network, genesisHash })
  })
  await readHead(rpc).catch((error: unknown) => {
    if (error instanceof WrongChain) throw new ConfigError(`${where}.rpc_url: ${error.internal}`)
    log.warn({ network: id, error: String(error) }, 'a chain for anchors cannot be reached')
  })
  const interval = settings.interval_seconds ?? 60
  return {
    network,
    rpc,
    key: readKey(settings.signer_key_file, `${where}.signer_key_file`),
    contract: settings.contract?.toLowerCase(),
    confirmations: settings.confirmations ?? 2,
    ...(settings.base_fee_gwei_max !== undefined && {
      baseFeeMax: BigInt(Math.round(settings.base_fee_gwei_max * weiPerGwei)),
    }),
    intervalMs: interval * 1000,
    pollMs: 1_000,
  }
}

/** Two senders of one key would give one nonce to two transactions, and each would hold up the other. */
function refuseSharedKeys(anchoring: readonly Anchoring[], { gasKeys }: Parts): void {
  const keys = [
    ...gasKeys.map(({ network, address }) => ({ network, address, use: 'settlements' })),
    ...anchoring.map(({ network, signer }) => ({ network, address: signer, use: 'anchors' })),
  ]
  keys.forEach(({ network, address }, at) => {
    const before = keys
      .slice(0, at)
      .find((one) => one.network === network && one.address === address)
    if (before !== undefined)
      throw new ConfigError(
        `anchors: on ${network} the key of ${address} sends ${before.use} already; give these anchors a key of their own`,
      )
  })
}
