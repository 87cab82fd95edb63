import { expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { unitParts } from '../../packages/server/src/model/storage-fee.ts'
import { getSchemaName } from '../../packages/server/src/services/applications/tenants.ts'
import {
  noFees,
  postStorageFees,
  type StorageFeeParts,
} from '../../packages/server/src/services/payments/storage/storage-fees.ts'
import { ask, createFundedBuyer, list, quote } from '../support/buyer.ts'
import {
  expectBalanced,
  type Market,
  openMarket,
  readEarnings,
  readReceipt,
  setPrices,
} from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import type { Json } from '../support/service.ts'

const dayMs = 86_400_000

withService(
  (service) => {
    const post = (market: Market, path: string, body: object = {}) =>
      service().request('POST', `/api/apps/${market.appId}${path}`, {
        headers: market.headers,
        body,
      })
    /** Sells two rows at 1,000 each; the market earns 1,600 of it. */
    const sell = async (market: Market) => {
      const buyer = await createFundedBuyer(service(), 50_000n)
      const reply = await buyer.buy(service(), list({ root: market.root, limit: 2 }))
      expect(reply.status, reply.text).toBe(200)
      return (await readReceipt(service(), reply)).payment_id as string
    }
    const open = () => openMarket(service(), { price: { per_row: '1000' } })
    const prepay = async (market: Market, amount: string) => {
      const payer = await createFundedBuyer(service(), 50_000n)
      const path = `/api/apps/${market.appId}/wallet/deposit`
      const raw = JSON.stringify({ amount })
      const paid = await payer.buy(service(), { method: 'POST', path, raw, ...market })
      expect(paid.status, paid.text).toBe(200)
    }
    const lock = async (market: Market, locked_balance: string) => {
      const byOperator = { ...market, headers: service().operator }
      const locked = await post(byOperator, '/payout/settings', { locked_balance })
      expect(locked.body, locked.text).toMatchObject({ locked_balance })
    }
    /** Lets a key of the market buy of a seller: gives the status, and the limit that refuses it. */
    const makeAgent = async (market: Market, seller?: Market) => {
      const { root } = seller ?? (await open())
      const made = await post(market, '/keys', { permissions: ['Pay'], pay_limits: {}, name: 'a' })
      return async (limit: number) => {
        const headers = { 'x-agent-key': made.body.key }
        const reply = await ask(service(), list({ root, limit }), headers)
        return [reply.status, reply.body.details?.limit, reply.body.details?.left]
      }
    }

    /** The parts by which the fee of this market alone is booked: so much is due for the day, in atomic units. */
    const makeParts = async (market: Market, due: bigint): Promise<StorageFeeParts> => {
      const { database, tenants, world, blobs } = service().running.service
      const record = tenants.requireRecord(market.appId)
      const [row] = await database.query<{ bytes: string }>(sql`
        SELECT sum(octet_length(body))::text AS bytes FROM ${sql.id(getSchemaName(record.number), 'block')}`)
      const freeBytes = BigInt(row?.bytes ?? 0) - due
      const settings = due === 0n ? noFees : { price: unitParts, freeBytes }
      const system = { ...tenants.system, applications: { list: () => [record] } }
      const alone = { system } as unknown as StorageFeeParts['tenants']
      return { database, tenants: alone, world, files: blobs.store, settings }
    }
    const fail = (app: string, error: unknown) => {
      throw new Error(`${app}: ${String(error)}`)
    }
    /** Works so many days later, when all that was stored so far is older than the free days. */
    const later = async (days: number, work: () => Promise<void>) => {
      service().world.advance(days * dayMs)
      await work().finally(() => service().world.advance(-days * dayMs))
    }
    const charge = async (market: Market, due: bigint, days = 40) => {
      const parts = await makeParts(market, due)
      await later(days, () => postStorageFees(parts, fail))
    }
    const readDebt = async (market: Market): Promise<string> =>
      (await service().request('GET', `/api/billing/${market.appId}`, { headers: market.headers }))
        .body.fees.storage_owed

    test('a fee for storage takes earnings first; what of deposits it took is not there for keys that pay, whatever is earned later', async () => {
      const [market, customer] = [await open(), await open()]
      const pay = await makeAgent(market)
      const earn = await makeAgent(customer, market)
      await sell(market)
      await prepay(market, '5000')
      await prepay(customer, '9000')
      const parts = await makeParts(market, 4_000n)
      await later(40, async () => {
        await postStorageFees(parts, fail)
        // It had earned 1,600 of the 4,000.
        expect(await readEarnings(service(), market)).toBe(2_600n)
        expect((await earn(5))[0]).toBe(200)
        expect(await readEarnings(service(), market)).toBe(6_600n)
        expect(await pay(3)).toEqual([403, 'prepaid', '2600'])
        expect((await pay(2))[0]).toBe(200)
        expect(await pay(1)).toEqual([403, 'prepaid', '600'])
      })
      await expectBalanced(service())
    })

    test('a pass that was bought is good for who owes for storage, as it takes nothing', async () => {
      const [market, seller] = [await open(), await open()]
      const [, name = ''] = seller.root.split('::')
      const target = { collection: name }
      const rule = { target, operation: 'read', model: 'time_pass', hours: 24, amount: '500' }
      const sold = await service().request('PATCH', `/api/apps/${seller.appId}/pricing`, {
        ...{ headers: seller.headers, body: { set: [rule] } },
      })
      expect(sold.status, sold.text).toBe(200)
      const made = await post(market, '/keys', { permissions: ['Pay'], pay_limits: {}, name: 'a' })
      const headers = { 'x-agent-key': made.body.key }
      await prepay(market, '2000')
      const path = `/api/apps/${seller.appId}/passes`
      const raw = JSON.stringify({ target, hours: 24 })
      const parts = await makeParts(market, 4_000n)
      await later(40, async () => {
        const pass = await ask(service(), { method: 'POST', path, raw, headers })
        expect(pass.status, pass.text).toBe(200)
        await postStorageFees(parts, fail)
        expect(await readDebt(market)).toBe('2500')
        const reply = await ask(service(), list({ root: seller.root, limit: 2 }), headers)
        expect(reply.status, reply.text).toBe(200)
        expect((await readReceipt(service(), reply)).amount).toBe('0')
      })
      await expectBalanced(service())
    })

    test('whoever owes for storage refunds no more than it has beside that', async () => {
      const market = await open()
      await charge(market, 1_000n)
      const payment = await sell(market)
      expect(await readDebt(market)).toBe('1000')
      expect(await readEarnings(service(), market)).toBe(600n)
      const refund = (amount: string) => post(market, `/sales/${payment}/refund`, { amount })
      const refused = await refund('601')
      expect([refused.status, refused.body.code, refused.body.details]).toEqual([
        ...[409, 'BALANCE_TOO_LOW', { available: '600', asked: '601' }],
      ])
      expect((await refund('600')).status).toBe(200)
      expect(await readEarnings(service(), market)).toBe(0n)
      await charge(market, 0n, 41)
      expect(await readDebt(market)).toBe('0')
      await expectBalanced(service())
    })

    test('a key spends nothing of what its application owes for storage, also where the debt is noted between two purchases', async () => {
      const market = await open()
      const pay = await makeAgent(market)
      await charge(market, 1_500n)
      await prepay(market, '5000')
      expect((await pay(4))[0]).toBe(402)
      expect((await pay(3))[0]).toBe(200)
      expect((await pay(1))[0]).toBe(402)
      expect(await readEarnings(service(), market)).toBe(500n)

      const other = await open()
      const spend = await makeAgent(other)
      const parts = await makeParts(other, 1_500n)
      const { chain } = parts.tenants.system
      const died = () => Promise.reject(new Error('died'))
      const dying = {
        head: () => chain.head(),
        whenApplied: (height: number) => chain.whenApplied(height),
        append: died,
      }
      const system = { ...parts.tenants.system, chain: dying }
      const tenants = { system } as unknown as StorageFeeParts['tenants']
      await later(40, () => postStorageFees({ ...parts, tenants }, () => undefined))
      // The fee is held, and nobody owes anything yet.
      await prepay(other, '4000')
      expect((await spend(1))[0]).toBe(200)
      expect((await spend(1))[0]).toBe(200)
      await later(40, () => postStorageFees(parts, fail))
      expect(await readDebt(other)).toBe('1500')
      expect((await spend(1))[0]).toBe(402)
      await expectBalanced(service())
    })

    test('whoever owes for storage is paid to us until its balance has that beside the share, also under a quote from before', async () => {
      const market = await openMarket(service())
      await setPrices(service(), market, [
        { operation: 'read', model: 'per_access', amount: '1000' },
      ])
      const wallet = `0x${'7'.repeat(40)}`
      const owner = { headers: service().operator, body: { owner_address: wallet } }
      await service().request('PATCH', `/api/apps/${market.appId}`, owner)
      await post(market, '/payout/settings', { direct_settlement: true })
      const asked = list({ root: market.root, limit: 2 })
      const findPayee = async () => {
        const required = await quote(service(), asked)
        const text = Buffer.from(required.headers.get('payment-required') ?? '', 'base64')
        const { accepts }: Json = JSON.parse(text.toString())
        return accepts.find(({ scheme }: Json) => scheme === 'exact').payTo
      }
      const payTo = service().running.devnet?.network.payTo
      await prepay(market, '1000')
      const buyer = await createFundedBuyer(service(), 50_000n)
      const before = await buyer.payV2(await quote(service(), asked))
      await charge(market, 1_900n)
      expect(await readDebt(market)).toBe('900')
      const refused = await ask(service(), asked, before)
      expect([refused.status, refused.body.error]).toEqual([
        402,
        expect.stringMatching(/paid directly/),
      ])
      expect(await findPayee()).toBe(payTo)
      // A share is 200, and 100 are there beside the debt.
      await prepay(market, '1000')
      expect(await findPayee()).toBe(payTo)
      await prepay(market, '1000')
      expect(await findPayee()).toBe(wallet)
      expect((await buyer.buy(service(), asked)).status).toBe(200)
      await expectBalanced(service())
    })

    test('what a seller locked is spent by no key that knows the balance from before, nor refunded', async () => {
      const market = await open()
      const pay = await makeAgent(market)
      const payment = await sell(market)
      await prepay(market, '5000')
      expect((await pay(1))[0]).toBe(200)
      expect((await pay(1))[0]).toBe(200)
      await lock(market, '4000')
      expect((await pay(1))[0]).toBe(402)
      const refund = await post(market, `/sales/${payment}/refund`, { amount: '700' })
      expect([refund.status, refund.body.details]).toEqual([
        409,
        { available: '600', asked: '700' },
      ])
      await prepay(market, '1000')
      expect((await pay(1))[0]).toBe(200)
      await expectBalanced(service())
    })

    test('a debt is asked for on after the operator charges no more, and then nothing of the balance stays for it', async () => {
      const market = await open()
      await charge(market, 1_000n)
      await charge(market, 0n, 41)
      expect(await readDebt(market)).toBe('1000')
      await sell(market)
      expect(await readEarnings(service(), market)).toBe(600n)
      // Nobody configured fees, so the service itself collects the debt at its next start, and charges nothing new.
      expect(service().config.storageFees).toBeUndefined()
      service().world.advance(42 * dayMs)
      await service().restart()
      await expect.poll(() => readDebt(market)).toBe('0')
      service().world.advance(-42 * dayMs)
      expect(await readEarnings(service(), market)).toBe(600n)
      expect((await post(market, '/payout/info')).body.available_balance).toBe('600')
      await charge(market, 0n, 43)
      const rows = await service().database.query<{ amount: string; paid: string }>(sql`
        SELECT amount::text, paid::text FROM system.storage_fee WHERE app = ${market.appId} ORDER BY leaf`)
      expect(rows).toEqual([
        { amount: '1000', paid: '0' },
        { amount: '0', paid: '1000' },
      ])
      await expectBalanced(service())
    })
  },
  { devnet: true },
)
