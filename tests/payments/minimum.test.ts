import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { limits } from '@tollbase/contract/limits'
import { privateKeyToAddress } from 'viem/accounts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { noLog as log } from '../../packages/server/src/base/log.ts'
import { type Devnet, startDevnet } from '../../packages/server/src/devnet/devnet.ts'
import { sweepRound } from '../../packages/server/src/services/payments/settling/sweeper.ts'
import {
  ask,
  type Buyer,
  list,
  makeBuyer,
  parseEntry,
  quote,
  readBalance,
} from '../support/buyer.ts'
import {
  expectBalanced,
  openMarket,
  readEarnings,
  readReceipt,
  readTokens,
  setPrices,
  store,
} from '../support/market.ts'
import { connectChain, createFundedPayer, findNativeEntry, makeProof } from '../support/payer.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { makeTestWorld } from '../support/test-world.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollbase-minimum-'))
let devnet: Devnet
let service: TestService

beforeAll(async () => {
  devnet = await startDevnet({ dataDir: folder, world: makeTestWorld(), log })
  const key = `0x${randomBytes(32).toString('hex')}` as const
  await connectChain(devnet.rpcUrl).setBalance({
    address: privateKeyToAddress(key),
    value: 10n ** 20n,
  })
  const signer_key_file = join(folder, 'gas-key')
  writeFileSync(signer_key_file, key)
  const network = {
    network: 'base-sepolia',
    pay_to: `0x${'7e'.repeat(20)}`,
    rpc_url: devnet.rpcUrl,
    signer_key_file,
    native_transfers: true,
  }
  service = await startTestService({ config: { networks: [network] } })
})

afterAll(async () => {
  await service?.close()
  await devnet?.stop()
  rmSync(folder, { recursive: true, force: true })
})

const place = () => ({ running: { devnet } })

async function scene(): Promise<{ market: Awaited<ReturnType<typeof openMarket>>; buyer: Buyer }> {
  const market = await openMarket(service, { price: { per_row: '1' } })
  const buyer = makeBuyer()
  await devnet.faucet(buyer.address, 1_000_000n)
  return { market, buyer }
}

test.each(['payV1', 'payV2'] as const)(
  'A4: a price below the smallest payment asks for the smallest payment, says so, charges the price, and leaves the rest to the payer (%s)',
  async (version) => {
    const { market, buyer } = await scene()
    const asked = list({ root: market.root, limit: 3 })
    const required = await quote(service, asked)
    expect(required.body.error).toMatch(
      /price is at most 3 atomic units \(\$0\.000003\); the smallest payment on eip155:84532 is 1000, .* balance/,
    )
    expect(parseEntry(required)).toMatchObject({
      amount: '1000',
      extra: { price: '3', minimumPayment: '1000' },
    })
    const low = await ask(
      service,
      asked,
      await buyer[version](required, { authorization: { value: '3' } }),
    )
    expect(low.status).toBe(402)
    const reply = await ask(service, asked, await buyer[version](required))
    expect(reply.status, reply.text).toBe(200)
    expect(await readReceipt(service, reply)).toMatchObject({
      amount: '3',
      deposited: '1000',
      change: '997',
    })
    expect(await readBalance(service, buyer.address)).toBe(997n)
    expect(await readEarnings(service, market)).toBe(3n)
    const path = `/api/apps/${market.appId}/transactions`
    const listed = await service.request('GET', path, { headers: market.headers })
    const [{ transaction_hash, links }] = listed.body.transactions
    expect(links.explorer).toBe(`https://sepolia.basescan.org/tx/${transaction_hash}`)
    expect(await readTokens(devnet, buyer.address)).toBe(999_000n)
    await expectBalanced(service)
  },
)

test('A4: a payer who was told a low price below the smallest payment is not charged a higher one below it', async () => {
  for (const version of ['payV1', 'payV2'] as const) {
    const { market, buyer } = await scene()
    const asked = list({ root: market.root, limit: 3 })
    const header = await buyer[version](await quote(service, asked))
    await setPrices(service, market, [{ operation: 'read', model: 'per_row', amount: '300' }])
    const reply = await ask(service, asked, header)
    expect(reply.status, reply.text).toBe(200)
    expect(await readReceipt(service, reply)).toMatchObject({ amount: '3', change: '997' })
  }
})

test('A4: a payer who was told a low price before a restart is asked again, not charged a higher one that asks for as much', async () => {
  const { market, buyer } = await scene()
  const asked = list({ root: market.root, limit: 3 })
  const [first, second] = [await quote(service, asked), await quote(service, asked)]
  const v1 = await buyer.payV1(first)
  const v2 = await buyer.payV2(second)
  await service.restart()
  await setPrices(service, market, [{ operation: 'read', model: 'per_row', amount: '300' }])
  const reply = await ask(service, asked, v1)
  expect(reply.status, reply.text).toBe(402)
  expect(reply.body.error).toMatch(/does not say for which price/)
  // A buyer who echoes the quote gets the price of the quote.
  expect(await readReceipt(service, await ask(service, asked, v2))).toMatchObject({ amount: '3' })
})

