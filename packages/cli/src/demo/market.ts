import { type RunningService, startService } from '@tollbase/server/app'
import { formatDollars } from '@tollbase/server/base/format-usd'
import { realWorld } from '@tollbase/server/base/world'
import type { Config } from '@tollbase/server/config/config'
import { sql } from '@tollbase/server/database/sql'
import { createPublicClient, erc20Abi, getAddress, type Hex, http } from 'viem'
import { type Api, connectApi } from './api.ts'
import { formatSeconds, type Screen } from './screen.ts'

/** Everything that the steps share: the service, its interface, its money. */
export type Market = {
  readonly screen: Screen
  readonly api: Api
  readonly config: Config
  readonly running: RunningService
  /** Stops the service; a second call does nothing. */
  readonly close: () => Promise<void>
  /** The key that signs receipts and the service's own checkpoints. */
  readonly vkey: string
  /** The address on the chain that payments go to. */
  readonly treasury: string
  /** Test dollars of an address on the chain, in atomic units. */
  readonly onChain: (address: string) => Promise<bigint>
  /** Balance of an account of the service's ledger, in atomic units. */
  readonly inLedger: (account: string) => Promise<bigint>
}

type Folder = {
  readonly path: string
  readonly isKept: boolean
  /** Aborted when no request may be begun or awaited any more. */
  readonly stop: AbortSignal
}

/** Step 1: the whole service, with a data folder of its own. */
export async function openMarket(screen: Screen, folder: Folder): Promise<Market> {
  screen.step('Start the service')
  const startedAt = Date.now()
  const config = makeConfig(folder.path)
  const running = await startService({ config, world: realWorld })
  try {
    return await describe({ screen, config, running, folder, startedAt })
  } catch (error) {
    await running.close()
    throw error
  }
}

async function describe(start: {
  screen: Screen
  config: Config
  running: RunningService
  folder: Folder
  startedAt: number
}): Promise<Market> {
  const { screen, config, running, folder } = start
  const { service, devnet } = running
  const took = formatSeconds(start.startedAt)
  const api = connectApi(running.url, folder.stop)
  const [version] = await service.database.query<{ server_version: string }>(
    sql`SHOW server_version`,
  )
  const published = await api.call('getWellKnown', {})
  screen.check(
    (await api.call('getReady', {})).ready,
    `ready after ${took}, listening on ${api.url}`,
  )
  screen.facts([
    ['database', `PostgreSQL ${version?.server_version ?? ''}, a child process of this one`],
    ['chain', `a local EVM chain (id ${devnet?.chainId}) with a test dollar and a faucet`],
    ['data folder', `${folder.path} (${folder.isKept ? 'kept' : 'removed at the end'})`],
    ['signing key', published.receipt_public_key],
  ])
  screen.note('The buyer notes the signing key: every receipt must be signed with it.')
  const { system } = service.tenants
  let closing: Promise<void> | undefined
  return {
    screen,
    api,
    config,
    running,
    close: () => {
      closing ??= running.close()
      return closing
    },
    vkey: published.receipt_public_key,
    treasury: devnet?.network.payTo ?? '',
    onChain: makeBalanceReader(devnet?.rpcUrl ?? '', devnet?.token ?? ''),
    inLedger: async (account) => {
      await system.chain.whenApplied(system.chain.head().height)
      return (await system.ledger.readBalance(service.database, system.schema, account)).balance
    },
  }
}

/** Balances before and after something, on the chain and in the ledger. */
export async function readBalances(
  market: Market,
  buyer: string,
): Promise<{ onChain: bigint; here: bigint }> {
  const address = buyer.toLowerCase()
  const { available } = await market.api.call('getWallet', { params: { address } })
  return { onChain: await market.onChain(address), here: BigInt(available) }
}

export function formatMove(before: bigint, after: bigint): string {
  return before === after
    ? `${formatDollars(after)} (unchanged)`
    : `${formatDollars(before)} → ${formatDollars(after)}`
}

function makeConfig(dataDir: string): Config {
  return {
    host: '127.0.0.1',
    port: 0,
    dataDir,
    databaseUrl: undefined,
    operatorKey: undefined,
    publicUrl: undefined,
    serviceName: undefined,
    platformBasisPoints: 2000n,
    encryptionUpdatePrice: 0n,
    retentionPrice: 0n,
    storageFees: undefined,
    masterKeys: undefined,
    devnet: true,
    afterRestore: false,
    channels: true,
    upto: true,
    logLevel: 'error',
    logFormat: 'json',
    accessLog: false,
    rateLimits: {},
    registration: 'operator',
    quota: { bytes: null, records: null },
    trustProxy: [],
    drainMs: 8_000,
    blobBytesMax: 2 * 1024 * 1024,
    resultCacheBytes: 0,
    dataSets: [],
    networks: [],
    anchors: [],
    publishers: 'off',
    witnesses: [],
    allowedUpstreams: [],
  }
}

/** Reads balances from the chain itself, past the service. */
function makeBalanceReader(rpcUrl: string, token: string): Market['onChain'] {
  const chain = createPublicClient({ transport: http(rpcUrl) })
  const address: Hex = getAddress(token)
  return (holder) =>
    chain.readContract({
      address,
      abi: erc20Abi,
      functionName: 'balanceOf',
      args: [getAddress(holder)],
    })
}
