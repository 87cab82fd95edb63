import { expect, test, vi } from 'vitest'
import { watchMs } from '../../packages/server/src/services/payments/channels/channel-register.ts'
import { ask, list } from '../support/buyer.ts'
import {
  expectBalanced,
  openMarket,
  readAccounts,
  readChainBalance,
  readEarnings,
} from '../support/market.ts'
import { connectDevnet, createFundedPayer } from '../support/payer.ts'
import { withService } from '../support/per-engine.ts'
import { type ChannelBuyer, claimAll, makeChannelBuyer, readChannels } from './channel-buyer.ts'
import { expectAuditEqual, sendAgain, takeBack, watchUntil } from './reorganize.ts'

/** The time-out is for a slow day: each test waits for another process, an audit and many blocks. */
vi.setConfig({ testTimeout: 240_000 })

const claimerMs = 10_000

withService(
  (service) => {
    const open = () => openMarket(service(), { price: { per_row: '100' } })
    const readOne = async ({ address }: ChannelBuyer) => (await readChannels(service(), address))[0]
    const awaitChannel = (buyer: ChannelBuyer, expected: object) =>
      watchUntil(service(), async () => {
        service().world.passInterval(claimerMs)
        const found = await readOne(buyer)
        return Object.entries(expected).every(([name, value]) => Object(found)[name] === value)
      })

    test('P12: a channel whose deposit a reorganisation took back for good buys nothing more', async () => {
      const market = await open()
      const { root } = market
      const buyer = await makeChannelBuyer(service())
      const payer = await createFundedPayer(service(), 1n, buyer.account)
      const value = await readChainBalance(service(), buyer.address)
      const other = await payer.sign({ to: `0x${'9'.repeat(40)}`, value })
      const chain = connectDevnet(service())
      const since = await chain.getBlockNumber({ cacheTime: 0 })
      const first = await buyer.list({ root, limit: 3 })
      expect(first.status, first.text).toBe(200)
      expect(await readOne(buyer)).toMatchObject({ balance: '1000000', charged: '300' })
      const asked = list({ root, limit: 2 })
      const voucher = await buyer.sign(asked)
      await takeBack(service(), since)
      await other.send()
      await chain.mine({ blocks: 1 })
      await chain.setAutomine(true)
      await sendAgain(service())
      await awaitChannel(buyer, { balance: '0' })
      const next = await ask(service(), asked, voucher)
      expect(next.status, next.text).toBe(402)
      expect(await readOne(buyer)).toMatchObject({ balance: '0', charged: '300', claimed: '0' })
      expect(await readEarnings(service(), market)).toBe(240n)
      // It would be the seller's own money: nobody has paid.
      const { headers } = market
      const of = `/api/apps/${market.appId}`
      const sold = await service().request('GET', `${of}/transactions`, { headers })
      const path = `${of}/sales/${sold.body.transactions[0].id}/refund`
      const refund = await service().request('POST', path, { headers, body: { amount: '100' } })
      expect([refund.status, refund.body.error], refund.text).toEqual([
        409,
        expect.stringContaining('has less on its network at this moment than it was charged'),
      ])
      await expectBalanced(service())
      await expectAuditEqual(service())
    })

    test('P12: a claim that a reorganisation took back is claimed again, and its money comes once', async () => {
      const { root } = await open()
      const buyer = await makeChannelBuyer(service())
      const first = await buyer.list({ root, limit: 3 })
      expect(first.status, first.text).toBe(200)
      const chain = connectDevnet(service())
      const payTo = service().running.devnet?.network.payTo ?? ''
      const before = await readChainBalance(service(), payTo)
      const since = await chain.getBlockNumber({ cacheTime: 0 })
      await claimAll(service())
      expect(await readOne(buyer)).toMatchObject({ claimed: '300' })
      expect((await readChainBalance(service(), payTo)) - before).toBe(300n)
      await takeBack(service(), since)
      await awaitChannel(buyer, { claimed: '0' })
      await expectBalanced(service())
      await chain.setAutomine(true)
      await sendAgain(service())
      await chain.mine({ blocks: 1 })
      // A channel that the chain was just asked about is not asked about again at once.
      service().world.advance(watchMs)
      await awaitChannel(buyer, { claimed: '300' })
      await claimAll(service())
      expect((await readChainBalance(service(), payTo)) - before).toBe(300n)
      const accounts = await readAccounts(service())
      expect(accounts.get('escrow:eip155:84532')).toBe(0n)
      expect(accounts.get(`channel:${(await readOne(buyer))?.id}`)).toBe(0n)
      await expectBalanced(service())
      await expectAuditEqual(service())
    })
  },
  { devnet: true },
)
