import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { isRecord } from '../base/is-record.ts'
import { makeFolder } from '../base/make-folder.ts'
import { Mutex } from '../base/mutex.ts'
import { SetupError } from '../base/setup-error.ts'
import type { World } from '../base/world.ts'
import { readBalance } from '../x402/authorization-use.ts'
import { collectorAddress, escrowAddress } from '../x402/channels/channel.ts'
import { authorizationCollector, channelEscrow } from '../x402/channels/contracts.ts'
import { readGenesisHash } from '../x402/evm-chain.ts'
import {
  computeSelector,
  encodeHex,
  encodeHexWord,
  encodeNumberWord,
  encodeQuantity,
  hashKeccak,
  isHash,
} from '../x402/hex.ts'
import { multicallAddress } from '../x402/joint.ts'
import { makePaymentNetwork, type PaymentNetwork } from '../x402/networks.ts'
import { openRpc, type Rpc } from '../x402/rpc.ts'
import type { PaymentLog } from '../x402/sender.ts'
import { deriveAddress } from '../x402/signature.ts'
import { TransactionReceipts } from '../x402/transaction-receipts.ts'
import { permit2Address, uptoProxyAddress } from '../x402/upto/upto-terms.ts'
import { findFreePort, findProcess, type ProcessId, spawnAnvil, stopProcess } from './anvil.ts'
import { multicall3, permit2, testDollar, uptoProxy } from './contracts.ts'
import { readIfThere, writeWhole } from './files.ts'
import { type DevnetKeys, loadDevnetKeys } from './keys.ts'
import { startMiner } from './miner.ts'
import { startStateKeeper } from './state-keeper.ts'

export type Devnet = {
  readonly rpcUrl: string
  readonly chainId: number
  readonly genesisHash: string
  /** Address of the test dollar: that of USDC on Base Sepolia, which stock clients pay with by default. */
  readonly token: string
  /** All of the above as the network that the service takes payments on. */
  readonly network: PaymentNetwork
  readonly keys: DevnetKeys
  readonly pid: number
  /** Makes test dollars; `amount` in atomic units, above 0. */
  readonly faucet: (
    address: string,
    amount: bigint,
  ) => Promise<{ readonly tx_hash: string; readonly balance: string }>
  /** Ends the chain; its state is kept. */
  readonly stop: () => Promise<void>
  /** Stops this process's part and leaves the chain running, for the next start to find. */
  readonly detach: () => Promise<void>
}

export type DevnetOptions = {
  /** Data folder; the chain lives in its folder `devnet`. */
  readonly dataDir: string
  readonly world: World
  readonly log: PaymentLog
  /** Port to use; when not given, the port of the last run where it is free, or any free one. */
  readonly port?: number
}

/** The id of Base Sepolia, because version 1 clients know only networks of their own table. */
const chainId = 84532
/** TestDollar.MINTER: nobody has its key; the devnet may act for it. */
const minter = encodeHex(hashKeccak(Buffer.from('tollbase devnet faucet')).subarray(12))
const mintSelector = computeSelector('mint(address,uint256)')
const nativeFunds = 10n ** 24n
const launchesMax = 3
const readyTimeoutMs = 60_000
const faucetTimeoutMs = 10_000
/** Wei: one coin. */
const faucetGas = 10n ** 18n

