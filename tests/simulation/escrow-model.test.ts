import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  BaseError,
  createTestClient,
  createWalletClient,
  encodeAbiParameters,
  encodeFunctionData,
  type Hex,
  http,
  publicActions,
  toFunctionSelector,
  toHex,
} from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { baseSepolia } from 'viem/chains'
import { expect, test } from 'vitest'
import { requirePresent } from '../../packages/server/src/base/assert.ts'
import { noLog as log } from '../../packages/server/src/base/log.ts'
import { realWorld as world } from '../../packages/server/src/base/world.ts'
import { startDevnet } from '../../packages/server/src/devnet/devnet.ts'
import {
  type ChannelConfig,
  collectorAddress,
  computeChannelId,
  escrowAddress,
} from '../../packages/server/src/x402/channels/channel.ts'
import { channelEscrow } from '../../packages/server/src/x402/channels/contracts.ts'
import type { PaymentNetwork } from '../../packages/server/src/x402/networks.ts'
import { deriveBuyerKey } from './buyer-keys.ts'
import { Chance } from './chance.ts'
import { decodeEscrowCalls } from './escrow-forms.ts'
import { applyCall, emptyBooks, Revert, readChannel, readReceiver } from './escrow-model.ts'
import { signDeposit, signVoucher } from './vouchers.ts'

const { abi } = channelEscrow
const address: Hex = escrowAddress
const steps = 150

/** Sends a call; returns what became of it: `success`, or the name of the contract's error. */
function makeSender(rpcUrl: string) {
  const options = { chain: baseSepolia, pollingInterval: 5, transport: http(rpcUrl) } as const
  const chain = createTestClient({ ...options, mode: 'anvil' }).extend(publicActions)
  const send = async (key: Buffer, data: Hex): Promise<string> => {
    const account = privateKeyToAccount(toHex(key))
    await chain.setBalance({ address: account.address, value: 10n ** 20n })
    try {
      await chain.call({ account, to: address, data })
    } catch (error) {
      if (!(error instanceof BaseError)) throw error
      const raw = error.walk((one) => 'data' in (one as object)) as { data?: unknown } | null
      return String(raw?.data ?? error.message).slice(0, 10)
    }
    const hash = await createWalletClient({ account, ...options }).sendTransaction({
      ...{ to: address, data, gas: 1_000_000n },
    })
    for (;;) {
      const receipt = await chain.getTransactionReceipt({ hash }).catch(() => undefined)
      if (receipt !== undefined) return receipt.status
      await world.sleep(3)
    }
  }
  const read = (functionName: string, ...args: readonly unknown[]) =>
    chain.readContract({ address, abi, functionName, args } as never) as Promise<readonly bigint[]>
  return { chain, send, read }
}

