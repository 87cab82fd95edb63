import { createHash } from 'node:crypto'
import { createClient } from '@onchaindb/sdk'
import { verifyDocument } from '@tollbase/verify/verify'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { ExactEvmSchemeV1 } from '@x402/evm/exact/v1/client'
import { decodePaymentResponseHeader, wrapFetchWithPayment, x402Client } from '@x402/fetch'
import type { PrivateKeyAccount } from 'viem/accounts'
import { describe, expect, test } from 'vitest'
import { createFundedBuyer, list, readBalance } from '../support/buyer.ts'
import {
  cities,
  expectBalanced,
  type Market,
  openMarket,
  readAccounts,
  readChainBalance,
  readEarnings,
  readReceipt,
  setPrices,
} from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import type { Json, TestService } from '../support/service.ts'

/** @x402/fetch as its README shows it. */
function clientV2(account: PrivateKeyAccount): typeof fetch {
  const client = new x402Client().register('eip155:84532', new ExactEvmScheme(account))
  return wrapFetchWithPayment(fetch, client)
}

/**
 * The same package in version 1. It prefers the header of version 2 wherever it sees it, so the test uses a
 * transport that does not show that header, as a program with version 1 alone would; the package itself is
 * unchanged.
 */
function clientV1(account: PrivateKeyAccount): typeof fetch {
  const client = new x402Client().registerV1('base-sepolia', new ExactEvmSchemeV1(account))
  const transport: typeof fetch = async (input, init) => {
    const reply = await fetch(input, init)
    const headers = new Headers(reply.headers)
    headers.delete('payment-required')
    return new Response(reply.body, { status: reply.status, headers })
  }
  return wrapFetchWithPayment(transport, client)
}

const clients = [
  { version: 'v2', of: clientV2, notice: 'payment-response', network: 'eip155:84532' },
  { version: 'v1', of: clientV1, notice: 'x-payment-response', network: 'base-sepolia' },
] as const

/** Counts the bytes of the records as they are stored, joined as a page joins them. */
const countBytes = (records: readonly object[]) => Buffer.byteLength(JSON.stringify(records)) - 2

const priced = [
  { price: { per_access: '1000' }, cap: 1000n, charge: 1000n },
  { price: { per_row: '100' }, cap: 800n, charge: 500n },
  {
    price: { per_kb: '50' },
    cap: 200n,
    charge: BigInt(Math.ceil((50 * countBytes(cities)) / 1024)),
  },
  { price: { per_access: '1', per_row: '3', per_kb: '7' }, cap: 53n, charge: undefined },
] as const