/** Starts the local chain of a data folder, or takes over the one that a crashed run left running. */
export async function startDevnet(options: DevnetOptions): Promise<Devnet> {
  const { dataDir, world, log } = options
  const folder = join(dataDir, 'devnet')
  makeFolder(folder, 0o700)
  const keys = loadDevnetKeys(folder, world)
  const genesisTime = loadGenesisTime(folder, world)
  const running =
    (await adopt(folder, options)) ?? (await launch(folder, { ...options, genesisTime }))
  const { rpc, rpcUrl, genesisHash, id } = running
  const network = makePaymentNetwork({
    chainId,
    payTo: deriveAddress(keys.treasury),
    // Gas costs nothing here.
    minimumPayment: 1n,
    rpcUrl,
    genesisHash,
    isDevnet: true,
  })
  await prepare(rpc, network, keys)
  // The chain's clock, which began at the time of block 0.
  await rpc.call('anvil_setTime', [Math.floor(world.now() / 1000)])
  const keeper = startStateKeeper({ rpcUrl, file: stateFile(folder), world, log })
  await keeper.save()
  writeJson(join(folder, 'chain.json'), { genesisTime, genesisHash })
  const stopMiner = startMiner({ rpc, world, log })
  const detach = async () => {
    await stopMiner()
    await keeper.stop()
    rpc.close()
  }
  return {
    rpcUrl,
    chainId,
    genesisHash,
    token: network.asset.address,
    network,
    keys,
    pid: id.pid,
    faucet: makeFaucet(rpc, network, world),
    stop: async () => {
      await keeper.save().catch((error: unknown) => log.warn({ error }, 'the devnet was not saved'))
      await detach()
      await stopProcess(id, world)
    },
    detach,
  }
}

type Running = {
  readonly id: ProcessId
  readonly rpc: Rpc
  readonly rpcUrl: string
  readonly genesisHash: string
}

/** Takes over the process of an earlier run, where it is still that process with that chain. */
async function adopt(folder: string, { world, log }: DevnetOptions): Promise<Running | undefined> {
  const known = readJson(join(folder, 'anvil.json'))
  const { pid, started, port, genesisHash } = known
  if (typeof pid !== 'number' || typeof port !== 'number') return undefined
  const id = findProcess(pid)
  if (id === undefined || id.started !== started) return undefined
  const rpcUrl = `http://127.0.0.1:${port}`
  const rpc = openRpc({ url: rpcUrl, world })
  const genesis = await readGenesisHash(rpc).catch(() => undefined)
  if (genesis !== undefined && genesis === genesisHash) {
    log.info({ pid, rpcUrl }, 'took over the running devnet')
    return { id, rpc, rpcUrl, genesisHash: genesis }
  }
  // It is this folder's process, but unusable.
  rpc.close()
  await stopProcess(id, world)
  return undefined
}

type Launch = DevnetOptions & { readonly genesisTime: number }

async function launch(folder: string, options: Launch): Promise<Running> {
  const { world, log } = options
  const last = readJson(join(folder, 'anvil.json')).port
  const { genesisHash: expected } = readJson(join(folder, 'chain.json'))
  let wanted = options.port ?? (typeof last === 'number' ? last : undefined)
  for (let attempt = 1; attempt <= launchesMax; attempt++) {
    const port = await findFreePort(wanted)
    const rpcUrl = `http://127.0.0.1:${port}`
    const rpc = openRpc({ url: rpcUrl, world })
    const id = await launchOn(rpc, port, { ...options, folder })
    if (id !== undefined) {
      const genesisHash = await readGenesisHash(rpc)
      if (expected !== undefined && expected !== genesisHash) {
        await stopProcess(id, world)
        throw new SetupError(
          `${folder}: its chain begins with ${genesisHash}, not with ${String(expected)} as before; restore the folder from a backup`,
        )
      }
      writeJson(join(folder, 'anvil.json'), { ...id, port, genesisHash })
      log.info({ pid: id.pid, rpcUrl }, 'started the devnet')
      return { id, rpc, rpcUrl, genesisHash }
    }
    rpc.close()
    // Another program can take the port between the check and the start.
    wanted = undefined
  }
  throw new SetupError(`the devnet does not start with its state ${stateFile(folder)}`)
}

/** Launches the chain on a port; undefined where the process ends before it answers. */
async function launchOn(
  rpc: Rpc,
  port: number,
  options: Launch & { readonly folder: string },
): Promise<ProcessId | undefined> {
  const { folder, genesisTime, world } = options
  const file = stateFile(folder)
  const { child, pid } = spawnAnvil({
    folder,
    stateFile: existsSync(file) ? file : undefined,
    chainId,
    genesisTime,
    port,
  })
  let ended = pid === undefined
  const end = () => {
    ended = true
  }
  child.on('error', end)
  child.on('exit', end)
  const deadline = world.now() + readyTimeoutMs
  while (!ended && world.now() < deadline) {
    const answer = await rpc.call('eth_chainId', []).catch(() => undefined)
    if (answer === encodeQuantity(chainId)) break
    await world.sleep(10)
  }
  const id = pid === undefined || ended ? undefined : findProcess(pid)
  if (id === undefined || world.now() < deadline) return id
  await stopProcess(id, world)
  return undefined
}

