import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  BaseError,
  createTestClient,
  createWalletClient,
  encodeFunctionData,
  type Hex,
  http,
  maxUint256,
  publicActions,
  toFunctionSelector,
  toHex,
} from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { baseSepolia } from 'viem/chains'
import { expect, test } from 'vitest'
import { noLog as log } from '../../packages/server/src/base/log.ts'
import { realWorld as world } from '../../packages/server/src/base/world.ts'
import { permit2, testDollar, uptoProxy } from '../../packages/server/src/devnet/contracts.ts'
import { startDevnet } from '../../packages/server/src/devnet/devnet.ts'
import { deriveAddress, signDigest } from '../../packages/server/src/x402/signature.ts'
import { permit2Address, uptoProxyAddress } from '../../packages/server/src/x402/upto/upto-terms.ts'
import { deriveBuyerKey } from './buyer-keys.ts'
import { Chance } from './chance.ts'
import { Revert } from './escrow-model.ts'
import { answerAllowance, answerPermit2, decodeUptoCall } from './permit-forms.ts'
import {
  applyPermitCall,
  digestPermit,
  emptyPermitBooks,
  type PermitCall,
  unlimited,
} from './permit-model.ts'

const steps = 150
const keys = ['payer', 'other payer', 'facilitator', 'stranger'].map(deriveBuyerKey)
const [payer, other, facilitator, stranger] = keys.map(deriveAddress) as [Hex, Hex, Hex, Hex]
const nobody: Hex = `0x${'00'.repeat(20)}`

/** The names of the errors of both contracts by their selectors; a token says why in words. */
const names = new Map<string, string>([
  ['0x08c379a0', 'Error'],
  ...[permit2, uptoProxy].flatMap(({ abi }) =>
    abi.flatMap((item): [string, string][] => {
      if (item.type !== 'error') return []
      const types = item.inputs.map(({ type }) => type).join()
      return [[toFunctionSelector(`${item.name}(${types})`), item.name]]
    }),
  ),
])

type Drawn = { readonly to: Hex; readonly data: Hex; readonly call: PermitCall }

/** Draws a call, right or wrong in its amounts, its times, its nonce, its people and its signature. */
function drawCall(
  chance: Chance,
  by: { readonly token: string; readonly chainId: number; readonly now: bigint },
): Drawn {
  const { token, chainId, now } = by
  const amount = (what: string) => BigInt(chance.between(what, 0, 6)) * 100n
  const kind = chance.pick('kind', [
    'settle',
    'settle',
    'settle',
    'settle',
    'approve',
    'invalidate',
  ])
  if (kind === 'approve') {
    const value = chance.happens('all', 200) ? unlimited : amount('allowed') * 4n
    const args = [permit2Address as Hex, value] as const
    const data = encodeFunctionData({ abi: testDollar.abi, functionName: 'approve', args })
    return { to: token as Hex, data, call: { kind, amount: value } }
  }
  const nonce = (BigInt(chance.between('word', 0, 2)) << 8n) | BigInt(chance.below('bit', 20) * 13)
  if (kind === 'invalidate') {
    const [word, mask] = [nonce >> 8n, 1n << (nonce & 255n)]
    const functionName = 'invalidateUnorderedNonces'
    const data = encodeFunctionData({ abi: permit2.abi, functionName, args: [word, mask] })
    return { to: permit2Address, data, call: { kind, word, mask } }
  }
  const owner = chance.pick('owner', [payer, payer, payer, other])
  const rarely = <T>(what: string, odd: T, right: T) => (chance.happens(what, 60) ? odd : right)
  const permit = {
    owner: rarely('no owner', nobody, owner),
    token,
    permitted: amount('permitted'),
    nonce,
    deadline: rarely('late', now - 10n, now + 1_000n),
    to: rarely('to nobody', nobody, stranger),
    facilitator: rarely('another one', stranger, facilitator),
    validAfter: rarely('early', now + 1_000n, 0n),
  }
  const key = chance.happens('right key', 900) ? keys[owner === payer ? 0 : 1] : keys[3]
  const signed = rarely('another amount', { ...permit, permitted: 700n }, permit)
  const signature = signDigest(digestPermit(chainId, signed), key ?? Buffer.alloc(32)) as Hex
  const value = amount('taken')
  const { permitted, deadline, to, validAfter } = permit
  const data = encodeFunctionData({
    abi: uptoProxy.abi,
    functionName: 'settle',
    args: [
      { permitted: { token: token as Hex, amount: permitted }, nonce, deadline },
      value,
      permit.owner,
      { to, facilitator: permit.facilitator, validAfter },
      signature,
    ],
  })
  return { to: uptoProxyAddress, data, call: decodeUptoCall(data).call }
}

