import type { Logger } from 'pino'
import { EvmAnchors } from '../../anchors/evm-anchors.ts'
import type { World } from '../../base/world.ts'
import type { Config } from '../../config/config.ts'
import type { Database } from '../../database/database.ts'
import type { Devnet } from '../../devnet/devnet.ts'
import { openRpc, type Rpc } from '../../x402/rpc.ts'
import { JournaledSender } from '../../x402/sender.ts'
import type { Tenants } from '../applications/tenants.ts'
import { readKey } from '../identity/read-key.ts'
import { Anchoring } from './anchoring.ts'
import { openEvmChain, refuseSharedKeys, type SendingKey, toWei } from './open-evm-chain.ts'

type Parts = {
  readonly database: Database
  readonly world: World
  readonly log: Logger
  readonly tenants: Tenants
  /** Keys of ours that pay gas already; a nonce has one sender. */
  readonly gasKeys: readonly SendingKey[]
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
  refuseSharedKeys(anchoring, { use: 'anchors', before: parts.gasKeys })
  for (const one of anchoring) one.start()
  return anchoring
}

function makeAnchoring(settings: Settings, parts: Parts): Anchoring {
  const { network, rpc, key, baseFeeMax, intervalMs, pollMs } = settings
  const { database, world, log, tenants } = parts
  const sender = new JournaledSender({ database, rpc, world, network, key, log, baseFeeMax })
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
  const { network, rpc } = await openEvmChain(settings, { where, parts })
  const interval = settings.interval_seconds ?? 60
  return {
    network,
    rpc,
    key: readKey(settings.signer_key_file, `${where}.signer_key_file`),
    contract: settings.contract?.toLowerCase(),
    confirmations: settings.confirmations ?? 2,
    baseFeeMax: toWei(settings.base_fee_gwei_max),
    intervalMs: interval * 1000,
    pollMs: 1_000,
  }
}