/**
 * Loads the time of block 0, in seconds since 1970: chosen at random at the first start, so that no two devnets
 * share a genesis, and the same ever after.
 */
function loadGenesisTime(folder: string, world: World): number {
  const file = join(folder, 'chain.json')
  const { genesisTime, genesisHash } = readJson(file)
  if (typeof genesisTime === 'number') {
    if (genesisHash !== undefined && !existsSync(stateFile(folder))) {
      throw new SetupError(
        `the state of the devnet is gone: ${stateFile(folder)}; restore it from a backup, or begin anew with another --data-dir`,
      )
    }
    return genesisTime
  }
  const chosen = Math.floor(world.now() / 1000) - (world.randomBytes(4).readUInt32BE() % 2 ** 29)
  writeJson(file, { genesisTime: chosen })
  return chosen
}

/** Puts contracts and gas money in place; harmless where they are already. */
async function prepare(rpc: Rpc, network: PaymentNetwork, keys: DevnetKeys): Promise<void> {
  const ours = [keys.gas, keys.treasury, keys.anchors, keys.publisher].map(deriveAddress)
  const funded = [...ours, minter]
  await Promise.all([
    rpc.call('anvil_setCode', [network.asset.address, testDollar.code]),
    rpc.call('anvil_setCode', [multicallAddress, multicall3.code]),
    rpc.call('anvil_setCode', [escrowAddress, channelEscrow.code]),
    rpc.call('anvil_setCode', [collectorAddress, authorizationCollector.code]),
    rpc.call('anvil_setCode', [permit2Address, permit2.code]),
    rpc.call('anvil_setCode', [uptoProxyAddress, uptoProxy.code]),
    ...funded.map((address) =>
      rpc.call('anvil_setBalance', [address, encodeQuantity(nativeFunds)]),
    ),
    rpc.call('anvil_impersonateAccount', [minter]),
    rpc.call('evm_setAutomine', [false]),
  ])
}

function makeFaucet(rpc: Rpc, network: PaymentNetwork, world: World): Devnet['faucet'] {
  // The chain counts the minter's nonces; two transactions at once could be given the same.
  const mutex = new Mutex()
  const receipts = new TransactionReceipts({ rpc, world, pollMs: 5, confirmations: 1 })
  return async (address, amount) => {
    const holder = address.toLowerCase()
    const data = `${mintSelector}${encodeHexWord(holder)}${encodeNumberWord(amount)}`
    const call = { from: minter, to: network.asset.address, data, gas: encodeQuantity(200_000) }
    const hash = await mutex.run(() => rpc.call('eth_sendTransaction', [call]))
    if (typeof hash !== 'string' || !isHash(hash)) throw new Error('the devnet gave no hash')
    const receipt = await receipts.wait([hash], faucetTimeoutMs)
    if (receipt?.succeeded !== true) throw new Error(`the faucet's transaction ${hash} failed`)
    // Wallets refuse to send a transaction of their own without any coin, though gas is free here.
    const coins = await rpc.call('eth_getBalance', [holder, 'latest'])
    if (BigInt(String(coins)) < faucetGas)
      await rpc.call('anvil_setBalance', [holder, encodeQuantity(faucetGas)])
    return { tx_hash: hash, balance: (await readBalance(rpc, network, holder)).toString() }
  }
}

function stateFile(folder: string): string {
  return join(folder, 'state.json')
}

function readJson(file: string): Readonly<Record<string, unknown>> {
  const text = readIfThere(file)
  const value: unknown = text === undefined ? {} : JSON.parse(text)
  return isRecord(value) ? value : {}
}

function writeJson(file: string, value: object): void {
  writeWhole(file, `${JSON.stringify(value, undefined, 2)}\n`)
}