/** Sends a call; returns `success`, or the selector of the contract's error. */
function makeSender(rpcUrl: string) {
  const options = { chain: baseSepolia, pollingInterval: 5, transport: http(rpcUrl) } as const
  const chain = createTestClient({ ...options, mode: 'anvil' }).extend(publicActions)
  const send = async (key: Buffer, { to, data }: Drawn): Promise<string> => {
    const account = privateKeyToAccount(toHex(key))
    try {
      await chain.call({ account, to, data })
    } catch (error) {
      if (!(error instanceof BaseError)) throw error
      const raw = error.walk((one) => 'data' in (one as object)) as { data?: unknown } | null
      return String(raw?.data ?? error.message).slice(0, 10)
    }
    const wallet = createWalletClient({ account, ...options })
    const hash = await wallet.sendTransaction({ to, data, gas: 500_000n })
    for (;;) {
      const receipt = await chain.getTransactionReceipt({ hash }).catch(() => undefined)
      if (receipt !== undefined) return receipt.status
      await world.sleep(3)
    }
  }
  return { chain, send }
}

test('the model of Permit2 and its proxy does what their code does, whoever calls them with what', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tollbase-permit-model-'))
  const devnet = await startDevnet({ dataDir: folder, world, log })
  try {
    const { chain, send } = makeSender(devnet.rpcUrl)
    const { network, chainId } = devnet
    const token = network.asset.address
    const chance = new Chance('the model of permits')
    for (const address of [payer, other, facilitator, stranger])
      await chain.setBalance({ address, value: 10n ** 20n })
    for (const address of [payer, other]) await devnet.faucet(address, 20_000_000n)
    const read = (to: string, data: Hex) => chain.call({ to: to as Hex, data })
    let books = emptyPermitBooks
    const outcomes = new Set<string>()
    let moved = 0n
    for (let step = 0; step < steps; step++) {
      const { timestamp } = await chain.getBlock()
      const drawn = drawCall(chance, { token, chainId, now: timestamp + 1n })
      const { call } = drawn
      const isOwn = call.kind !== 'settle'
      const sender = isOwn
        ? chance.pick('own sender', keys.slice(0, 2))
        : chance.happens('right sender', 900)
          ? (keys[2] ?? Buffer.alloc(32))
          : chance.pick('sender', keys)
      let expected = 'success'
      try {
        const context = { chainId, seconds: timestamp + 1n, sender: deriveAddress(sender) }
        books = applyPermitCall(books, call, context)
        if (call.kind === 'settle') moved += call.amount
      } catch (error) {
        if (!(error instanceof Revert)) throw error
        expected = error.message
      }
      const found = await send(sender, drawn)
      expect(`${step} ${call.kind} ${names.get(found) ?? found}`).toBe(
        `${step} ${call.kind} ${expected}`,
      )
      outcomes.add(`${call.kind} ${expected}`)
      for (const owner of [payer, other]) {
        for (const word of [0n, 1n, 2n]) {
          const args = [owner, word] as const
          const data = encodeFunctionData({ abi: permit2.abi, functionName: 'nonceBitmap', args })
          expect((await read(permit2Address, data)).data).toBe(answerPermit2(books, data))
        }
        const args = [owner, permit2Address as Hex] as const
        const data = encodeFunctionData({ abi: testDollar.abi, functionName: 'allowance', args })
        expect((await read(token, data)).data).toBe(answerAllowance(books, data))
      }
      const data = encodeFunctionData({
        ...{ abi: testDollar.abi, functionName: 'balanceOf', args: [stranger] },
      })
      expect(BigInt((await read(token, data)).data ?? 0)).toBe(moved)
      await chain.mine({ blocks: 1 })
    }
    expect(unlimited).toBe(maxUint256)
    for (const kind of ['settle', 'approve', 'invalidate'])
      expect(outcomes).toContain(`${kind} success`)
    expect([...outcomes].filter((one) => one.startsWith('settle '))).toHaveLength(11)
  } finally {
    await devnet.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}, 180_000)
