import type { Logger } from 'pino'
import { CelestiaAnchors } from '../../anchors/celestia-anchors.ts'
import { EvmAnchors } from '../../anchors/evm-anchors.ts'
import type { World } from '../../base/world.ts'
import { intervalSecondsDefault } from '../../config/anchors-config.ts'
import type { Config } from '../../config/config.ts'
import type { Database } from '../../database/database.ts'
import type { Devnet } from '../../devnet/devnet.ts'
import { openRpc, type Rpc } from '../../x402/rpc.ts'
import { JournaledSender } from '../../x402/sender.ts'
import type { Tenants } from '../applications/tenants.ts'
import { readKey } from '../identity/read-key.ts'
import { Anchoring, type AnchoringOptions } from './anchoring.ts'
import { celestiaMembers, isCelestia, openCelestia, refuseMembers } from './open-celestia.ts'
import { openEvmChain, refuseSharedKeys, type SendingKey, toWei } from './open-evm-chain.ts'

type Parts = {
  readonly database: Database
  readonly world: World
  readonly log: Logger
  readonly tenants: Tenants
  /** Keys of ours that pay gas already; a nonce has one sender. */
  readonly gasKeys: readonly SendingKey[]
}

type Configured = Exclude<Config['anchors'], 'off'>[number]
type Opened = Pick<AnchoringOptions, 'anchors' | 'intervalMs' | 'pollMs'>

type EvmSettings = Omit<Opened, 'anchors'> & {
  readonly network: { readonly id: string; readonly chainId: number }
  readonly rpc: Rpc
  readonly key: Uint8Array
  readonly contract?: string | undefined
  readonly confirmations: number
  readonly feeMax?: bigint | undefined
}

const devnetIntervalMs = 5_000
const pollMsMax = 1_000

/** Starts to anchor on the configured chains and, unless that is off, on the devnet. */
export async function startAnchoring(
  config: Config,
  devnet: Devnet | undefined,
  parts: Parts,
): Promise<readonly Anchoring[]> {
  if (config.anchors === 'off') return []
  const opened = [
    ...(devnet === undefined
      ? []
      : [openEvmAnchors(readDevnetSettings(devnet, parts.world), parts)]),
    ...(await Promise.all(
      config.anchors.map((one, at) => openAnchors(one, { where: `anchors[${at}]`, parts })),
    )),
  ]
  refuseSharedKeys(
    opened.map(({ anchors }) => anchors),
    { use: 'anchors', before: parts.gasKeys },
  )
  const { database, world, log, tenants } = parts
  const anchoring = opened.map((one) => new Anchoring({ ...one, tenants, database, world, log }))
  for (const one of anchoring) one.start()
  return anchoring
}

async function openAnchors(
  settings: Configured,
  place: { readonly where: string; readonly parts: Parts },
): Promise<Opened> {
  if (!isCelestia(settings))
    return openEvmAnchors(await readEvmSettings(settings, place), place.parts)
  const { world, tenants } = place.parts
  const { origin } = tenants.system.chain
  const celestia = await openCelestia(settings, place)
  const anchors = new CelestiaAnchors({ ...celestia, origin, key: tenants.system.signer, world })
  return { anchors, intervalMs: readIntervalMs(settings), pollMs: pollMsMax }
}

function openEvmAnchors(settings: EvmSettings, { database, world, log }: Parts): Opened {
  const { network, rpc, key, feeMax, intervalMs, pollMs } = settings
  const sender = new JournaledSender({ database, rpc, world, network, key, log, feeMax })
  return { anchors: new EvmAnchors({ ...settings, sender, world }), intervalMs, pollMs }
}

function readDevnetSettings({ network, rpcUrl, keys }: Devnet, world: World): EvmSettings {
  return {
    network,
    rpc: openRpc({ url: rpcUrl, world }),
    key: keys.anchors,
    confirmations: 1,
    intervalMs: devnetIntervalMs,
    pollMs: 100,
  }
}

async function readEvmSettings(
  settings: Configured,
  { where, parts }: { readonly where: string; readonly parts: Parts },
): Promise<EvmSettings> {
  const { network, rpc } = await openEvmChain(settings, { where, parts })
  refuseMembers(settings, { where, names: celestiaMembers })
  return {
    network,
    rpc,
    key: readKey(settings.signer_key_file, `${where}.signer_key_file`),
    contract: settings.contract?.toLowerCase(),
    confirmations: settings.confirmations ?? 2,
    feeMax: toWei(settings.base_fee_gwei_max),
    intervalMs: readIntervalMs(settings),
    pollMs: pollMsMax,
  }
}

function readIntervalMs({
  interval_seconds: seconds = intervalSecondsDefault,
}: Configured): number {
  return seconds * 1000
}
