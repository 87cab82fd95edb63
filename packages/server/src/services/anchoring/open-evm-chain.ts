import type { Log } from '../../base/log.ts'
import type { World } from '../../base/world.ts'
import { ConfigError } from '../../config/config-file.ts'
import type { Database } from '../../database/database.ts'
import { checkChain, readGenesisHash, readHead, WrongChain } from '../../x402/evm-chain.ts'
import { findNetworkId } from '../../x402/networks.ts'
import { makeCheckedRpc, openRpc, type Rpc } from '../../x402/rpc.ts'
import { pinNetwork } from '../payments/settling/network-pin.ts'

const weiPerGwei = 1e9

/** Converts a fee of the configuration into wei. */
export function toWei(gwei: number | undefined): bigint | undefined {
  return gwei === undefined ? undefined : BigInt(Math.round(gwei * weiPerGwei))
}

/** Opens a chain that the configuration names; `where` is its place there. */
export async function openEvmChain(
  settings: { readonly network: string; readonly rpc_url: string },
  {
    where,
    parts: { database, world, log },
  }: {
    readonly where: string
    readonly parts: { readonly database: Database; readonly world: World; readonly log: Log }
  },
): Promise<{
  readonly network: { readonly id: string; readonly chainId: number }
  readonly rpc: Rpc
}> {
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
  return { network, rpc }
}

/** A key of ours that pays gas on a network. */
export type SendingKey = {
  readonly network: string
  readonly address: string
  /** The thing that it sends; settlements where not given. */
  readonly use?: string
}

/** Refuses keys that have a sender already: two would give one nonce to two transactions, and each hold up the other. */
export function refuseSharedKeys(
  senders: readonly { readonly network: string; readonly place: { readonly signer?: string } }[],
  { use, before }: { readonly use: string; readonly before: readonly SendingKey[] },
): void {
  const keys: SendingKey[] = [
    ...before,
    ...senders.flatMap(({ network, place: { signer: address } }) =>
      address === undefined ? [] : [{ network, address, use }],
    ),
  ]
  keys.forEach(({ network, address }, at) => {
    const other = keys
      .slice(0, at)
      .find((one) => one.network === network && one.address === address)
    if (other !== undefined)
      throw new ConfigError(
        `${use}: on ${network} the key of ${address} sends ${other.use ?? 'settlements'} already; give these ${use} a key of their own`,
      )
  })
}
