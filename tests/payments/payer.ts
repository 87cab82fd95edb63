import {
  createTestClient,
  createWalletClient,
  type Hex,
  http,
  keccak256,
  type LocalAccount,
  type PublicClient,
  parseAbi,
  publicActions,
  type TransactionReceipt,
} from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { baseSepolia } from 'viem/chains'
import { expect } from 'vitest'
import type { Devnet } from '../../packages/server/src/devnet/devnet.ts'
import type { Json, TestReply } from '../support/service.ts'
import { type Api, type Asked, type PaymentHeader, quote } from './buyer.ts'

const erc20 = parseAbi(['function transfer(address to, uint256 value) returns (bool)'])

/** Something with a devnet, as a test service is. */
export type OnDevnet = { readonly running: { readonly devnet: Devnet | undefined } }

/** A payer that makes its transfers itself, with its own gas. */
export type Payer = {
  readonly account: LocalAccount
  readonly address: string
  /** A plain transfer, in a block when it is given back. */
  readonly transfer: (moved: { to: string; value: bigint; token?: string }) => Promise<string>
  /** The same, signed and not sent; `behind` leaves so many nonces free before it. */
  readonly sign: (
    moved: { to: string; value: bigint },
    behind?: number,
  ) => Promise<{ hash: string; send: () => Promise<void> }>
  /** Waits until the transaction is in a block. */
  readonly mined: (hash: string) => Promise<void>
}

/** The chain of a service's devnet as its operator's tools see it. */
export function chainOf(service: OnDevnet) {
  const { devnet } = service.running
  if (devnet === undefined) throw new Error('this needs the devnet')
  return chainAt(devnet.rpcUrl)
}

export function chainAt(rpcUrl: string) {
  const options = { chain: baseSepolia, pollingInterval: 5, transport: http(rpcUrl) } as const
  return createTestClient({ ...options, mode: 'anvil' }).extend(publicActions)
}

/** A payer with test dollars and gas. */
export async function fundedPayer(service: OnDevnet, amount = 100_000_000n): Promise<Payer> {
  const { devnet } = service.running
  if (devnet === undefined) throw new Error('this needs the devnet')
  const account = privateKeyToAccount(generatePrivateKey())
  const chain = chainOf(service)
  await chain.setBalance({ address: account.address, value: 10n ** 20n })
  await devnet.faucet(account.address, amount)
  const wallet = createWalletClient({ account, chain: baseSepolia, transport: http(devnet.rpcUrl) })
  const call = { abi: erc20, functionName: 'transfer', gas: 200_000n } as const
  const fees = { maxFeePerGas: 10n ** 11n, maxPriorityFeePerGas: 10n ** 9n }
  const mined = async (hash: string) => void (await minedOn(chain, hash))
  return {
    account,
    address: account.address.toLowerCase(),
    mined,
    transfer: async ({ to, value, token = devnet.token }) => {
      const args = [to as Hex, value] as const
      const hash = await wallet.writeContract({ ...call, ...fees, address: token as Hex, args })
      await mined(hash)
      return hash
    },
    sign: async ({ to, value }, behind = 0) => {
      const request = await wallet.prepareTransactionRequest({
        ...fees,
        to: devnet.token as Hex,
        gas: 200_000n,
        data: transferData(to, value),
      })
      const nonce = request.nonce + behind
      const serializedTransaction = await wallet.signTransaction({ ...request, nonce })
      const send = async () => void (await wallet.sendRawTransaction({ serializedTransaction }))
      return { hash: keccak256(serializedTransaction), send }
    },
  }
}

/** A token of the same code at another address, of which the holder has some. */
export async function otherToken(service: OnDevnet, holder: string): Promise<string> {
  const { devnet } = service.running
  if (devnet === undefined) throw new Error('this needs the devnet')
  const chain = chainOf(service)
  const bytecode = await chain.getCode({ address: devnet.token as Hex })
  if (bytecode === undefined) throw new Error('the devnet has no token')
  const { address } = privateKeyToAccount(generatePrivateKey())
  await chain.setCode({ address, bytecode })
  const abi = parseAbi([
    'function MINTER() view returns (address)',
    'function mint(address to, uint256 value)',
  ])
  const minter = await chain.readContract({ address, abi, functionName: 'MINTER' })
  const args = [holder as Hex, 100_000_000n] as const
  // The devnet acts for the minter already.
  const wallet = createWalletClient({ chain: baseSepolia, transport: http(devnet.rpcUrl) })
  const hash = await wallet.writeContract({
    account: minter,
    address,
    abi,
    functionName: 'mint',
    args,
    gas: 200_000n,
  })
  await minedOn(chain, hash)
  return address.toLowerCase()
}

/**
 * The receipt of a transaction, when it is in a block. Asked for directly: `waitForTransactionReceipt`
 * waits for a further block where it asked a moment too early, and none comes on a devnet that mines
 * for each transaction (on a busy machine, 54 of 1,500 had not ended after two seconds).
 */
export async function minedOn(
  chain: Pick<PublicClient, 'getTransactionReceipt'>,
  hash: string,
): Promise<TransactionReceipt> {
  for (let tries = 0; tries < 4000; tries++) {
    const receipt = await chain.getTransactionReceipt({ hash: hash as Hex }).catch(() => undefined)
    if (receipt !== undefined) return receipt
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  throw new Error(`${hash} is in no block`)
}

/** The entry of a 402 for transfers that payers make themselves. */
export function nativeEntry(required: TestReply): Json {
  const entry = required.body.accepts.find((one: Json) => one.extra.paymentMethod === 'native')
  expect(entry, required.text).toBeDefined()
  return entry
}

/** X-PAYMENT as the public SDK writes it after a transfer. */
export function proof(
  quoteId: string | undefined,
  txHash: string,
  more: { network?: string; sender?: string } = {},
): PaymentHeader {
  const { network = 'base-sepolia', sender = 'unknown' } = more
  const timestamp = Math.floor(Date.now() / 1000)
  const payload = { txHash, sender, timestamp }
  const header = { x402Version: 1, scheme: 'exact', network, quoteId: quoteId ?? '', payload }
  return { 'x-payment': Buffer.from(JSON.stringify(header)).toString('base64') }
}

/** Asks, transfers what the quote says, and gives the header that proves it. */
export async function pay(service: Api, payer: Payer, asked: Asked): Promise<PaymentHeader> {
  const { payTo, maxAmountRequired, extra } = nativeEntry(await quote(service, asked))
  const hash = await payer.transfer({ to: payTo, value: BigInt(maxAmountRequired) })
  return proof(extra.quoteId, hash)
}

function transferData(to: string, value: bigint): Hex {
  const word = (digits: string) => digits.padStart(64, '0')
  return `0xa9059cbb${word(to.slice(2).toLowerCase())}${word(value.toString(16))}`
}
