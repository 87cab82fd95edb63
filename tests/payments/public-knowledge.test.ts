import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { ask, createFundedBuyer, list, type PaymentHeader, quote } from '../support/buyer.ts'
import { expectBalanced, openMarket, readChainBalance } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import { makeTestWallet } from '../support/wallet.ts'

withService(
  (service) => {
    test('P11: no public knowledge about the chain or an address stands for a quote', async () => {
      const market = await openMarket(service(), { price: { per_row: '100' } })
      const buyer = await createFundedBuyer(service())
      const asked = list({ root: market.root, limit: 3 })
      const header = await buyer.payV1(await quote(service(), asked))
      const signature = await makeTestWallet(buyer.account).sign({
        origin: service().url,
        method: asked.method,
        path: asked.path,
        body: asked.raw ?? '',
        timestamp: Math.floor(service().world.now() / 1000),
      })
      const bought = await ask(service(), asked, { ...header, ...signature })
      expect(bought.status, bought.text).toBe(200)

      const text = Buffer.from(header['x-payment'] ?? '', 'base64').toString()
      const seen = JSON.parse(text)
      const { nonce } = seen.payload.authorization
      const reckoned = (name: string) =>
        createHash('sha256').update(`${nonce} ${name}`).digest('base64url')
      const [address, wallet] = ['127.0.0.1', `wallet ${buyer.address}`].map(reckoned)
      for (const quoteId of [address, wallet, `${address} ${wallet}`]) {
        const theft = Buffer.from(JSON.stringify({ ...seen, quoteId })).toString('base64')
        const forged: PaymentHeader = { 'x-payment': theft }
        const reply = await ask(service(), asked, forged)
        expect(reply.status, reply.text).toBe(409)
        expect(reply.text).not.toContain('Wien')
      }
      expect((await ask(service(), asked, header)).text).toBe(bought.text)
      expect(await readChainBalance(service(), buyer.address)).toBe(100_000_000n - 300n)
      await expectBalanced(service())
    })
  },
  { devnet: true },
)
