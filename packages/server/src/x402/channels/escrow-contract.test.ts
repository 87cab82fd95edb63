import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { computeChannelId as computeIdOfClients } from '@x402/evm/batch-settlement/client'
import {
  type Account,
  type Address,
  createTestClient,
  createWalletClient,
  encodeAbiParameters,
  encodeFunctionData,
  type Hex,
  http,
  publicActions,
} from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { baseSepolia } from 'viem/chains'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { noLog as log } from '../../base/log.ts'
import { realWorld as world } from '../../base/world.ts'
import { type Devnet, startDevnet } from '../../devnet/devnet.ts'
import {
  type ChannelConfig,
  collectorAddress,
  computeChannelId,
  computeDepositNonce,
  escrowAddress,
  isDepositSigned,
  isVoucherSigned,
} from './channel.ts'
import { channelEscrow } from './contracts.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollbase-escrow-'))
const { abi } = channelEscrow
const address: Address = escrowAddress
const chainId = 84532
let devnet: Devnet
let chain: ReturnType<typeof connect>

beforeAll(async () => {
  devnet = await startDevnet({ dataDir: folder, world, log })
  chain = connect()
})

afterAll(async () => {
  await devnet?.stop()
  rmSync(folder, { recursive: true, force: true })
})

function connect() {
  const options = {
    chain: baseSepolia,
    pollingInterval: 5,
    transport: http(devnet.rpcUrl),
  } as const
  return createTestClient({ ...options, mode: 'anvil' }).extend(publicActions)
}

type Person = Awaited<ReturnType<typeof makePerson>>

async function makePerson() {
  const account = privateKeyToAccount(generatePrivateKey())
  await chain.setBalance({ address: account.address, value: 10n ** 20n })
  return account
}

/** Sends a call; the name of the error where it reverts. */
async function send(account: Account, functionName: string, args: readonly unknown[]) {
  const call = { account, address, abi, functionName, args } as never
  try {
    await chain.simulateContract(call)
  } catch (error) {
    const found = /Error: (\w+)\(\)|reason:\n(.+)\n/.exec(String(error))
    return found?.[1] ?? found?.[2] ?? String(error)
  }
  const wallet = createWalletClient({ account, chain: baseSepolia, transport: http(devnet.rpcUrl) })
  const hash = await wallet.writeContract({ ...(call as object), gas: 1_000_000n } as never)
  for (;;) {
    const receipt = await chain.getTransactionReceipt({ hash }).catch(() => undefined)
    if (receipt !== undefined) return receipt.status
    await world.sleep(3)
  }
}

async function read<T>(functionName: string, ...args: readonly unknown[]): Promise<T> {
  return (await chain.readContract({ address, abi, functionName, args } as never)) as T
}

async function readToken(holder: Address): Promise<bigint> {
  const erc20 = [
    {
      type: 'function',
      name: 'balanceOf',
      stateMutability: 'view',
      inputs: [{ type: 'address' }],
      outputs: [{ type: 'uint256' }],
    },
  ] as const
  return chain.readContract({
    address: devnet.token as Address,
    abi: erc20,
    functionName: 'balanceOf',
    args: [holder],
  })
}

const domain = { name: 'x402 Batch Settlement', version: '1', chainId, verifyingContract: address }

function signVoucher(by: Person, channelId: string, maxClaimableAmount: bigint): Promise<Hex> {
  const types = {
    Voucher: [
      { name: 'channelId', type: 'bytes32' },
      { name: 'maxClaimableAmount', type: 'uint128' },
    ],
  } as const
  return by.signTypedData({
    domain,
    types,
    primaryType: 'Voucher',
    message: { channelId: channelId as Hex, maxClaimableAmount },
  })
}

const receiveTypes = {
  ReceiveWithAuthorization: [
    { name: 'from', type: 'address' },
    { name: 'to', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'validAfter', type: 'uint256' },
    { name: 'validBefore', type: 'uint256' },
    { name: 'nonce', type: 'bytes32' },
  ],
} as const

async function signDeposit(payer: Person, channelId: string, amount: bigint) {
  const salt = BigInt(`0x${world.randomBytes(32).toString('hex')}`)
  const validBefore = BigInt(Math.floor(world.now() / 1000) + 86_400)
  const signature = await payer.signTypedData({
    domain: { name: 'USDC', version: '2', chainId, verifyingContract: devnet.token as Address },
    types: receiveTypes,
    primaryType: 'ReceiveWithAuthorization',
    message: {
      from: payer.address,
      to: collectorAddress,
      value: amount,
      validAfter: 0n,
      validBefore,
      nonce: computeDepositNonce(channelId, salt) as Hex,
    },
  })
  const types = [
    { type: 'uint256' },
    { type: 'uint256' },
    { type: 'uint256' },
    { type: 'bytes' },
  ] as const
  const data = encodeAbiParameters(types, [0n, validBefore, salt, signature])
  return {
    data,
    deposit: { amount, validAfter: 0n, validBefore, salt, signature: signature.toLowerCase() },
  }
}

