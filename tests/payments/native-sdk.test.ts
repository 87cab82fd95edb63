import { PaymentRequiredError, type QueryResponse } from '@onchaindb/sdk'
import { describe, expect, test, vi } from 'vitest'
import { connectTo, silenceConsole } from '../clients/sdk.ts'
import { expectBalanced, openMarket, readEarnings, setPrices } from '../support/market.ts'
import { createFundedPayer, type Payer } from '../support/payer.ts'
import { withService } from '../support/per-engine.ts'
import type { Json } from '../support/service.ts'

/** The payment callback of an application whose user sends a plain transfer. */
function transferring(payer: Payer): (quote: Json) => Promise<Json> {
  return async (quote) => {
    const { payTo, maxAmountRequired } = findNative(quote)
    const txHash = await payer.transfer({ to: payTo, value: BigInt(maxAmountRequired) })
    return {
      txHash,
      network: quote.network,
      sender: payer.account.address,
      chainType: quote.chainType,
      paymentMethod: 'native',
    }
  }
}

const findNative = (quote: Json): Json =>
  quote.allOptions.find((one: Json) => one.extra.paymentMethod === 'native')

describe('the unmodified public SDK: transfers that the user makes', () =>
  withService(
    (service) => {
      silenceConsole()

      test('the SDK stores with a callback that transfers', async () => {
        const market = await openMarket(service(), { records: [] })
        await setPrices(service(), market, [
          { operation: 'write', model: 'per_record', amount: '500' },
        ])
        const { client } = connectTo(service(), { appId: market.appId, appKey: market.key })
        const payer = await createFundedPayer(service())
        const request = { collection: market.collection, data: [{ id: 'x', n: 1 }] }
        const made = await client.store(request, transferring(payer))
        expect(made).toMatchObject({ id: 'x', confirmed: true })
        expect(await readEarnings(service(), market)).toBe(400n)
        await expectBalanced(service())
      })

      test('execute asks for a payment, and executeWithPayment brings the hash and gets the records', async () => {
        const market = await openMarket(service(), { price: { per_row: '1000' } })
        const { client } = connectTo(service(), { appId: market.appId })
        const payer = await createFundedPayer(service())
        const query = () => client.queryBuilder().collection(market.collection).selectAll().limit(2)
        const required: unknown = await query()
          .execute()
          .catch((error: unknown) => error)
        expect(required).toBeInstanceOf(PaymentRequiredError)
        const { quote }: Json = required
        const { payTo, maxAmountRequired } = findNative(quote)
        const hash = await payer.transfer({ to: payTo, value: BigInt(maxAmountRequired) })
        const log = vi.mocked(console.log)
        log.mockClear()
        // It names the network mocha-4 and the sender "unknown".
        const paid: QueryResponse<Json> = await query().executeWithPayment(quote.quoteId, hash)
        expect(paid.records).toHaveLength(2)
        const again = await query().executeWithPayment(quote.quoteId, hash, 'base-sepolia')
        expect(again).toEqual(paid)
        const told = log.mock.calls.find(([text]) => String(text).includes('Payment confirmed'))
        expect(told?.[1]).toMatchObject({
          txHash: hash,
          network: 'base-sepolia',
          blockHeight: expect.any(Number),
          amount: '2000',
          confirmedAt: expect.stringMatching(/Z$/),
        })
        expect(await readEarnings(service(), market)).toBe(1600n)
      })
    },
    { devnet: true },
  ))
