import { describe, expect, test } from 'vitest'
import { createFundedBuyer, readBalance } from '../support/buyer.ts'
import { expectBalanced, openMarket, readEarnings, setPrices } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import { connectTo, makeCallback, silenceConsole } from './sdk.ts'

describe('the unmodified public SDK: payments', () =>
  withService(
    (service) => {
      silenceConsole()

      const paidCollection = async () => {
        const market = await openMarket(service(), { records: [] })
        await setPrices(service(), market, [
          { operation: 'write', model: 'per_record', amount: '500' },
        ])
        const { client, seen } = connectTo(service(), { appId: market.appId, appKey: market.key })
        return { market, client, seen }
      }

      test('documents are created, changed and deleted, each paid once by the callback', async () => {
        const { market, client } = await paidCollection()
        const buyer = await createFundedBuyer(service())
        const pay = makeCallback(buyer)
        const { collection } = market
        await client.createDocument(collection, { email: 'a@x', age: 1 }, pay)
        await client.updateDocument(collection, { email: 'a@x' }, { age: 2 }, pay)
        await client.upsertDocument(collection, { email: 'a@x' }, { age: 0 }, { age: 3 }, pay)
        expect(await client.findMany(collection)).toMatchObject([{ email: 'a@x', age: 3 }])
        expect(await client.deleteDocument(collection, { email: 'a@x' }, pay)).toBe(true)
        expect(await client.countDocuments(collection)).toBe(0)
        expect(await readEarnings(service(), market)).toBe(4n * 400n)
        expect(await readBalance(service(), buyer.address)).toBe(0n)
        await expectBalanced(service())
      })

      test('a paid store that does not wait gives its ticket', async () => {
        const { market, client } = await paidCollection()
        const pay = makeCallback(await createFundedBuyer(service()))
        const request = { collection: market.collection, data: [{ id: 'x' }] }
        const { ticket_id } = await client.store(request, pay, false)
        expect(await client.waitForTaskCompletion(ticket_id ?? '', 20)).toMatchObject({
          status: 'Completed',
        })
      })

      test('a store without a callback, or with too little money, stores nothing and shows the quote', async () => {
        const { market, client, seen } = await paidCollection()
        const request = { collection: market.collection, data: [{ id: 'x' }] }
        await expect(client.store(request)).rejects.toMatchObject({
          code: 'PAYMENT_REQUIRED',
          statusCode: 402,
          details: { amountRaw: '500', network: 'base-sepolia', paymentMethod: 'x402-facilitator' },
        })
        const poor = makeCallback(await createFundedBuyer(service(), 0n))
        await expect(client.store(request, poor)).rejects.toThrow()
        expect(seen.at(-1)).toMatchObject({ status: 402, body: { error: expect.any(String) } })
        expect(await client.countDocuments(market.collection)).toBe(0)
      })
    },
    { devnet: true },
  ))
