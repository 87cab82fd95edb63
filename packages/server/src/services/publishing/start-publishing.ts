import { CelestiaPublishingChain } from '../../anchors/celestia-publishing-chain.ts'
import { EvmPublishingChain } from '../../anchors/evm-publishing-chain.ts'
import type { PublishingChain } from '../../anchors/publishing-chain.ts'
import type { World } from '../../base/world.ts'
import { intervalSecondsDefault, publishedBytesPerDayDefault } from '../../config/anchors-config.ts'
import type { Config } from '../../config/config.ts'
import type { Devnet } from '../../devnet/devnet.ts'
import { openRpc, type Rpc } from '../../x402/rpc.ts'
import { JournaledSender } from '../../x402/sender.ts'
import {
  celestiaMembers,
  isCelestia,
  openCelestia,
  refuseMembers,
} from '../anchoring/open-celestia.ts'
import {
  openEvmChain,
  refuseSharedKeys,
  type SendingKey,
  toWei,
} from '../anchoring/open-evm-chain.ts'
import type { Uses } from '../call.ts'
import { readKey } from '../identity/read-key.ts'
import { Bundles } from './bundles.ts'
import { Outbox } from './outbox.ts'
import { Publishing, type PublishingOptions } from './publishing.ts'

type Parts = Uses<'database' | 'world' | 'log' | 'tenants'> & {
  /** Keys of ours that pay gas already; a nonce has one sender. */
  readonly keys: readonly SendingKey[]
}

type Configured = Exclude<Config['publishers'], 'off'>[number]
type Pace = Pick<PublishingOptions, 'intervalMs' | 'pollMs' | 'dayBytesMax' | 'applications'>
type Opened = Pace & { readonly outer: PublishingChain }

type EvmSettings = Pace & {
  readonly network: { readonly id: string; readonly chainId: number }
  readonly rpc: Rpc
  readonly key: Uint8Array
  readonly contract?: string | undefined
  readonly confirmations: number
  readonly feeMax?: bigint | undefined
}

const devnetIntervalMs = 5_000
const pollMsMax = 1_000
const pollsOfInterval = 5

/** Starts to publish on the configured chains and, unless that is off, on the devnet. */
export async function startPublishing(
  config: Config,
  devnet: Devnet | undefined,
  parts: Parts,
): Promise<readonly Publishing[]> {
  if (config.publishers === 'off') return []
  const opened = [
    ...(devnet === undefined
      ? []
      : [openEvmPublishing(readDevnetSettings(devnet, parts.world), parts)]),
    ...(await Promise.all(
      config.publishers.map((one, at) =>
        openPublishingChain(one, { where: `publishers[${at}]`, parts }),
      ),
    )),
  ]
  refuseSharedKeys(
    opened.map(({ outer }) => outer),
    { use: 'publications', before: parts.keys },
  )
  const { database, world, log, tenants } = parts
  return opened.map((one) => {
    const outbox = new Outbox(database, one.outer.network)
    const bundles = new Bundles(database, one.outer.chunkBytesMax)
    const publishing = new Publishing({ ...one, outbox, bundles, tenants, world, log })
    publishing.start()
    return publishing
  })
}

async function openPublishingChain(
  settings: Configured,
  place: { readonly where: string; readonly parts: Parts },
): Promise<Opened> {
  if (!isCelestia(settings))
    return openEvmPublishing(await readEvmSettings(settings, place), place.parts)
  const celestia = await openCelestia(settings, place)
  const key = place.parts.tenants.system.signer
  return { ...readPace(settings), outer: new CelestiaPublishingChain({ ...celestia, key }) }
}

function openEvmPublishing(settings: EvmSettings, { database, world, log }: Parts): Opened {
  const { network, rpc, key, feeMax } = settings
  const sender = new JournaledSender({ database, rpc, world, network, key, log, feeMax })
  return { ...settings, outer: new EvmPublishingChain({ ...settings, sender, world }) }
}

function readDevnetSettings({ network, rpcUrl, keys }: Devnet, world: World): EvmSettings {
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

async function readEvmSettings(
  settings: Configured,
  { where, parts }: { readonly where: string; readonly parts: Parts },
): Promise<EvmSettings> {
  const opened = await openEvmChain(settings, { where, parts })
  refuseMembers(settings, { where, names: celestiaMembers })
  return {
    ...opened,
    key: readKey(settings.signer_key_file, `${where}.signer_key_file`),
    contract: settings.contract?.toLowerCase(),
    confirmations: settings.confirmations ?? 2,
    feeMax: toWei(settings.base_fee_gwei_max),
    ...readPace(settings),
  }
}

function readPace(settings: Configured): Pace {
  const intervalMs = (settings.interval_seconds ?? intervalSecondsDefault) * 1000
  return {
    intervalMs,
    pollMs: Math.min(pollMsMax, intervalMs / pollsOfInterval),
    dayBytesMax: settings.bytes_per_day ?? publishedBytesPerDayDefault,
    applications: settings.applications,
  }
}
