import { expect, test } from 'vitest'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { rebuild } from '../../packages/server/src/operator/rebuild.ts'

import { type ChannelBuyer, claimAll, makeChannelBuyer } from '../payments/channel-buyer.ts'
import { ask, list } from '../support/buyer.ts'
import { expectBalanced } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import { perRow } from '../support/price-rules.ts'
import { createSeller } from './support.ts'

withService(
  (service) => {
    const target = { collection: 'sales' }
    const seller = async (...rules: object[]) => {
      const app = await createSeller(service(), {})
      const { status, text } = await app.call('PUT', '/pricing', { rules })
      expect(status, text).toBe(200)
      return { ...app, root: `${app.appId}::sales` }
    }
    const quota = (unit: string, quantity: number) => ({
      ...{ target, operation: 'read', model: 'free_quota', unit, quantity },
    })
    /** Reads rows by vouchers, and gives what was charged. */
    const readBy = async (buyer: ChannelBuyer, root: string, limit: number): Promise<number> => {
      const reply = await buyer.list({ root, limit })
      expect(reply.status, reply.text).toBe(200)
      return Number(reply.notice.extra.chargedAmount)
    }
    const salt = (n: number) => `0x${String(n).padStart(64, '0')}` as const

    test('rows above a bound cost less by vouchers too, and all channels of a wallet count together', async () => {
      const { root } = await seller({ ...perRow('100'), tiers: [{ above: 4, amount: '10' }] })
      const buyer = await makeChannelBuyer(service())
      const other = await makeChannelBuyer(service(), { key: buyer.key, salt: salt(1) })
      expect(await readBy(buyer, root, 3)).toBe(300)
      // One row at 100, and two above the bound.
      expect(await readBy(other, root, 3)).toBe(120)
      expect(await readBy(buyer, root, 3)).toBe(30)
      expect(await readBy(await makeChannelBuyer(service()), root, 3)).toBe(300)
      await expectBalanced(service())
    })

    test('a quota is free by vouchers once the wallet has paid, and the wallet and its channels have it once', async () => {
      const app = await seller(perRow('1000'), quota('row', 4))
      const buyer = await makeChannelBuyer(service())
      expect(await readBy(buyer, app.root, 3)).toBe(3000)
      expect(await readBy(buyer, app.root, 3)).toBe(0)
      // One row is left of it.
      expect(await readBy(buyer, app.root, 3)).toBe(2000)
      expect(await readBy(buyer, app.root, 1)).toBe(1000)
      await expectBalanced(service())
    })

    test('many requests at once, by several channels of a wallet, get no more of a quota than it has', async () => {
      const app = await seller(perRow('100'), quota('row', 10))
      const first = await makeChannelBuyer(service())
      expect(await readBy(first, app.root, 3)).toBe(300)
      const buyers = await Promise.all(
        [1, 2, 3, 4].map((n) => makeChannelBuyer(service(), { key: first.key, salt: salt(n) })),
      )
      const charges = await Promise.all(
        buyers.map(
          async (buyer) => (await readBy(buyer, app.root, 3)) + (await readBy(buyer, app.root, 3)),
        ),
      )
      // 8 x 3 rows, of which 10 are free.
      expect(charges.reduce((sum, one) => sum + one, 0)).toBe(1400)
      await expectBalanced(service())
    })

    test('an answer that a quota covered is given again to the same voucher and request, and the quota is used once', async () => {
      const app = await seller(perRow('1000'), quota('row', 4))
      const buyer = await makeChannelBuyer(service())
      expect(await readBy(buyer, app.root, 1)).toBe(1000)
      const asked = list({ root: app.root, limit: 3 })
      const header = await buyer.sign(asked)
      const first = await ask(service(), asked, header)
      const again = await ask(service(), asked, header)
      expect([first.status, again.status], again.text).toEqual([200, 200])
      expect(again.headers.get('x-payment-id')).toBe(first.headers.get('x-payment-id'))
      expect(again.headers.get('payment-response')).toBe(first.headers.get('payment-response'))
      // One row is left of it, and is for a request of its own.
      expect(await readBy(buyer, app.root, 2)).toBe(1000)
      const late = await ask(service(), asked, header)
      expect([late.status, late.headers.get('x-payment-id')], late.text).toEqual([
        200,
        first.headers.get('x-payment-id'),
      ])
      // Whoever asks anew buys anew.
      expect(await readBy(buyer, app.root, 3)).toBe(3000)
      await expectBalanced(service())
    })

    test('an answer that a quota covered is given again also where the same was asked anew since, by the same voucher', async () => {
      const app = await seller(perRow('1000'), quota('row', 3))
      const buyer = await makeChannelBuyer(service())
      expect(await readBy(buyer, app.root, 1)).toBe(1000)
      const asked = list({ root: app.root, limit: 1 })
      const headers = [await buyer.sign(asked), await buyer.sign(asked)]
      const ids: (string | null)[] = []
      for (const header of [...headers, ...headers]) {
        const reply = await ask(service(), asked, header)
        expect(reply.status, reply.text).toBe(200)
        ids.push(reply.headers.get('x-payment-id'))
      }
      expect(ids[1]).not.toBe(ids[0])
      expect(ids.slice(2)).toEqual(ids.slice(0, 2))
      // One row is left of it.
      expect(await readBy(buyer, app.root, 2)).toBe(1000)
      await expectBalanced(service())
    })

    test('a time pass that a wallet bought makes requests by its channel free while it is valid', async () => {
      const pass = { target, operation: 'read', model: 'time_pass', hours: 24, amount: '500' }
      const app = await seller(perRow('100'), pass)
      const buyer = await makeChannelBuyer(service())
      const path = `/api/apps/${app.appId}/passes`
      const bought = await buyer.post(path, { target, hours: 24 })
      expect(bought.status, bought.text).toBeLessThan(300)
      expect(bought.notice.extra.chargedAmount).toBe('500')
      expect(await readBy(buyer, app.root, 3)).toBe(0)
      const other = await makeChannelBuyer(service(), { key: buyer.key, salt: salt(7) })
      expect(await readBy(other, app.root, 3)).toBe(0)
      expect(await readBy(await makeChannelBuyer(service()), app.root, 3)).toBe(300)
      await expectBalanced(service())
    })

    test('tables made anew from the log are the same, what was charged is claimed, and the audit finds no difference', async () => {
      await claimAll(service())
      await service().whileStopped(async (config) => {
        expect((await audit(config, () => undefined)).difference).toBeUndefined()
        expect(await rebuild(config, () => undefined)).toMatchObject({ equal: true })
      })
    })
  },
  { devnet: true },
)