test('the model of the channel contract does what its code does, whoever calls it with what', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tollbase-escrow-model-'))
  const devnet = await startDevnet({ dataDir: folder, world, log })
  try {
    const { chain, send, read } = makeSender(devnet.rpcUrl)
    const { network, chainId } = devnet
    const chance = new Chance('the model of the channel contract')
    const keys = ['payer', 'signer', 'receiver', 'claimer', 'stranger'].map(deriveBuyerKey)
    const [payer, signer, receiver, claimer] = keys.map((key) =>
      privateKeyToAccount(toHex(key)).address.toLowerCase(),
    )
    await devnet.faucet(String(payer), 20_000_000n)
    const token = network.asset.address
    const configs = [900, 900, 60].map((withdrawDelay, at): ChannelConfig => {
      const people = { payer: String(payer), payerAuthorizer: String(at === 0 ? payer : signer) }
      const payee = { receiver: String(receiver), receiverAuthorizer: String(claimer) }
      return { ...people, ...payee, token, withdrawDelay, salt: toHex(at, { size: 32 }) }
    })
    let books = emptyBooks
    const outcomes = new Set<string>()
    for (let step = 0; step < steps; step++) {
      const config = chance.pick('channel', configs)
      const data = drawCall({ chance, keys, config, network, chainId, step })
      const sender = chance.pick('sender', keys)
      const { timestamp } = await chain.getBlock()
      const { calls } = decodeEscrowCalls(chainId, data)
      const context = {
        ...{ chainId, seconds: timestamp + 1n },
        sender: privateKeyToAccount(toHex(sender)).address.toLowerCase(),
      }
      let expected = 'success'
      try {
        books = calls.reduce((before, call) => applyCall(before, call, context), books)
      } catch (error) {
        if (!(error instanceof Revert)) throw error
        expected = error.message
      }
      const found = await send(sender, data)
      expect(`${step} ${calls[0]?.kind} ${names.get(found) ?? found}`).toBe(
        `${step} ${calls[0]?.kind} ${expected}`,
      )
      outcomes.add(`${calls[0]?.kind} ${expected}`)
      for (const one of configs) {
        const id = computeChannelId(chainId, one)
        const { balance, claimed, withdrawing, withdrawingSince } = readChannel(books, id)
        expect(await read('channels', id)).toEqual([balance, claimed])
        const [amount, since] = await read('pendingWithdrawals', id)
        expect([amount, Number(since) > 0]).toEqual([withdrawing, withdrawingSince > 0n])
      }
      const { claimed, settled } = readReceiver(books, String(receiver), token)
      expect(await read('receivers', receiver, token)).toEqual([claimed, settled])
      if (chance.happens('time passes', 300)) await chain.increaseTime({ seconds: 1_000 })
      await chain.mine({ blocks: 1 })
    }
    for (const kind of [
      'deposit',
      'claim',
      'settle',
      'refund',
      'initiateWithdraw',
      'finalizeWithdraw',
    ])
      expect(outcomes).toContain(`${kind} success`)
    expect(outcomes.size).toBeGreaterThan(12)
  } finally {
    await devnet.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}, 180_000)

/** The names of the contract's errors by their selectors. */
const names = new Map(
  abi.flatMap((item): [string, string][] =>
    item.type === 'error' ? [[toFunctionSelector(`${item.name}()`), item.name]] : [],
  ),
)

/** Draws a call of the contract, right or wrong in its amounts, its signature and its channel. */
function drawCall(by: {
  readonly chance: Chance
  readonly keys: readonly Buffer[]
  readonly config: ChannelConfig
  readonly network: PaymentNetwork
  readonly chainId: number
  readonly step: number
}): Hex {
  const { chance, keys, config, network, chainId, step } = by
  const encode = (functionName: string, args: readonly unknown[]) =>
    encodeFunctionData({ abi, functionName, args } as never)
  const channelId = computeChannelId(chainId, config)
  const amount = (what: string) => BigInt(chance.between(what, 0, 6)) * 100n
  const drawRow = () => {
    const maxClaimable = amount('voucher')
    const key = chance.happens('right key', 800)
      ? requirePresent(keys[config.payerAuthorizer === config.payer ? 0 : 1], 'a key')
      : chance.pick('key', keys)
    return {
      voucher: { channel: config, maxClaimableAmount: maxClaimable },
      signature: signVoucher(network, key, { channelId, maxClaimable }),
      totalClaimed: amount('total'),
    }
  }
  const kind = chance.pick('kind', [
    ...['deposit', 'deposit', 'claim', 'claim', 'claim', 'settle', 'refund', 'multicall'],
    ...['initiateWithdraw', 'finalizeWithdraw'],
  ])
  if (kind === 'deposit') {
    const [key = Buffer.alloc(32)] = keys
    const salt = toHex(step, { size: 32 })
    const value = amount('deposit')
    const signed = { key, config, channelId, amount: value, validBefore: 4_000_000_000, salt }
    const { erc3009Authorization: sent } = signDeposit(network, signed).authorization
    const collected = encodeAbiParameters(
      ['uint256', 'uint256', 'uint256', 'bytes'].map((type) => ({ type })),
      [0n, 4_000_000_000n, BigInt(salt), sent.signature],
    )
    return encode(kind, [config, value, collectorAddress, collected])
  }
  if (kind === 'claim')
    return encode(kind, [Array.from({ length: chance.between('rows', 0, 2) }, drawRow)])
  if (kind === 'settle') return encode(kind, [config.receiver, config.token])
  if (kind === 'finalizeWithdraw') return encode(kind, [config])
  if (kind === 'multicall')
    return encode(kind, [
      [encode('claim', [[drawRow()]]), encode('refund', [config, amount('refunded')])],
    ])
  return encode(kind, [config, amount('taken')])
}
