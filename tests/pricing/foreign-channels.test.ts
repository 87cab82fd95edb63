import { expect, test } from 'vitest'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { rebuild } from '../../packages/server/src/operator/rebuild.ts'
import { makeChannelBuyer } from '../payments/channel-buyer.ts'
import { type ForeignChannel, openForeignChannel, readCharge } from '../payments/foreign-channel.ts'
import { type Asked, list } from '../support/buyer.ts'
import { expectBalanced, readReceipt } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import { perRow } from '../support/price-rules.ts'
import { askSigned, makeTestWallet } from '../support/wallet.ts'
import { createSeller } from './support.ts'

withService(
  (service) => {
    const target = { collection: 'sales' }
    const open = async (rules: readonly object[] = [], price = '100') => {
      const app = await createSeller(service(), {})
      const { status, text } = await app.call('PUT', '/pricing', {
        rules: [perRow(price), ...rules],
      })
      expect(status, text).toBe(200)
      const read = (limit: number): Asked => list({ root: `${app.appId}::sales`, limit })
      const payer = await makeChannelBuyer(service())
      const readBy = async (limit: number) => {
        const reply = await payer.list({ root: `${app.appId}::sales`, limit })
        expect(reply.status, reply.text).toBe(200)
        return Number(reply.notice.extra.chargedAmount)
      }
      return { app, read, payer, readBy }
    }
    const buy = async (channel: ForeignChannel, asked: Asked, charged: bigint) => {
      const { reply, charge } = await channel.buy(asked, charged)
      expect(reply.status, reply.text).toBe(200)
      return { reply, charge }
    }

    test('a pass is not for a channel that somebody else opened in the name of its wallet', async () => {
      const pass = { target, operation: 'read', model: 'time_pass', hours: 24, amount: '500' }
      const { app, read, payer, readBy } = await open([pass])
      const bought = await payer.post(`/api/apps/${app.appId}/passes`, { target, hours: 24 })
      expect(bought.status, bought.text).toBeLessThan(300)
      expect(await readBy(3)).toBe(0)
      const foreign = await openForeignChannel(service(), { payer: payer.address, asked: read(3) })
      expect((await buy(foreign, read(3), 0n)).charge).toBe(300n)
      expect((await buy(foreign, read(1), 300n)).charge).toBe(100n)
      await expectBalanced(service())
    })

    test('a quota is neither used up nor begun by a channel that somebody else opened in the name of its wallet', async () => {
      const quota = { target, operation: 'read', model: 'free_quota', unit: 'row', quantity: 4 }
      const { read, payer, readBy } = await open([quota])
      const foreign = await openForeignChannel(service(), { payer: payer.address, asked: read(3) })
      // It has paid nothing, so it has no quota, and it gives its wallet none.
      expect((await buy(foreign, read(1), 0n)).charge).toBe(100n)
      expect(await readBy(1)).toBe(100)
      // The channel has a quota of its own by now.
      expect((await buy(foreign, read(3), 100n)).charge).toBe(0n)
      expect(await readBy(3)).toBe(0)
      expect(await readBy(1)).toBe(0)
      expect((await buy(foreign, read(3), 100n)).charge).toBe(200n)
      await expectBalanced(service())
    })

    test('where the wallet signs the request itself, such a channel has what the wallet has', async () => {
      const pass = { target, operation: 'read', model: 'time_pass', hours: 24, amount: '500' }
      const { app, read } = await open([pass])
      const { account, address, post } = await makeChannelBuyer(service())
      await post(`/api/apps/${app.appId}/passes`, { target, hours: 24 })
      const wallet = makeTestWallet(account)
      const foreign = await openForeignChannel(service(), { payer: address, asked: read(2) })
      const asked = read(2)
      const headers = await foreign.sign(asked, 0n)
      const body = JSON.parse(asked.raw ?? '')
      const signed = await askSigned(service(), wallet, { ...asked, body, headers })
      expect(signed.status, signed.text).toBe(200)
      expect(readCharge(signed)).toBe(0n)
      // Its next request is not signed.
      expect((await buy(foreign, read(1), 0n)).charge).toBe(100n)
    })

    test('a sale by such a channel names it as its buyer, in its receipt too, and a refund of the sale is its wallet’s', async () => {
      const { app, read, payer } = await open()
      const foreign = await openForeignChannel(service(), { payer: payer.address, asked: read(3) })
      const { reply } = await buy(foreign, read(2), 0n)
      const buyer = `channel:${foreign.id}`
      const receipt = await readReceipt(service(), reply)
      expect(receipt).toMatchObject({ payer: payer.address, buyer })
      const sales = await app.call('GET', '/sales')
      expect(sales.body.sales[0]).toMatchObject({ buyer, gross: '200' })
      const path = `/sales/${receipt.payment_id}/refund`
      const refunded = await app.call('POST', path, { amount: '50' })
      expect(refunded.status, refunded.text).toBeLessThan(300)
      const { body } = await service().request('GET', `/api/wallets/${payer.address}`)
      expect(body.available).toBe('50')
    })

    test('the refund of a day that its channels have not earned is left to the wallet, whoever else asks for one in its name', async () => {
      const { app, payer, readBy } = await open([], '1')
      expect(await readBy(1)).toBe(1)
      const path = `/api/apps/${app.appId}/collections/sales/records/s1`
      const asked = { method: 'GET', path }
      const foreign = await openForeignChannel(service(), { payer: payer.address, asked })
      await buy(foreign, asked, 0n)
      const refund = async (channel: ForeignChannel) => {
        const headers = await channel.sign(asked, 1n, 'refund')
        return (await fetch(`${payer.url}${path}`, { headers })).text()
      }
      expect(await refund(foreign)).toContain('refunded')
      // The deposit of the other one went to the wallet.
      const own = await payer.scheme.refund(`${payer.url}${path}`)
      expect(own).toMatchObject({ success: true })
      // All others in its name share one.
      const options = { payer: payer.address, asked, salt: 1 }
      const another = await openForeignChannel(service(), options)
      await buy(another, asked, 0n)
      expect(await refund(another)).toContain('refund_too_soon')
    })

    test('tables made anew from the log are the same, and the audit finds no difference', async () => {
      await service().whileStopped(async (config) => {
        expect((await audit(config, () => undefined)).difference).toBeUndefined()
        expect(await rebuild(config, () => undefined)).toMatchObject({ equal: true })
      })
    })
  },
  { devnet: true },
)
