import { expect, test } from 'vitest'
import { noLog } from '../../packages/server/src/base/log.ts'
import { realWorld } from '../../packages/server/src/base/world.ts'
import { dropReplies } from '../../packages/server/src/services/payments/claims/reply-store.ts'
import { makeEscrow } from '../../packages/server/src/x402/channels/escrow.ts'
import { Failures } from '../../packages/server/src/x402/failures.ts'
import { makePaymentsUnderWay } from '../../packages/server/src/x402/payments-under-way.ts'
import { openRpc } from '../../packages/server/src/x402/rpc.ts'
import type { JournaledSender } from '../../packages/server/src/x402/sender.ts'
import { type Asked, ask, askFrom, list } from '../support/buyer.ts'
import { expectBalanced, openMarket } from '../support/market.ts'
import { connectDevnet } from '../support/payer.ts'
import { withService } from '../support/per-engine.ts'
import type { Json } from '../support/service.ts'
import { type ChannelBuyer, claimAll, makeChannelBuyer, readChannels } from './channel-buyer.ts'

type Header = Readonly<Record<string, string>>

withService(
  (service) => {
    const open = () => openMarket(service(), { price: { per_row: '100' } })
    const readOne = async ({ address }: ChannelBuyer) => (await readChannels(service(), address))[0]
    const decode = (header: Header): Json =>
      JSON.parse(Buffer.from(Object.values(header)[0] ?? '', 'base64').toString())
    /** Sends what somebody made of a payment that is not its own. */
    const send = (asked: Asked, payment: Json) => {
      const value = Buffer.from(JSON.stringify(payment)).toString('base64')
      return askFrom('127.0.0.2', service(), { ...asked, headers: { 'payment-signature': value } })
    }

    test('a voucher that a claim has shown to all buys nothing more, though its payer goes on', async () => {
      const { root } = await open()
      const buyer = await makeChannelBuyer(service())
      await buyer.list({ root, limit: 1 })
      // A cap of nine rows, of which five are there: 400 of it are left.
      const nine = list({ root, limit: 9 })
      const header = await buyer.sign(nine)
      expect((await ask(service(), nine, header)).status).toBe(200)
      await claimAll(service())
      expect(await readOne(buyer)).toMatchObject({ charged: '600', claimed: '600' })
      const seen = decode(header)
      const thief = structuredClone(seen)
      thief.accepted.amount = '400'
      thief.accepted.extra.quoteId = 'none'
      const stolen = await send(list({ root, limit: 4 }), thief)
      expect(stolen.status, stolen.text).toBe(402)
      // Nor does it make the total higher for nothing.
      thief.accepted.amount = '100'
      expect((await send(list({ root, limit: 1 }), thief)).status).toBe(402)
      expect(await readOne(buyer)).toMatchObject({ charged: '600' })
      // Its payer signs the same one for four rows.
      const again = await buyer.list({ root, limit: 4 })
      expect(again.status, again.text).toBe(200)
      await claimAll(service())
      await expectBalanced(service())
    })

    test('an answer that others of its channel followed is given to who sends its very request again, also from an emptied channel, and to nobody else', async () => {
      const { root, appId } = await open()
      const buyer = await makeChannelBuyer(service())
      await buyer.list({ root, limit: 1 })
      const two = list({ root, limit: 2 })
      const header = await buyer.sign(two)
      const lost = await ask(service(), two, header)
      expect(lost.status, lost.text).toBe(200)
      expect((await buyer.list({ root, limit: 3 })).status).toBe(200)
      const expectRefused = async () => {
        const { seen, other } = { seen: decode(header), other: structuredClone(decode(header)) }
        other.accepted.extra.quoteId = 'none'
        // From elsewhere with a quote of its own, and with the quote for something else.
        for (const reply of [
          await send(two, other),
          await send(list({ root, limit: 4 }), seen),
          await ask(service(), two, {
            'payment-signature': Buffer.from(JSON.stringify(other)).toString('base64'),
          }),
        ]) {
          expect(reply.status, reply.text).toBe(402)
          expect(reply.text).not.toContain('records')
        }
      }
      await expectRefused()
      expect((await ask(service(), two, header)).text).toBe(lost.text)
      await buyer.scheme.refund(`${buyer.url}/api/apps/${appId}/collections/cities/records/c1`)
      expect(await readOne(buyer)).toMatchObject({ balance: '600', charged: '600', claimed: '600' })
      await expectRefused()
      expect((await ask(service(), two, header)).text).toBe(lost.text)
      expect(await readOne(buyer)).toMatchObject({ balance: '600', charged: '600' })
      await expectBalanced(service())
    })

    test('the answer to the last voucher of a channel is given again to who used it, by whatever quote, and to nobody who has it from elsewhere', async () => {
      const { root } = await open()
      const buyer = await makeChannelBuyer(service())
      const two = list({ root, limit: 2 })
      const header = await buyer.sign(two)
      const sold = await ask(service(), two, header)
      expect(sold.status, sold.text).toBe(200)
      const other = structuredClone(decode(header))
      other.accepted.extra.quoteId = 'none'
      const stolen = await send(two, other)
      expect(stolen.status, stolen.text).toBe(402)
      expect(stolen.text).not.toContain('records')
      const own = { 'payment-signature': Buffer.from(JSON.stringify(other)).toString('base64') }
      expect((await ask(service(), two, own)).text).toBe(sold.text)
      expect(await readOne(buyer)).toMatchObject({ charged: '200' })
      await expectBalanced(service())
    })

    test('an answer that is not kept any more is gone for who sends its voucher again, and is sold anew to a client that signs anew', async () => {
      const { root } = await open()
      const buyer = await makeChannelBuyer(service())
      const one = list({ root, limit: 1 })
      const header = await buyer.sign(one)
      expect((await ask(service(), one, header)).status).toBe(200)
      expect(await readOne(buyer)).toMatchObject({ charged: '100' })
      await dropReplies(service().database, { nowMs: Date.now() + 25 * 3_600_000, bytesMax: 0 })
      expect((await ask(service(), one, header)).status).toBe(410)
      const forgetful = await makeChannelBuyer(service(), { key: buyer.key })
      const bought = await forgetful.list({ root, limit: 1 })
      expect(bought.status, bought.text).toBe(200)
      expect((await ask(service(), one, header)).status).toBe(410)
      expect(await readOne(buyer)).toMatchObject({ charged: '200' })
      await expectBalanced(service())
    })

    test('who has the last voucher of a channel cannot have it refunded; its payer can, from where it was used', async () => {
      const { root } = await open()
      const buyer = await makeChannelBuyer(service())
      await buyer.list({ root, limit: 1 })
      const one = list({ root, limit: 1 })
      const header = await buyer.sign(one)
      expect((await ask(service(), one, header)).status).toBe(200)
      const { balance } = (await readOne(buyer)) ?? {}
      const thief = decode(header)
      thief.payload.type = 'refund'
      thief.accepted.extra.quoteId = 'none'
      const refused = await send(one, thief)
      expect(refused.status, refused.text).toBe(402)
      expect(refused.text).toContain('refund_by_another_sender')
      expect(await readOne(buyer)).toMatchObject({ balance, claimed: '0' })
      const settled = await buyer.scheme.refund(
        `${buyer.url}/api/apps/${root.split('::')[0]}/collections/cities/records/c1`,
      )
      expect(settled).toMatchObject({ success: true })
      expect(await readOne(buyer)).toMatchObject({ balance: '200', claimed: '200' })
    })

    test('who has an old voucher of a channel is told the last one, which buys nothing either', async () => {
      const { root } = await open()
      const buyer = await makeChannelBuyer(service())
      const one = list({ root, limit: 1 })
      const old = await buyer.sign(one)
      expect((await ask(service(), one, old)).status).toBe(200)
      expect((await buyer.list({ root, limit: 9 })).status).toBe(200)
      const told = await ask(service(), list({ root, limit: 2 }), old)
      expect(told.status).toBe(402)
      const { accepts } = decode({ header: told.headers.get('payment-required') ?? '' })
      const { voucherState } = accepts[2].extra
      const thief = decode(old)
      const { signedMaxClaimable: maxClaimableAmount, signature } = voucherState
      const { channelConfig } = thief.payload
      const { channelId } = thief.payload.voucher
      const voucher = { channelId, maxClaimableAmount, signature }
      thief.payload = { type: 'voucher', channelConfig, voucher }
      thief.accepted.amount = '400'
      const stolen = await send(list({ root, limit: 4 }), thief)
      expect(stolen.status, stolen.text).toBe(402)
      expect(await readOne(buyer)).toMatchObject({ charged: '600' })
    })

    test('money that a payer has taken back is not there again while its block is not confirmed', async () => {
      const { root } = await open()
      const buyer = await makeChannelBuyer(service())
      await buyer.list({ root, limit: 5 })
      const { id = '', config = '' } = (await readOne(buyer)) ?? {}
      const devnet = service().running.devnet
      if (devnet === undefined) throw new Error('needs a devnet')
      const rpc = openRpc({ url: devnet.rpcUrl, world: realWorld })
      const by = { rpc, network: devnet.network, world: realWorld, pollMs: 4 }
      const escrow = makeEscrow({
        ...{ ...by, log: noLog, confirmations: 6 },
        sender: { address: devnet.network.payTo } as JournaledSender,
        failures: new Failures(by),
        underWay: makePaymentsUnderWay({ ...by, waitMs: 1000 }),
      })
      const chain = connectDevnet(service())
      await buyer.call('initiateWithdraw', [JSON.parse(config), 1_000_000n])
      await chain.increaseTime({ seconds: 86_401 })
      await chain.mine({ blocks: 8 })
      const usable = async () => {
        const { balance, withdrawing } = await escrow.readState(id)
        return balance - withdrawing
      }
      expect(await usable()).toBe(0n)
      expect(await buyer.call('finalizeWithdraw', [JSON.parse(config)])).toBe('success')
      expect(await usable()).toBe(0n)
    })
  },
  { devnet: true },
)