withService(
  (service) => {
    describe.each(clients)('@x402/fetch 2.27.0 unmodified, $version', ({ of, notice, network }) => {
      test.each(priced)(
        'the client buys a page at $price, and every atomic unit is where it belongs',
        async ({ price, cap, charge }) => {
          const market = await openMarket(service(), { price })
          const buyer = await createFundedBuyer(service())
          const { devnet } = service().running
          const treasury = devnet?.network.payTo ?? ''
          const before = {
            treasury: await readChainBalance(service(), treasury),
            accounts: await readAccounts(service()),
          }
          const asked = list({ root: market.root, limit: 8, max_kb: 4 })
          const reply = await of(buyer.account)(`${service().url}${asked.path}`, {
            method: asked.method,
            headers: { 'content-type': 'application/json' },
            body: asked.raw ?? '',
          })
          expect(reply.status).toBe(200)
          const text = await reply.text()
          expect(JSON.parse(text).records).toEqual(cities)
          const settled = decodePaymentResponseHeader(reply.headers.get(notice) ?? '')
          expect(settled).toMatchObject({ success: true, network, payer: buyer.address })

          const due = charge ?? 1n + 3n * 5n + BigInt(Math.ceil((7 * countBytes(cities)) / 1024))
          expect(await readChainBalance(service(), buyer.address)).toBe(100_000_000n - cap)
          expect(await readChainBalance(service(), treasury)).toBe(before.treasury + cap)
          const platform = (due * 2000n) / 10_000n
          expect(await readBalance(service(), buyer.address)).toBe(cap - due)
          expect(await readEarnings(service(), market)).toBe(due - platform)
          const after = await readAccounts(service())
          const moved = (name: string) =>
            (after.get(name) ?? 0n) - (before.accounts.get(name) ?? 0n)
          expect(moved('platform')).toBe(platform)
          expect(moved('outside:eip155:84532')).toBe(-cap)
          await expectBalanced(service())
        },
      )
    })

    test('@onchaindb/sdk 0.4.1 unmodified pays for a store by its callback, once, and its records are there', async () => {
      const market = await openMarket(service(), { records: [] })
      await setPrices(service(), market, [
        { operation: 'write', model: 'per_access', amount: '500' },
        { operation: 'write', model: 'per_record', amount: '20' },
      ])
      const buyer = await createFundedBuyer(service())
      const client = createClient({
        endpoint: service().url,
        apiKey: market.key,
        appId: market.appId,
      } as never)
      const result = await client.store(
        { collection: market.collection, data: [{ id: 'a' }, { id: 'b' }] },
        (sent: Json) => sdkPayment(buyer.account, sent),
        true,
      )
      expect(result).toBeDefined()
      expect(await readChainBalance(service(), buyer.address)).toBe(100_000_000n - 540n)
      expect(await readBalance(service(), buyer.address)).toBe(0n)
      expect(await readEarnings(service(), market)).toBe(432n)
      const stored = await service().request('POST', '/list', {
        headers: market.headers,
        body: { root: market.root },
      })
      expect(stored.body.records.map(({ id }: Json) => id)).toEqual(['a', 'b'])
    })

    test('a receipt proves offline what was asked, paid and delivered, and any changed field breaks it', async () => {
      const market = await openMarket(service(), { price: { per_row: '100' } })
      const buyer = await createFundedBuyer(service())
      const asked = list({ root: market.root, limit: 3 })
      const reply = await buyer.buy(service(), asked)
      expect(reply.status, reply.text).toBe(200)
      const receipt = await readReceipt(service(), reply)
      const { body: known } = await service().request('GET', '/.well-known/tollbase')
      const options = {
        trustedKey: known.receipt_public_key,
        request: { method: asked.method, path: asked.path, body: Buffer.from(asked.raw ?? '') },
        reply: Buffer.from(reply.text),
      }
      const verify = (document: object, by = options) =>
        verifyDocument(JSON.stringify(document), by)
      expect(verify(receipt).checks.filter(({ ok }) => !ok)).toEqual([])
      expect(receipt).toMatchObject({
        payer: buyer.address,
        amount: '300',
        deposited: '300',
        change: '0',
        row_count: 3,
        result_hash: createHash('sha256').update(reply.text).digest('hex'),
      })
      for (const { type, ...rest } of listMutations(receipt)) {
        if (type !== receipt.type) expect(() => verify({ type, ...rest })).toThrow('not known here')
        else expect(verify({ type, ...rest }).ok).toBe(false)
      }
      expect(verify(receipt, { ...options, reply: Buffer.from(`${reply.text} `) }).ok).toBe(false)
      const other = { ...options.request, path: '/other' }
      expect(verify(receipt, { ...options, request: other }).ok).toBe(false)
    })

    test('an answer that costs nothing is given without a payment, whatever the price model', async () => {
      const market = await openMarket(service(), { price: { per_row: '100' } })
      const none = await service().request('POST', '/list', {
        body: { root: market.root, limit: 0 },
      })
      expect(none.status, none.text).toBe(200)
      expect(none.body.records).toEqual([])
      expect(none.headers.get('cache-control')).toBe('no-store')
      await setPrices(service(), market, [
        { operation: 'read', model: 'per_row', amount: '0' },
        { operation: 'read', model: 'per_access', amount: '0' },
      ])
      const all = await service().request('POST', '/list', { body: { root: market.root } })
      expect(all.status).toBe(200)
      expect(all.body.records).toHaveLength(5)
    })

    test.each([
      { bytes: 1023, charge: 1023n },
      { bytes: 1024, charge: 1024n },
      { bytes: 1025, charge: 1025n },
    ])('P17: $bytes bytes at 1024 a KB cost exactly $charge', async ({ bytes, charge }) => {
      const record = { id: 'x', text: '' }
      const text = 'y'.repeat(bytes - Buffer.byteLength(JSON.stringify(record)))
      const records = [{ ...record, text }]
      const market = await openMarket(service(), { price: { per_kb: '1024' }, records })
      const buyer = await createFundedBuyer(service())
      const reply = await buyer.buy(service(), list({ root: market.root, max_kb: 2 }))
      expect(reply.status, reply.text).toBe(200)
      expect(await readBalance(service(), buyer.address)).toBe(2048n - charge)
    })

    test.each([
      { amount: '1', bytes: 1, charge: 1n },
      { amount: '1', bytes: 1024, charge: 1n },
      { amount: '1', bytes: 1025, charge: 2n },
      { amount: '3', bytes: 1023, charge: 3n },
      { amount: '3', bytes: 1025, charge: 4n },
    ])(
      'P17: $bytes bytes at $amount a KB are quoted as $charge, rounded up once',
      async (given) => {
        const market = await openMarket(service(), { price: { per_kb: given.amount }, records: [] })
        const body = {
          app_id: market.appId,
          operation_type: 'read',
          collection: market.collection,
          size_kb: given.bytes / 1024,
          rows: 0,
        }
        const reply = await service().request('POST', '/api/pricing/quote', { body })
        expect(reply.body.total_cost_atomic).toBe(String(given.charge))
      },
    )

    test('P9: an empty answer costs the access and nothing else, or nothing where the seller says so', async () => {
      const price = { per_access: '10', per_row: '7', per_kb: '5' }
      const paying = await openMarket(service(), { price, records: [] })
      const free = await openMarket(service(), {
        price,
        records: [],
        policy: { empty_answer: 'free' },
      })
      for (const [market, charge] of [
        [paying, 10n],
        [free, 0n],
      ] as const) {
        const buyer = await createFundedBuyer(service())
        const reply = await buyer.buy(service(), list({ root: market.root, limit: 2, max_kb: 1 }))
        expect(reply.status, reply.text).toBe(200)
        const receipt = await readReceipt(service(), reply)
        expect(receipt).toMatchObject({ amount: String(charge), change: String(29n - charge) })
        expect(await readBalance(service(), buyer.address)).toBe(29n - charge)
      }
    })

    test('P17: a price that no payment can carry is refused before anybody pays', async () => {
      const market = await openMarket(service(), { price: { per_row: '1000000000000000' } })
      const reply = await service().request('POST', '/list', {
        body: { root: market.root, limit: 2 },
      })
      expect(reply.status).toBe(400)
      expect(reply.body.code).toBe('VALIDATION_FAILED')
    })

    test("the list of a wallet's movements has pages without gap or repetition", async () => {
      const market = await openMarket(service(), { price: { per_row: '10' } })
      const buyer = await createFundedBuyer(service())
      for (let limit = 6; limit < 9; limit++)
        await buyer.buy(service(), list({ root: market.root, limit }))
      const all = await movements(service(), buyer.address, 100)
      expect(all).toHaveLength(6)
      expect(await movements(service(), buyer.address, 2)).toEqual(all)
      expect(await movements(service(), buyer.address, 3)).toEqual(all)
      expect(all[0].balance_after).toBe(String(await readBalance(service(), buyer.address)))
      await expectPayout(service(), market)
    })
  },
  { devnet: true },
)

