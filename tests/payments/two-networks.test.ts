import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createPublicClient, encodeFunctionData, type Hex, http, parseAbi } from 'viem'
import { privateKeyToAddress } from 'viem/accounts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { requirePresent } from '../../packages/server/src/base/assert.ts'
import type { Config } from '../../packages/server/src/config/config.ts'
import {
  findFreePort,
  findProcess,
  type ProcessId,
  spawnAnvil,
  stopProcess,
} from '../../packages/server/src/devnet/anvil.ts'
import { testDollar } from '../../packages/server/src/devnet/contracts.ts'
import { ask, type Buyer, list, makeBuyer, quote, readBalance } from '../support/buyer.ts'
import { expectBalanced, openMarket, readAccounts, readReceipt } from '../support/market.ts'
import { connectChain } from '../support/payer.ts'
import { startTestService, type TestReply, type TestService } from '../support/service.ts'
import { makeTestWorld } from '../support/test-world.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollbase-two-networks-'))
const world = makeTestWorld()
const tokenAbi = parseAbi([
  'function MINTER() view returns (address)',
  'function mint(address to, uint256 value)',
  'function balanceOf(address) view returns (uint256)',
])

/** A chain of its own with a token of its own, behind a proxy that can be away. */
type Place = {
  readonly id: string
  readonly token: string
  readonly payTo: string
  readonly config: Config['networks'][number]
  readonly fund: (address: string, amount: bigint) => Promise<void>
  readonly readTokens: (address: string) => Promise<bigint>
  isAway: boolean
  readonly close: () => Promise<void>
}

let base: Place
let fuji: Place
let service: TestService

beforeAll(async () => {
  base = await startChain('base-sepolia', 84532, `0x${'b'.repeat(40)}`)
  fuji = await startChain('avalanche-fuji', 43113, `0x${'a'.repeat(40)}`)
  service = await startTestService({ config: { networks: [base.config, fuji.config] } })
})

afterAll(async () => {
  await service?.close()
  for (const place of [base, fuji]) await place?.close()
  rmSync(folder, { recursive: true, force: true })
})

async function startChain(name: string, chainId: number, token: Hex): Promise<Place> {
  const own = join(folder, name)
  mkdirSync(own)
  const port = await findFreePort(undefined)
  const started = { folder: own, stateFile: undefined, chainId, genesisTime: 1_700_000_000, port }
  const { pid } = spawnAnvil(started)
  const url = `http://127.0.0.1:${port}`
  const chain = connectChain(url)
  await until(async () => (await chain.getChainId().catch(() => 0)) === chainId)
  const id: ProcessId = requirePresent(findProcess(pid ?? 0), 'the chain')
  await chain.setCode({ address: token, bytecode: testDollar.code as Hex })
  const minter = await chain.readContract({
    address: token,
    abi: tokenAbi,
    functionName: 'MINTER',
  })
  const [payToKey, gasKey] = [makeKey(own, 'pay-to'), makeKey(own, 'gas')]
  for (const address of [minter, gasKey.address])
    await chain.setBalance({ address, value: 10n ** 20n })
  await chain.impersonateAccount({ address: minter })
  await chain.request({ method: 'anvil_setTime' as never, params: [nowSeconds()] as never })
  const client = createPublicClient({ transport: http(url) })
  const node = await startProxy(url, () => place.isAway)
  const place: Place = {
    id: `eip155:${chainId}`,
    token,
    payTo: payToKey.address,
    config: {
      ...{ network: name, pay_to: payToKey.address, rpc_url: node.url },
      ...{ signer_key_file: gasKey.file, pay_to_key_file: payToKey.file, minimum_payment: 1 },
      asset: { address: token, name: 'USDC', version: '2', decimals: 6 },
    },
    fund: async (to, amount) => {
      const data = encodeFunctionData({
        ...{ abi: tokenAbi, functionName: 'mint', args: [to as Hex, amount] },
      })
      const sent = { from: minter, to: token, data, gas: '0x30d40' }
      await chain.request({ method: 'eth_sendTransaction' as never, params: [sent] as never })
      await until(async () => (await place.readTokens(to)) >= amount)
    },
    readTokens: (address) =>
      client.readContract({
        ...{ address: token, abi: tokenAbi, functionName: 'balanceOf', args: [address as Hex] },
      }),
    isAway: false,
    close: async () => {
      await node.close()
      await stopProcess(id, world)
    },
  }
  return place
}

function makeKey(own: string, name: string): { readonly file: string; readonly address: Hex } {
  const key = `0x${randomBytes(32).toString('hex')}` as const
  const file = join(own, name)
  writeFileSync(file, key)
  return { file, address: privateKeyToAddress(key).toLowerCase() as Hex }
}

