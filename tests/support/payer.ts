import {
  createTestClient,
  createWalletClient,
  encodeFunctionData,
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
import { requirePresent } from '../../packages/server/src/base/assert.ts'
import type { Devnet } from '../../packages/server/src/devnet/devnet.ts'
import { type Api, type Asked, makeBuyer, type PaymentHeader, quote } from './buyer.ts'
import type { Json, TestReply } from './service.ts'

const erc20 = parseAbi(['function transfer(address to, uint256 value) returns (bool)'])

/** A service with a devnet, as a test service is. */
export type OnDevnet = { readonly running: { readonly devnet: Devnet | undefined } }

/** A payer that makes its transfers itself, with its own gas. */
export type Payer = {
  readonly account: LocalAccount
  readonly address: string
  /** Makes a plain transfer, which is in a block when this resolves. */
  readonly transfer: (moved: { to: string; value: bigint; token?: string }) => Promise<string>
  /** Signs the same transfer without sending it; `behind` leaves that many nonces free before it. */
  readonly sign: (
    moved: { to: string; value: bigint },
    behind?: number,
  ) => Promise<{ hash: string; send: () => Promise<void> }>
  /** Waits until the transaction is in a block. */
  readonly mined: (hash: string) => Promise<void>
}

/** Connects to the chain of a service's devnet as its operator's tools see it. */
export function connectDevnet(service: OnDevnet) {
  const { devnet } = service.running
  if (devnet === undefined) throw new Error('this needs the devnet')
  return connectChain(devnet.rpcUrl)
}

export function connectChain(rpcUrl: string) {
  const options = { chain: baseSepolia, pollingInterval: 5, transport: http(rpcUrl) } as const
  return createTestClient({ ...options, mode: 'anvil' }).extend(publicActions)
}

/** Creates a payer with test dollars and gas. */
export async function createFundedPayer(
  service: OnDevnet,
  amount = 100_000_000n,
  account: LocalAccount = privateKeyToAccount(generatePrivateKey()),
): Promise<Payer> {
  const { devnet } = service.running
  if (devnet === undefined) throw new Error('this needs the devnet')
  const chain = connectDevnet(service)
  await chain.setBalance({ address: account.address, value: 10n ** 20n })
  await devnet.faucet(account.address, amount)
  const wallet = createWalletClient({ account, chain: baseSepolia, transport: http(devnet.rpcUrl) })
  const call = { abi: erc20, functionName: 'transfer', gas: 200_000n } as const
  const fees = { maxFeePerGas: 10n ** 11n, maxPriorityFeePerGas: 10n ** 9n }
  const mined = async (hash: string) => void (await awaitMined(chain, hash))
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

/** Deploys a token of the same code at another address, of which the holder has some. */
export async function deployToken(service: OnDevnet, holder: string): Promise<string> {
  const { devnet } = service.running
  if (devnet === undefined) throw new Error('this needs the devnet')
  const chain = connectDevnet(service)
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
  await awaitMined(chain, hash)
  return address.toLowerCase()
}

/**
 * Waits for the receipt of a transaction in a block. It is asked for directly: `waitForTransactionReceipt` waits
 * for a further block where it asked a moment too early, and none comes on a devnet that mines for each transaction
 * (on a busy machine, 54 of 1,500 had not ended after two seconds).
 */
export async function awaitMined(
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

/** Finds the entry of a 402 for transfers that payers make themselves. */
export function findNativeEntry(required: TestReply): Json {
  const entry = required.body.accepts.find((one: Json) => one.extra.paymentMethod === 'native')
  expect(entry, required.text).toBeDefined()
  return entry
}

/** Makes the X-PAYMENT that the public SDK writes after a transfer. */
export function makeProof(
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

/** Requests, transfers the amount of the quote, and gives the header that proves it. */
export async function pay(service: Api, payer: Payer, asked: Asked): Promise<PaymentHeader> {
  const { payTo, maxAmountRequired, extra } = findNativeEntry(await quote(service, asked))
  const hash = await payer.transfer({ to: payTo, value: BigInt(maxAmountRequired) })
  return makeProof(extra.quoteId, hash)
}

function transferData(to: string, value: bigint): Hex {
  const word = (digits: string) => digits.padStart(64, '0')
  return `0xa9059cbb${word(to.slice(2).toLowerCase())}${word(value.toString(16))}`
}

/**
 * Makes the code of a token that gives one recipient nothing, as USDC does with those that its issuer blocks: it reverts
 * where the second word of a call is the recipient, and lets the code at another address do all else.
 */
function makeBlocking(recipient: string, code: string): Hex {
  const [blocked, rest] = [recipient.slice(2), code.slice(2)]
  return `0x60243573${blocked}14604957365f5f375f5f365f73${rest}5af43d5f5f3e6045573d5ffd5b3d5ff35b5f5ffd`
}

/** Lets the devnet's token refuse all transfers to a recipient, until the returned function is called. */
export async function blockTransfers(
  service: OnDevnet,
  recipient: string,
): Promise<() => Promise<void>> {
  const { devnet } = service.running
  if (devnet === undefined) throw new Error('this needs the devnet')
  const chain = connectDevnet(service)
  const token = devnet.network.asset.address as Hex
  const bytecode = await chain.getCode({ address: token })
  if (bytecode === undefined) throw new Error('there is no token')
  const elsewhere = privateKeyToAccount(generatePrivateKey()).address
  await chain.setCode({ address: elsewhere, bytecode })
  await chain.setCode({ address: token, bytecode: makeBlocking(recipient, elsewhere) })
  return () => chain.setCode({ address: token, bytecode })
}

const token = parseAbi([
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
])

/** A third party hands an authorization to the token. */
export async function handIn(service: OnDevnet, header: PaymentHeader): Promise<void> {
  const chain = connectDevnet(service)
  const text = Buffer.from(header['payment-signature'] ?? '', 'base64').toString()
  const { authorization: one, signature } = JSON.parse(text).payload
  const numbers = [BigInt(one.value), BigInt(one.validAfter), BigInt(one.validBefore)] as const
  const args = [one.from, one.to, ...numbers, one.nonce, signature] as const
  const data = encodeFunctionData({ abi: token, args })
  const { address } = makeBuyer().account
  await chain.setBalance({ address, value: 10n ** 20n })
  await chain.impersonateAccount({ address })
  const to = requirePresent(service.running.devnet?.token, 'a devnet') as Hex
  const sent = { from: address, to, gas: '0xf4240', data }
  const request = { method: 'eth_sendTransaction' as never, params: [sent] as never }
  const receipt = await awaitMined(chain, String(await chain.request(request)))
  expect(receipt.status).toBe('success')
}