test('A4: a payer who was told a low price by result before a restart is asked again, not charged for what came since', async () => {
  const { buyer } = await scene()
  const counted = await openMarket(service, {
    price: { per_row: '1' },
    policy: { quote: 'by_result' },
  })
  const asked = list({ root: counted.root, limit: 9 })
  const required = await quote(service, asked)
  expect(parseEntry(required).extra).toMatchObject({ price: '5' })
  const header = await buyer.payV1(required)
  await store(service, counted, [{ id: 'later', name: 'Wels' }])
  await service.restart()
  const refused = await ask(service, asked, header)
  expect(refused.status, refused.text).toBe(402)
  expect(refused.body.error).toMatch(/or what the answer holds, may have changed/)
  expect(await readBalance(service, buyer.address)).toBe(0n)
})

test('A4: a payer who pays a low price by a transfer without a quote is not charged a higher one', async () => {
  const { market } = await scene()
  const owner = await createFundedPayer(place())
  const patched = await service.request('PATCH', `/api/apps/${market.appId}`, {
    headers: service.operator,
    body: { owner_address: owner.address },
  })
  expect(patched.status, patched.text).toBe(200)
  const write = (amount: string) =>
    setPrices(service, market, [{ operation: 'write', model: 'per_record', amount }])
  const stored = (more: object) => ({
    method: 'POST',
    path: '/store?wait=true',
    raw: JSON.stringify({ root: market.root, data: [{ n: 1 }], ...more }),
    headers: market.headers,
  })
  await write('3')
  await quote(service, stored({}))
  await write('300')
  const hash = await owner.transfer({ to: `0x${'7e'.repeat(20)}`, value: 1000n })
  const reply = await ask(service, stored({ payment_tx_hash: hash }))
  expect(reply.status, reply.text).toBe(200)
  expect(await readReceipt(service, reply)).toMatchObject({ amount: '3', change: '997' })
})

test('a price above the smallest payment is asked for as it is', async () => {
  const { market } = await scene()
  await setPrices(service, market, [{ operation: 'read', model: 'per_row', amount: '400' }])
  const required = await quote(service, list({ root: market.root, limit: 3 }))
  expect(parseEntry(required).amount).toBe('1200')
  expect(parseEntry(required).extra.price).toBeUndefined()
  expect(required.body.error).not.toMatch(/smallest/)
})

test('A4: crumbs that come in at a quote’s address are credited and not sent on; the amount that was asked for is', async () => {
  const { market } = await scene()
  const payer = await createFundedPayer(place())
  const { payments, log: own } = service.running.service
  const asked = list({ root: market.root, limit: 3 })
  const { payTo, maxAmountRequired, extra } = findNativeEntry(await quote(service, asked))
  expect(maxAmountRequired).toBe('1000')
  for (let at = 0; at < 3; at++) {
    const crumb = makeProof(extra.quoteId, await payer.transfer({ to: payTo, value: 1n }))
    const refused = await ask(service, asked, crumb)
    expect(refused.status).toBe(402)
    expect(refused.body.error).toMatch(/less than the price, 1000.* on the balance of/)
  }
  await sweepRound(payments.ports, own)
  expect(await readTokens(devnet, payTo)).toBe(3n)
  expect(await readBalance(service, payer.address)).toBe(3n)
  const paid = makeProof(extra.quoteId, await payer.transfer({ to: payTo, value: 1000n }))
  const sold = await ask(service, asked, paid)
  expect(sold.status, sold.text).toBe(200)
  await sweepRound(payments.ports, own)
  expect(await readTokens(devnet, payTo)).toBe(3n)
  expect(await readBalance(service, payer.address)).toBe(1000n)
  await expectBalanced(service)
})

test('A4: a restart refuses payments without a quote only where prices changed lately', async () => {
  const { market, buyer } = await scene()
  const asked = list({ root: market.root, limit: 3 })
  const buy = async (seconds: number = limits.quoteLifetimeSeconds) => {
    const validBefore = String(Math.floor(service.world.now() / 1000) + seconds)
    const required = await quote(service, asked)
    return ask(service, asked, await buyer.payV1(required, { authorization: { validBefore } }))
  }
  service.world.advance(11 * 60_000)
  await service.restart()
  const unchanged = await buy()
  expect(unchanged.status, unchanged.text).toBe(200)
  await setPrices(service, market, [{ operation: 'read', model: 'per_row', amount: '300' }])
  const refused = await buy()
  expect(refused.status, refused.text).toBe(402)
  expect(refused.body.error).toMatch(/ask and pay again in [1-6]\d seconds\. /)
  // A stock client lets a payment end as the 402 says: it was signed after the start, so its price is remembered.
  service.world.advance(61_000)
  const bought = await buy()
  expect(bought.status, bought.text).toBe(200)
  // The price of before was told for this request since the start, and may be the one that it was signed for.
  expect(await readReceipt(service, bought)).toMatchObject({ amount: '3' })
  // One that ends sooner or later does not say that.
  expect((await buy(100)).status).toBe(402)
  expect((await buy(900)).status).toBe(402)
})

test('A4: a payment that was signed before a restart is asked for anew also where it comes later, while its price may have been another one', async () => {
  const { market, buyer } = await scene()
  const asked = list({ root: market.root, limit: 3 })
  const now = Math.floor(service.world.now() / 1000)
  const validBefore = String(now + limits.quoteLifetimeSeconds)
  const header = await buyer.payV1(await quote(service, asked), { authorization: { validBefore } })
  await setPrices(service, market, [{ operation: 'read', model: 'per_row', amount: '300' }])
  await service.restart()
  service.world.advance(200_000)
  expect((await ask(service, asked, header)).status).toBe(402)
  expect(await readEarnings(service, market)).toBe(0n)
})