async function open(over: Partial<ChannelConfig> = {}, amount = 1_000n) {
  const [payer, receiver, authorizer, stranger] = [
    await makePerson(),
    await makePerson(),
    await makePerson(),
    await makePerson(),
  ]
  await devnet.faucet(payer.address, 100_000n)
  const config: ChannelConfig = {
    payer: payer.address.toLowerCase(),
    payerAuthorizer: payer.address.toLowerCase(),
    receiver: receiver.address.toLowerCase(),
    receiverAuthorizer: authorizer.address.toLowerCase(),
    token: devnet.token,
    withdrawDelay: 900,
    salt: `0x${'00'.repeat(32)}`,
    ...over,
  }
  const id = computeChannelId(chainId, config)
  const { data } = await signDeposit(payer, id, amount)
  const deposited =
    amount === 0n ? '' : await send(stranger, 'deposit', [config, amount, collectorAddress, data])
  const row = async (max: bigint, total: bigint, by: Person = payer) => ({
    voucher: { channel: config, maxClaimableAmount: max },
    signature: await signVoucher(by, id, max),
    totalClaimed: total,
  })
  return { payer, receiver, authorizer, stranger, config, id, deposited, row }
}

const state = (id: string) => read<readonly [bigint, bigint]>('channels', id)

test('ids and digests are those of the stock client, and what is signed by others is told apart', async () => {
  const { config, id, payer, stranger } = await open()
  expect(id).toBe(computeIdOfClients(config as never, 'eip155:84532').toLowerCase())
  expect(id).toBe(await read('getChannelId', config))
  const signature = (await signVoucher(payer, id, 77n)).toLowerCase()
  const voucher = { channelId: id, maxClaimable: 77n, signature }
  expect(isVoucherSigned(chainId, config, voucher)).toBe(true)
  expect(isVoucherSigned(chainId, config, { ...voucher, maxClaimable: 78n })).toBe(false)
  expect(isVoucherSigned(1, config, voucher)).toBe(false)
  expect(
    isVoucherSigned(chainId, { payerAuthorizer: stranger.address.toLowerCase() }, voucher),
  ).toBe(false)
  const { deposit } = await signDeposit(payer, id, 5n)
  const by = { payer: config.payer, channelId: id }
  expect(isDepositSigned(devnet.network, by, deposit)).toBe(true)
  expect(isDepositSigned(devnet.network, by, { ...deposit, amount: 6n })).toBe(false)
})

describe('a deposit', () => {
  test('comes from anyone, once, into the channel that it was signed for', async () => {
    const { deposited, id, payer, config, stranger } = await open()
    expect(deposited).toBe('success')
    expect(await state(id)).toEqual([1_000n, 0n])
    expect(await readToken(payer.address)).toBe(99_000n)
    const { data } = await signDeposit(payer, id, 10n)
    const other = { ...config, salt: `0x${'01'.repeat(32)}` }
    expect(await send(stranger, 'deposit', [other, 10n, collectorAddress, data])).toMatch(
      /invalid signature/,
    )
    expect(await send(stranger, 'deposit', [config, 11n, collectorAddress, data])).toMatch(
      /invalid signature/,
    )
    expect(await send(stranger, 'deposit', [config, 10n, collectorAddress, data])).toBe('success')
    expect(await send(stranger, 'deposit', [config, 10n, collectorAddress, data])).toMatch(
      /used or canceled/,
    )
    expect(await state(id)).toEqual([1_010n, 0n])
  })

  test('is refused with a delay, an amount, an address or a collector that is none', async () => {
    const { config, payer, stranger } = await open({}, 0n)
    const zero = `0x${'00'.repeat(20)}`
    const tried = async (
      over: Partial<ChannelConfig>,
      amount = 5n,
      collector = collectorAddress,
    ) => {
      const changed = { ...config, ...over }
      const { data } = await signDeposit(payer, computeChannelId(chainId, changed), amount)
      return send(stranger, 'deposit', [changed, amount, collector, data])
    }
    expect(await tried({ withdrawDelay: 899 })).toBe('WithdrawDelayOutOfRange')
    expect(await tried({ withdrawDelay: 2_592_001 })).toBe('WithdrawDelayOutOfRange')
    expect(await tried({ withdrawDelay: 2_592_000 })).toBe('success')
    for (const name of ['payer', 'receiver', 'receiverAuthorizer', 'token'] as const)
      expect(await tried({ [name]: zero }), name).toBe('InvalidChannel')
    expect(await tried({}, 0n)).toBe('ZeroAmount')
    expect(await tried({}, 5n, zero)).toBe('InvalidCollector')
    const collect = [
      {
        type: 'function',
        name: 'collect',
        stateMutability: 'nonpayable',
        outputs: [],
        inputs: ['address', 'address', 'uint256', 'bytes32', 'bytes'].map((type) => ({
          type,
          name: '',
        })),
      },
    ]
    const direct = encodeFunctionData({
      abi: collect,
      args: [config.payer, config.token, 5n, config.salt, '0x'],
    })
    await expect(
      chain.call({ account: stranger, to: collectorAddress, data: direct }),
    ).rejects.toThrow(/revert/)
  })
})