async function startProxy(url: string, isAway: () => boolean) {
  const server = createServer(async (request, reply) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    if (isAway()) return void request.socket.destroy()
    const headers = { 'content-type': 'application/json' }
    const answer = await fetch(url, { method: 'POST', body: Buffer.concat(chunks), headers })
    reply.end(await answer.text())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}`,
    close: () => new Promise((resolve) => server.close(resolve)),
  }
}

const nowSeconds = () => Math.floor(Date.now() / 1000)

async function until(isSo: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 400; tries++) {
    if (await isSo()) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error('it did not come to that')
}

/** The 402 as a client reads it that pays on one network alone. */
function chooseOffer(required: TestReply, network: string): TestReply {
  const header = required.headers.get('payment-required') ?? ''
  const stated = JSON.parse(Buffer.from(header, 'base64').toString())
  const accepts = stated.accepts.filter((one: { network: string }) => one.network === network)
  const chosen = Buffer.from(JSON.stringify({ ...stated, accepts })).toString('base64')
  return { ...required, headers: new Headers({ 'payment-required': chosen }) }
}

async function buyOn(place: Place, buyer: Buyer, root: string): Promise<TestReply> {
  const asked = list({ root, limit: 5, find: { name: { ne: 'Graz' } } })
  const header = await buyer.payV2(chooseOffer(await quote(service, asked), place.id))
  return ask(service, asked, { ...header, 'x-balance': 'off' })
}

test('while one of two networks is away, the other one sells; it sells again once it is back', async () => {
  const market = await openMarket(service, { price: { per_row: '1000' } })
  const buyer = makeBuyer()
  for (const place of [base, fuji]) await place.fund(buyer.address, 10_000n)
  fuji.isAway = true
  try {
    expect((await buyOn(base, buyer, market.root)).status).toBe(200)
    const away = await buyOn(fuji, buyer, market.root)
    expect(away.status, away.text).toBe(503)
    expect(away.body.code).toBe('PAYMENT_NETWORK_UNREACHABLE')
    expect((await buyOn(base, buyer, market.root)).status).toBe(200)
  } finally {
    fuji.isAway = false
  }
  expect((await buyOn(fuji, buyer, market.root)).status).toBe(200)
  expect(await fuji.readTokens(buyer.address)).toBe(5_000n)
  await expectBalanced(service)
})

test('a payment that is signed for one network is none on the other', async () => {
  const market = await openMarket(service, { price: { per_row: '1000' } })
  const buyer = makeBuyer()
  await fuji.fund(buyer.address, 5_000n)
  const asked = list({ root: market.root, limit: 5 })
  const required = chooseOffer(await quote(service, asked), base.id)
  // The same words, under the network that the money is on.
  const header = await buyer.payV2(required, { accepted: { network: fuji.id } })
  const refused = await ask(service, asked, header)
  expect(refused.status, refused.text).toBe(402)
  expect(await fuji.readTokens(buyer.address)).toBe(5_000n)
})

test('one service sells on two networks: each payment is made, booked and paid out on its own', async () => {
  const market = await openMarket(service, { price: { per_row: '1000' } })
  const buyer = makeBuyer()
  const required = await quote(service, list({ root: market.root, limit: 5 }))
  const header = required.headers.get('payment-required') ?? ''
  const { accepts } = JSON.parse(Buffer.from(header, 'base64').toString())
  expect(accepts).toMatchObject([
    { network: base.id, asset: base.token, payTo: base.payTo, amount: '5000' },
    { network: fuji.id, asset: fuji.token, payTo: fuji.payTo, amount: '5000' },
  ])
  for (const place of [base, fuji]) {
    await place.fund(buyer.address, 5_000n)
    const sold = await buyOn(place, buyer, market.root)
    expect(sold.status, sold.text).toBe(200)
    expect(await readReceipt(service, sold)).toMatchObject({ network: place.id, amount: '4000' })
    expect(await place.readTokens(buyer.address)).toBe(0n)
  }
  const accounts = await readAccounts(service)
  for (const place of [base, fuji])
    expect(accounts.get(`outside:${place.id}`)).toBe(-(await place.readTokens(place.payTo)))
  // The change of both is one balance, which pays for anything.
  expect(await readBalance(service, buyer.address)).toBe(2_000n)

  const destination = `0x${'d'.repeat(40)}`
  const path = `/api/apps/${market.appId}/payout`
  const { headers } = market
  const body = { payout_destination: destination }
  const set = await service.request('POST', `${path}/settings`, { headers, body })
  expect(set.status, set.text).toBe(200)
  // A destination that a key chose counts after a day.
  service.world.advance(25 * 3_600_000)
  for (const [at, place] of [base, fuji].entries()) {
    const before = await place.readTokens(place.payTo)
    const body = { amount: String(1_000 + at), network: place.id }
    const asked = await service.request('POST', `${path}/request`, { headers, body })
    expect(asked.status, asked.text).toBe(202)
    await until(async () => (await place.readTokens(destination)) === 1_000n + BigInt(at))
    const after = before - 1_000n - BigInt(at)
    expect(await place.readTokens(place.payTo)).toBe(after)
    await until(async () => (await readAccounts(service)).get(`outside:${place.id}`) === -after)
  }
  const listed = await service.request('GET', `/api/apps/${market.appId}/transactions`, {
    headers,
  })
  const said = listed.body.transactions.map(
    (one: { kind: string; network: string; status: string; transaction_hash: string }) =>
      `${one.kind} ${one.network} ${one.status} ${one.transaction_hash.length}`,
  )
  expect(said).toEqual([
    `payout ${fuji.id} confirmed 66`,
    `payout ${base.id} confirmed 66`,
    `payment ${fuji.id} confirmed 66`,
    `payment ${base.id} confirmed 66`,
  ])
  await expectBalanced(service)
})
