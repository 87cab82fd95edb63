import { readFileSync } from 'node:fs'
import { formatNetwork, isCelestiaNetwork } from '@tollbase/verify/celestia/celestia-anchor'
import type { World } from '../../base/world.ts'
import { BlobJournal } from '../../celestia/blob-journal.ts'
import { BlobSender, SendProblem } from '../../celestia/blob-sender.ts'
import { openCelestiaNode } from '../../celestia/node.ts'
import type { Config } from '../../config/config.ts'
import { ConfigError } from '../../config/config-file.ts'
import type { Database } from '../../database/database.ts'

type Settings = Exclude<Config['anchors'] | Config['publishers'], 'off'>[number]

/** The id of the main network, which is also its usual name. */
const mainChainId = 'celestia'
const tokenCharsMax = 4_096
const evmMembers = ['signer_key_file', 'contract', 'confirmations', 'base_fee_gwei_max'] as const
/** Members that an EVM chain has no use for. */
export const celestiaMembers = ['token_file', 'gas_price_utia_max'] as const

/** Returns true where the configuration names a network of Celestia. */
export function isCelestia({ network }: Pick<Settings, 'network'>): boolean {
  return network === mainChainId || isCelestiaNetwork(network)
}

/** Opens a way to send blobs to a network that the configuration names; `where` is its place there. */
export async function openCelestia(
  settings: Settings,
  {
    where,
    parts: { database, world, log },
  }: {
    readonly where: string
    readonly parts: {
      readonly database: Database
      readonly world: World
      readonly log: { readonly warn: (fields: object, text: string) => void }
    }
  },
): Promise<{
  readonly network: string
  readonly sender: BlobSender
  readonly interrupt: () => void
}> {
  refuseMembers(settings, { where, names: evmMembers })
  const { network: name, rpc_url: url, token_file, gas_price_utia_max } = settings
  const network = name === mainChainId ? formatNetwork(mainChainId) : name
  const token = token_file === undefined ? undefined : readToken(token_file, `${where}.token_file`)
  const node = openCelestiaNode({ url, token, world })
  const sender = new BlobSender({
    ...{ node, world, log, gasPriceMax: gas_price_utia_max },
    chainId: network.slice(formatNetwork('').length),
    journal: new BlobJournal(database, network),
  })
  await sender.readHead().catch((error: unknown) => {
    if (error instanceof SendProblem) throw new ConfigError(`${where}.rpc_url: ${error.message}`)
    log.warn({ network, error: String(error) }, 'a node of Celestia cannot be asked')
  })
  return { network, sender, interrupt: () => node.close() }
}

/** Refuses members that mean nothing on this kind of chain: who set them expects something of them. */
export function refuseMembers(
  settings: Settings,
  { where, names }: { readonly where: string; readonly names: readonly (keyof Settings)[] },
): void {
  const found = names.find((name) => settings[name] !== undefined)
  if (found !== undefined)
    throw new ConfigError(`${where}.${found}: ${settings.network} has nothing that it could say of`)
}

function readToken(path: string, where: string): string {
  let text: string
  try {
    text = readFileSync(path, 'utf8').trim()
  } catch (error) {
    throw new ConfigError(`${where} cannot be read: ${String(error)}`)
  }
  if (!/^[\w.~+/=-]+$/.test(text) || text.length > tokenCharsMax)
    throw new ConfigError(`${where} must hold one token, as celestia-node prints it`)
  return text
}