describe('a claim', () => {
  test('records totals for the receiver’s side alone, moves no token, and is settled by anyone', async () => {
    const { id, row, receiver, authorizer, stranger, config } = await open()
    expect(await send(stranger, 'claim', [[await row(600n, 500n)]])).toBe('NotAuthorized')
    expect(await send(authorizer, 'claim', [[]])).toBe('EmptyBatch')
    expect(await send(authorizer, 'claim', [[await row(600n, 500n)]])).toBe('success')
    expect(await state(id)).toEqual([1_000n, 500n])
    expect(await readToken(receiver.address)).toBe(0n)
    // A row that says no more than is recorded is skipped, whatever else is wrong with it.
    expect(
      await send(receiver, 'claim', [[await row(1n, 500n, stranger), await row(600n, 600n)]]),
    ).toBe('success')
    expect(await read('receivers', config.receiver, config.token)).toEqual([600n, 0n])
    expect(await send(stranger, 'settle', [config.receiver, config.token])).toBe('success')
    expect(await read('receivers', config.receiver, config.token)).toEqual([600n, 600n])
    expect(await readToken(receiver.address)).toBe(600n)
    expect(await send(stranger, 'settle', [config.receiver, config.token])).toBe('success')
    expect(await readToken(receiver.address)).toBe(600n)
  })

  test('reverts as a whole for one bad row', async () => {
    const { id, row, authorizer, stranger } = await open()
    const good = await row(400n, 400n)
    const claim = async (bad: unknown) => send(authorizer, 'claim', [[good, bad]])
    expect(await claim(await row(500n, 501n))).toBe('ClaimExceedsVoucher')
    expect(await claim(await row(1_001n, 1_001n))).toBe('ClaimExceedsBalance')
    expect(await claim(await row(500n, 500n, stranger))).toBe('InvalidSignature')
    const { signature, ...rest } = await row(500n, 500n)
    const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
    const high = (order - BigInt(`0x${signature.slice(66, 130)}`)).toString(16).padStart(64, '0')
    const v = signature.endsWith('1b') ? '1c' : '1b'
    for (const other of [
      `${signature.slice(0, 66)}${high}${v}`,
      `${signature.slice(0, -2)}${v === '1b' ? '01' : '00'}`,
      `${signature}00`,
      signature.slice(0, -2),
    ])
      expect(await claim({ ...rest, signature: other }), other).toBe('InvalidSignature')
    expect(await state(id)).toEqual([1_000n, 0n])
  })

  test('may be brought by anyone with the authorizer’s signature of the batch', async () => {
    const { id, row, authorizer, stranger } = await open()
    const rows = [await row(600n, 500n)]
    const types = {
      ClaimBatch: [{ name: 'claims', type: 'ClaimEntry[]' }],
      ClaimEntry: [
        { name: 'channelId', type: 'bytes32' },
        { name: 'maxClaimableAmount', type: 'uint128' },
        { name: 'totalClaimed', type: 'uint128' },
      ],
    } as const
    const claims = [{ channelId: id as Hex, maxClaimableAmount: 600n, totalClaimed: 500n }]
    const signed = await authorizer.signTypedData({
      domain,
      types,
      primaryType: 'ClaimBatch',
      message: { claims },
    })
    const more = [await row(600n, 501n)]
    expect(await send(stranger, 'claimWithSignature', [more, signed])).toBe('InvalidSignature')
    expect(await send(stranger, 'claimWithSignature', [[], signed])).toBe('EmptyBatch')
    expect(await send(stranger, 'claimWithSignature', [rows, signed])).toBe('success')
    expect(await state(id)).toEqual([1_000n, 500n])
  })
})