async function movements(service: TestService, address: string, limit: number): Promise<Json[]> {
  const found: Json[] = []
  let cursor = ''
  for (;;) {
    const path = `/api/wallets/${address}/entries?limit=${limit}${cursor}`
    const { body } = await service.request('GET', path, { headers: service.operator })
    expect(body.entries.length).toBeGreaterThan(0)
    found.push(...body.entries)
    if (body.next_cursor === null) return found
    cursor = `&cursor=${body.next_cursor}`
  }
}

async function expectPayout(service: TestService, market: Market): Promise<void> {
  const earned = String(await readEarnings(service, market))
  const { body } = await service.request('POST', `/api/apps/${market.appId}/payout/info`, {
    headers: market.headers,
  })
  expect(body).toMatchObject({
    available_balance: earned,
    lifetime_earned: earned,
    lifetime_paid: '0',
  })
}

/**
 * Makes the payment that an application gives to the public SDK's callback: an EIP-3009 signature, its times as
 * numbers.
 */
async function sdkPayment(account: PrivateKeyAccount, sent: Json): Promise<Json> {
  const now = Math.floor(Date.now() / 1000)
  const nonce = `0x${createHash('sha256').update(String(Math.random())).digest('hex')}` as const
  const authorization = {
    from: account.address,
    to: sent.brokerAddress,
    value: sent.amountRaw,
    validAfter: now - 60,
    validBefore: now + 300,
    nonce,
  }
  const signature = await account.signTypedData({
    domain: { name: 'USDC', version: '2', chainId: 84532, verifyingContract: sent.asset },
    types: {
      TransferWithAuthorization: [
        { name: 'from', type: 'address' },
        { name: 'to', type: 'address' },
        { name: 'value', type: 'uint256' },
        { name: 'validAfter', type: 'uint256' },
        { name: 'validBefore', type: 'uint256' },
        { name: 'nonce', type: 'bytes32' },
      ],
    },
    primaryType: 'TransferWithAuthorization',
    message: {
      ...authorization,
      value: BigInt(authorization.value),
      validAfter: BigInt(authorization.validAfter),
      validBefore: BigInt(authorization.validBefore),
    },
  })
  const evmAuthorization = { signature, authorization }
  const { network } = sent
  return { network, chainType: 'evm', paymentMethod: 'x402-facilitator', evmAuthorization }
}

/** Lists the document with one leaf changed, for each leaf. */
function listMutations(document: Json): Json[] {
  return Object.entries(document).flatMap(([name, value]): Json[] => {
    if (typeof value === 'object' && value !== null)
      return listMutations(value).map((changed) => ({ ...document, [name]: changed }))
    if (typeof value === 'number') return [{ ...document, [name]: value + 1 }]
    if (typeof value === 'string') return [{ ...document, [name]: changedText(value) }]
    return [{ ...document, [name]: 'changed' }]
  })
}

function changedText(text: string): string {
  const last = text.at(-1) === '1' ? '2' : '1'
  return text.length === 0 ? '1' : `${text.slice(0, -1)}${last}`
}
