import { EvmOutlet } from '../../anchors/evm-outlet.ts'
import type { World } from '../../base/world.ts'
import type { Config } from '../../config/config.ts'
import type { Devnet } from '../../devnet/devnet.ts'
import { openRpc, type Rpc } from '../../x402/rpc.ts'
import { JournaledSender } from '../../x402/sender.ts'
import {
  openEvmChain,
  refuseSharedKeys,
  type SendingKey,
  toWei,
} from '../anchoring/open-evm-chain.ts'
import type { Uses } from '../call.ts'
import { readKey } from '../identity/read-key.ts'
import { Outbox } from './outbox.ts'
import { Publishing, type PublishingOptions } from './publishing.ts'

type Parts = Uses<'database' | 'world' | 'log' | 'tenants'> & {
  /** Keys of ours that pay gas already; a nonce has one sender. */
  readonly keys: readonly SendingKey[]
}

type Settings = Pick<
  PublishingOptions,
  'intervalMs' | 'pollMs' | 'dayBytesMax' | 'applications'
> & {
  readonly network: { readonly id: string; readonly chainId: number }
  readonly rpc: Rpc
  readonly key: Uint8Array
  readonly contract?: string | undefined
  readonly confirmations: number
  readonly baseFeeMax?: bigint | undefined
}

const devnetIntervalMs = 5_000
const dayBytesDefault = 1_000_000
const pollMsMax = 1_000
const pollsOfInterval = 5

/** Starts to publish on the configured chains and, unless that is off, on the devnet. */
export async function startPublishing(
  config: Config,
  devnet: Devnet | undefined,
  parts: Parts,
): Promise<readonly Publishing[]> {
  if (config.publishers === 'off') return []
  const settings = [
    ...(devnet === undefined ? [] : [readDevnetSettings(devnet, parts.world)]),
    ...(await Promise.all(
      config.publishers.map((one, at) => readSettings(one, { where: `publishers[${at}]`, parts })),
    )),
  ]
  const outlets = settings.map((one) => makeOutlet(one, parts))
  refuseSharedKeys(outlets, { use: 'publications', before: parts.keys })
  const { database, world, log, tenants } = parts
  return settings.flatMap((one, at) => {
    const outlet = outlets[at]
    if (outlet === undefined) return []
    const outbox = new Outbox(database, outlet.network)
    const publishing = new Publishing({ ...one, outlet, outbox, tenants, world, log })
    publishing.start()
    return [publishing]
  })
}

function makeOutlet(settings: Settings, { database, world, log }: Parts): EvmOutlet {
  const { network, rpc, key, baseFeeMax } = settings
  const sender = new JournaledSender({ database, rpc, world, network, key, log, baseFeeMax })
  return new EvmOutlet({ ...settings, sender, world })
}

function readDevnetSettings({ network, rpcUrl, keys }: Devnet, world: World): Settings {
  return {
    network,
    rpc: openRpc({ url: rpcUrl, world }),
    key: keys.publisher,
    confirmations: 1,
    intervalMs: devnetIntervalMs,
    pollMs: 250,
    dayBytesMax: 1e12,
  }
}

async function readSettings(
  settings: Exclude<Config['publishers'], 'off'>[number],
  { where, parts }: { readonly where: string; readonly parts: Parts },
): Promise<Settings> {
  const intervalMs = (settings.interval_seconds ?? 60) * 1000
  return {
    ...(await openEvmChain(settings, { where, parts })),
    key: readKey(settings.signer_key_file, `${where}.signer_key_file`),
    contract: settings.contract?.toLowerCase(),
    confirmations: settings.confirmations ?? 2,
    baseFeeMax: toWei(settings.base_fee_gwei_max),
    intervalMs,
    pollMs: Math.min(pollMsMax, intervalMs / pollsOfInterval),
    dayBytesMax: settings.bytes_per_day ?? dayBytesDefault,
    applications: settings.applications,
  }
}