describe('a refund', () => {
  test('gives back what is not claimed, by the receiver’s side or its signature, each nonce once', async () => {
    const { id, row, config, authorizer, stranger, payer } = await open()
    expect(await send(payer, 'refund', [config, 100n])).toBe('NotAuthorized')
    expect(await send(authorizer, 'refund', [config, 100n])).toBe('success')
    expect(await state(id)).toEqual([900n, 0n])
    expect(await read('refundNonce', id)).toBe(1n)
    const types = {
      Refund: [
        { name: 'channelId', type: 'bytes32' },
        { name: 'nonce', type: 'uint256' },
        { name: 'amount', type: 'uint128' },
      ],
    } as const
    const message = { channelId: id as Hex, nonce: 1n, amount: 50n }
    const signature = await authorizer.signTypedData({
      domain,
      types,
      primaryType: 'Refund',
      message,
    })
    expect(await send(stranger, 'refundWithSignature', [config, 51n, 1n, signature])).toBe(
      'InvalidSignature',
    )
    expect(await send(stranger, 'refundWithSignature', [config, 50n, 1n, signature])).toBe(
      'success',
    )
    expect(await send(stranger, 'refundWithSignature', [config, 50n, 1n, signature])).toBe(
      'InvalidRefundNonce',
    )
    expect(await state(id)).toEqual([850n, 0n])
    // The stock way: claim, then refund all that is left.
    const claim = encodeFunctionData({
      abi,
      functionName: 'claim',
      args: [[await row(200n, 200n)]],
    } as never)
    const refund = encodeFunctionData({
      abi,
      functionName: 'refund',
      args: [config, 10_000n],
    } as never)
    expect(await send(authorizer, 'multicall', [[claim, refund]])).toBe('success')
    expect(await state(id)).toEqual([200n, 200n])
    expect(await readToken(payer.address)).toBe(99_800n)
    expect(await send(authorizer, 'refund', [config, 10n])).toBe('success')
    expect(await read('refundNonce', id)).toBe(4n)
    expect(await state(id)).toEqual([200n, 200n])
    expect(await send(authorizer, 'multicall', [[claim, '0x12345678']])).not.toBe('success')
  })
})

describe('a withdrawal', () => {
  test('is the payer’s, one at a time, after the delay, and of what is not claimed by then', async () => {
    const { id, row, config, authorizer, stranger, payer } = await open()
    expect(await send(stranger, 'initiateWithdraw', [config, 1n])).toBe('NotAuthorized')
    expect(await send(payer, 'initiateWithdraw', [config, 1_001n])).toBe('WithdrawExceedsBalance')
    expect(await send(payer, 'initiateWithdraw', [config, 0n])).toBe('ZeroAmount')
    expect(await send(payer, 'finalizeWithdraw', [config])).toBe('NoWithdrawalPending')
    expect(await send(payer, 'initiateWithdraw', [config, 1_000n])).toBe('success')
    expect(await send(payer, 'initiateWithdraw', [config, 1n])).toBe('WithdrawalPending')
    expect((await read<readonly [bigint, bigint]>('pendingWithdrawals', id))[0]).toBe(1_000n)
    expect(await send(payer, 'finalizeWithdraw', [config])).toBe('WithdrawDelayNotElapsed')
    // Claimed in time: the payer gets the rest.
    expect(await send(authorizer, 'claim', [[await row(300n, 300n)]])).toBe('success')
    await chain.increaseTime({ seconds: 901 })
    await chain.mine({ blocks: 1 })
    expect(await send(stranger, 'finalizeWithdraw', [config])).toBe('NotAuthorized')
    expect(await send(payer, 'finalizeWithdraw', [config])).toBe('success')
    expect(await state(id)).toEqual([300n, 300n])
    expect(await readToken(payer.address)).toBe(99_700n)
    // Too late: nothing is left to claim.
    expect(await send(authorizer, 'claim', [[await row(400n, 400n)]])).toBe('ClaimExceedsBalance')
  })

  test('is lowered and ended by refunds', async () => {
    const { id, config, authorizer, payer } = await open()
    expect(await send(payer, 'initiateWithdraw', [config, 800n])).toBe('success')
    expect(await send(authorizer, 'refund', [config, 100n])).toBe('success')
    expect((await read<readonly [bigint, bigint]>('pendingWithdrawals', id))[0]).toBe(800n)
    expect(await send(authorizer, 'refund', [config, 500n])).toBe('success')
    expect((await read<readonly [bigint, bigint]>('pendingWithdrawals', id))[0]).toBe(400n)
    expect(await send(authorizer, 'refund', [config, 400n])).toBe('success')
    expect(await read('pendingWithdrawals', id)).toEqual([0n, 0])
    expect(await state(id)).toEqual([0n, 0n])
  })
})
