import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { InMemoryClientChannelStorage } from '@x402/evm/batch-settlement/client'
import { FileClientChannelStorage } from '@x402/evm/batch-settlement/client/file-storage'
import { expect, test, vi } from 'vitest'
import { requirePresent } from '../../packages/server/src/base/assert.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { rebuild } from '../../packages/server/src/operator/rebuild.ts'
import { findClaim } from '../../packages/server/src/services/payments/claims/claim-store.ts'
import { Payments } from '../../packages/server/src/services/payments/payments.ts'
import { ask, list, parseEntry, quote } from '../support/buyer.ts'
import {
  expectBalanced,
  type Market,
  openMarket,
  readAccounts,
  readChainBalance,
  readEarnings,
  store,
} from '../support/market.ts'
import { connectDevnet } from '../support/payer.ts'
import { withService } from '../support/per-engine.ts'
import type { Json } from '../support/service.ts'
import { type ChannelBuyer, claimAll, makeChannelBuyer, readChannels } from './channel-buyer.ts'
import { replacePayments } from './dying-payments.ts'

withService(
  (service) => {
    const open = () => openMarket(service(), { price: { per_row: '100' } })
    const readOne = async ({ address }: ChannelBuyer) => (await readChannels(service(), address))[0]
    /** Charged in the ledger, earned by the seller: the same, and no more than vouchers allow. */
    const expectCharged = async (market: Market, buyer: ChannelBuyer, charged: bigint) => {
      expect(BigInt((await readOne(buyer))?.charged ?? 0)).toBe(charged)
      expect(await readEarnings(service(), market)).toBe((charged * 8n) / 10n)
      await expectBalanced(service())
    }

    test('a stock client deposits once and pays by vouchers; chain, ledger and client agree after a claim', async () => {
      const market = await open()
      const buyer = await makeChannelBuyer(service())
      const first = await buyer.list({ root: market.root, limit: 3 })
      expect(first.status, first.text).toBe(200)
      expect(first.notice).toMatchObject({ success: true, amount: '1000000' })
      expect(first.notice.extra.chargedAmount).toBe('300')
      let charged = 300n
      for (const limit of [1, 2, 5, 9]) {
        const reply = await buyer.list({ root: market.root, limit })
        expect(reply.status, reply.text).toBe(200)
        // A cap of nine rows, of which five are there.
        const due = BigInt(Math.min(limit, 5) * 100)
        charged += due
        expect(reply.notice.transaction).toBe('')
        expect(reply.notice.extra.chargedAmount).toBe(String(due))
        expect(reply.notice.extra.channelState.chargedCumulativeAmount).toBe(String(charged))
      }
      await expectCharged(market, buyer, charged)
      const payTo = service().running.devnet?.network.payTo ?? ''
      const before = await readChainBalance(service(), payTo)
      await claimAll(service())
      expect((await readChainBalance(service(), payTo)) - before).toBe(charged)
      const channel = await readOne(buyer)
      expect(channel).toMatchObject({ charged: String(charged), claimed: String(charged) })
      const accounts = await readAccounts(service())
      expect(accounts.get(`channel:${channel?.id}`)).toBe(0n)
      expect(accounts.get('escrow:eip155:84532')).toBe(0n)
      const { storage } = buyer as { storage: { get: (id: string) => Promise<object> } }
      expect(await storage.get(channel?.id ?? '')).toMatchObject({
        chargedCumulativeAmount: String(charged),
        balance: '1000000',
      })
      await expectBalanced(service())
    })

    test('exact is offered first, and a mere deposit by a channel is not offered at all', async () => {
      const market = await open()
      const required = await quote(service(), list({ root: market.root, limit: 2 }))
      expect(parseEntry(required).scheme).toBe('exact')
      const header = required.headers.get('payment-required') ?? ''
      const { accepts } = JSON.parse(Buffer.from(header, 'base64').toString())
      expect(accepts.map(({ scheme }: { scheme: string }) => scheme)).toEqual([
        'exact',
        'upto',
        'batch-settlement',
      ])
      expect(accepts[2]).toMatchObject({ amount: '200', extra: { withdrawDelay: 86_400 } })
      expect(required.body.accepts.every((one: { scheme: string }) => one.scheme === 'exact')).toBe(
        true,
      )
    })

    test('an answer that was lost is given again, for its own request alone, and charged once', async () => {
      const market = await open()
      const buyer = await makeChannelBuyer(service())
      await buyer.list({ root: market.root, limit: 1 })
      const asked = list({ root: market.root, limit: 2 })
      const header = await buyer.sign(asked)
      const replies = [await ask(service(), asked, header), await ask(service(), asked, header)]
      expect(replies.map(({ status }) => status)).toEqual([200, 200])
      expect(replies[1]?.text).toBe(replies[0]?.text)
      expect(replies[1]?.headers.get('x-receipt-id')).toBe(replies[0]?.headers.get('x-receipt-id'))
      const notices = replies.map(({ headers }) => headers.get('payment-response'))
      expect(notices[1]).toBe(notices[0])
      const other = await ask(service(), list({ root: market.root, limit: 4 }), header)
      expect(other.status).toBe(402)
      expect(other.body.error).toBe('invalid_batch_settlement_evm_cumulative_amount_mismatch')
      await expectCharged(market, buyer, 300n)
      // The client never read the second answer: it is told where it stands, and goes on.
      const next = await buyer.list({ root: market.root, limit: 5 })
      expect(next.status, next.text).toBe(200)
      await expectCharged(market, buyer, 800n)
    })

    test('an answer that was lost is given again after others of its channel were charged, to its own sender and request', async () => {
      const market = await open()
      const buyer = await makeChannelBuyer(service())
      await buyer.list({ root: market.root, limit: 1 })
      const asked = list({ root: market.root, limit: 2 })
      const header = await buyer.sign(asked)
      const lost = await ask(service(), asked, header)
      expect(lost.status, lost.text).toBe(200)
      // The client is told by a correction that something was charged, and goes on.
      for (const limit of [3, 4]) {
        const next = await buyer.list({ root: market.root, limit })
        expect(next.status, next.text).toBe(200)
      }
      await expectCharged(market, buyer, 1_000n)
      const again = await ask(service(), asked, header)
      expect([again.status, again.text]).toEqual([200, lost.text])
      expect(again.headers.get('payment-response')).toBe(lost.headers.get('payment-response'))
      expect(again.headers.get('x-receipt-id')).toBe(lost.headers.get('x-receipt-id'))
      const other = await ask(service(), list({ root: market.root, limit: 5 }), header)
      expect(other.body.error).toBe('invalid_batch_settlement_evm_cumulative_amount_mismatch')
      await expectCharged(market, buyer, 1_000n)
    })

    test('a client that has forgotten its books, and asks the same once more, gets an answer of now in place of all that it had before', async () => {
      const market = await open()
      const buyer = await makeChannelBuyer(service())
      const asked = { root: market.root, find: { id: 'c0' }, limit: 1 }
      const bought = [await buyer.list(asked), await buyer.list(asked), await buyer.list(asked)]
      expect(bought.map(({ status }) => status)).toEqual([200, 200, 200])
      await store(service(), market, [{ id: 'c0', name: 'Vindobona', population: 1 }])
      const forgetful = await makeChannelBuyer(service(), { key: buyer.key })
      const next = await forgetful.list(asked)
      expect([next.status, next.text]).toEqual([200, expect.stringContaining('Vindobona')])
      await expectCharged(market, buyer, 400n)
    })

    test('one header that is sent with eight requests at once buys one of them', async () => {
      const market = await open()
      const buyer = await makeChannelBuyer(service())
      await buyer.list({ root: market.root, limit: 1 })
      const header = await buyer.sign(list({ root: market.root, limit: 5 }))
      const five = list({ root: market.root, limit: 5 })
      const asked = Array.from({ length: 8 }, (_, at) => ({
        ...five,
        raw: `${five.raw}${' '.repeat(at)}`,
      }))
      const replies = await Promise.all(asked.map((one) => ask(service(), one, header)))
      const good = replies.filter(({ status }) => status === 200)
      expect(good).toHaveLength(1)
      const rest = replies.filter(({ status }) => status !== 200)
      expect(rest.map(({ status }) => status)).toEqual(rest.map(() => 402))
      const { charged = '0' } = (await readOne(buyer)) ?? {}
      expect(BigInt(charged)).toBeLessThanOrEqual(600n)
      await claimAll(service())
      expect(await readOne(buyer)).toMatchObject({ claimed: charged })
      await expectBalanced(service())
    })

    test('requests at once leave one charge each, and several salts run beside each other', async () => {
      const market = await open()
      const buyer = await makeChannelBuyer(service())
      await buyer.list({ root: market.root, limit: 1 })
      const two = await Promise.all([2, 3].map((limit) => buyer.list({ root: market.root, limit })))
      expect(two.map(({ status }) => status)).toEqual([200, 200])
      await expectCharged(market, buyer, 600n)
      const key = buyer.key
      const salted = await Promise.all(
        [1, 2, 3].map((salt) =>
          makeChannelBuyer(service(), { key, salt: `0x${String(salt).padStart(64, '0')}` }),
        ),
      )
      const replies = await Promise.all(
        salted.map((one) => one.list({ root: market.root, limit: 1 })),
      )
      expect(replies.map(({ status }) => status)).toEqual([200, 200, 200])
      expect(await readChannels(service(), buyer.address)).toHaveLength(4)
      await expectBalanced(service())
    })

    test('a client goes on after a restart, with a file and without one', async () => {
      const market = await open()
      const folder = mkdtempSync(join(tmpdir(), 'tollbase-channel-'))
      try {
        const storage = () => new FileClientChannelStorage({ directory: folder })
        const buyer = await makeChannelBuyer(service(), { storage: storage() })
        expect((await buyer.list({ root: market.root, limit: 2 })).status).toBe(200)
        const { key } = buyer
        const again = await makeChannelBuyer(service(), { key, storage: storage() })
        expect((await again.list({ root: market.root, limit: 3 })).status).toBe(200)
        const forgetful = await makeChannelBuyer(service(), { key })
        expect((await forgetful.list({ root: market.root, limit: 4 })).status).toBe(200)
        await expectCharged(market, buyer, 900n)
        expect(await readChannels(service(), buyer.address)).toHaveLength(1)
      } finally {
        rmSync(folder, { recursive: true, force: true })
      }
    })

    test('a channel is filled up where a request costs more than is left', async () => {
      const market = await openMarket(service(), { price: { per_row: '180000' } })
      const buyer = await makeChannelBuyer(service())
      for (let n = 1; n <= 3; n++) {
        const reply = await buyer.list({ root: market.root, limit: 3 })
        expect(reply.status, reply.text).toBe(200)
      }
      await expectCharged(market, buyer, 1_620_000n)
      expect(await readOne(buyer)).toMatchObject({ balance: '2000000' })
    })

    test('a refund claims what was charged, gives the rest back at once, and ends the channel for old vouchers', async () => {
      const market = await open()
      const buyer = await makeChannelBuyer(service())
      await buyer.list({ root: market.root, limit: 5 })
      const old = await buyer.sign(list({ root: market.root, limit: 1 }))
      const before = await readChainBalance(service(), buyer.address)
      const { root } = market
      const settled = await buyer.scheme.refund(
        `${buyer.url}/api/apps/${market.appId}/collections/${market.collection}/records/c1`,
      )
      expect(settled, root).toMatchObject({ success: true, amount: '999500' })
      expect((await readChainBalance(service(), buyer.address)) - before).toBe(999_500n)
      expect(await readOne(buyer)).toMatchObject({ balance: '500', claimed: '500' })
      const late = await ask(service(), list({ root, limit: 1 }), old)
      expect(late.body.error).toBe('invalid_batch_settlement_evm_cumulative_amount_mismatch')
      // It opens the channel again by a deposit.
      const next = await buyer.list({ root, limit: 1 })
      expect(next.status, next.text).toBe(200)
      await expectCharged(market, buyer, 600n)
    })

    test('two processes that race for one channel charge it no more than its vouchers allow', async () => {
      const market = await open()
      const buyer = await makeChannelBuyer(service())
      await buyer.list({ root: market.root, limit: 1 })
      const { payments } = service().running.service
      const both = [new Payments(payments.ports), new Payments(payments.ports)]
      let turn = 0
      const alternating: Payments = Object.assign(Object.create(payments), {
        sell: (...given: Parameters<Payments['sell']>) => {
          turn += 1
          return (both[turn % 2] ?? payments).sell(...given)
        },
        findChannelReply: async () => undefined,
      })
      replacePayments(service(), alternating)
      try {
        for (let round = 0; round < 8; round++) {
          const header = await buyer.sign(list({ root: market.root, limit: 5 }))
          const asked = [1, 2, 3, 4].map((limit) => list({ root: market.root, limit }))
          const replies = await Promise.all(
            [...asked, ...asked].map((one) => ask(service(), one, header)),
          )
          const good = replies.flatMap(({ status, text }) => (status === 200 ? [text] : []))
          expect(new Set(good).size, replies.map(({ text }) => text).join('\n')).toBe(1)
          await buyer.list({ root: market.root, limit: 1 })
        }
      } finally {
        replacePayments(service(), payments)
      }
      const { charged } = (await readOne(buyer)) ?? {}
      await claimAll(service())
      expect(await readOne(buyer)).toMatchObject({ claimed: charged })
      await expectBalanced(service())
    })

    test('a sale by voucher is not looked for on a network, where a round comes to it after its end', async () => {
      const market = await open()
      const buyer = await makeChannelBuyer(service())
      const asked = list({ root: market.root, limit: 1 })
      const reply = await ask(service(), asked, await buyer.sign(asked))
      const id = reply.headers.get('x-payment-id') ?? ''
      const { payments } = service().running.service
      await vi.waitFor(async () => {
        const claim = requirePresent(await findClaim(service().database, { id }), 'its claim')
        expect(claim.state).toBe('sold')
        await payments.reconcile(claim)
      })
      await expectBalanced(service())
    })

    test('a total that the log has lost is taken over where the deposits cover it; the unknown part is the platform’s', async () => {
      const market = await open()
      const storage = new InMemoryClientChannelStorage()
      const buyer = await makeChannelBuyer(service(), { storage })
      await buyer.list({ root: market.root, limit: 1 })
      const { id = '' } = (await readOne(buyer)) ?? {}
      const platform = (await readAccounts(service())).get('platform') ?? 0n
      // The client knows of charges that are not in this log, as after a restore of an older backup.
      await storage.set(id, { ...(await storage.get(id)), chargedCumulativeAmount: '5100' })
      const reply = await buyer.list({ root: market.root, limit: 2 })
      expect(reply.status, reply.text).toBe(200)
      expect(await readOne(buyer)).toMatchObject({ charged: '5300' })
      expect((await readAccounts(service())).get('platform')).toBe(platform + 5_000n + 40n)
      expect(await readEarnings(service(), market)).toBe(240n)
      await storage.set(id, { ...(await storage.get(id)), chargedCumulativeAmount: '999900' })
      const above = await buyer.sign(list({ root: market.root, limit: 2 }))
      const refused = await ask(service(), list({ root: market.root, limit: 2 }), above)
      expect(refused.status).toBe(402)
      expect(await readOne(buyer)).toMatchObject({ charged: '5300' })
      await claimAll(service())
      expect(await readOne(buyer)).toMatchObject({ claimed: '5300' })
      await expectBalanced(service())
    })

    test('more channels than there are connections are taken over at once, as after a restore', async () => {
      const market = await open()
      const buyers = await Promise.all(
        Array.from({ length: 14 }, async () => {
          const storage = new InMemoryClientChannelStorage()
          const buyer = await makeChannelBuyer(service(), { storage })
          await buyer.list({ root: market.root, limit: 1 })
          const { id = '' } = (await readOne(buyer)) ?? {}
          await storage.set(id, { ...(await storage.get(id)), chargedCumulativeAmount: '5100' })
          return buyer
        }),
      )
      const replies = await Promise.all(
        buyers.map((one) => one.list({ root: market.root, limit: 5 })),
      )
      expect(replies.map(({ status }) => status)).toEqual(buyers.map(() => 200))
      for (const buyer of buyers) expect(await readOne(buyer)).toMatchObject({ charged: '5600' })
      await expectBalanced(service())
    })

    test('a voucher of somebody else, for another service, or signed in another form buys nothing', async () => {
      const market = await open()
      const buyer = await makeChannelBuyer(service())
      await buyer.list({ root: market.root, limit: 1 })
      const asked = list({ root: market.root, limit: 2 })
      const header = await buyer.sign(asked)
      const sent = JSON.parse(
        Buffer.from(header['PAYMENT-SIGNATURE'] ?? '', 'base64').toString(),
      ) as Json
      const send = async (change: (one: Json) => void) => {
        const copy = structuredClone(sent)
        change(copy)
        const value = Buffer.from(JSON.stringify(copy)).toString('base64')
        return ask(service(), asked, { 'payment-signature': value })
      }
      const { signature } = sent.payload.voucher
      const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
      const high = (order - BigInt(`0x${signature.slice(66, 130)}`)).toString(16).padStart(64, '0')
      const v = signature.endsWith('1b')
      const refused: Record<string, (one: Json) => void> = {
        voucher_signature: (one) => {
          one.payload.voucher.signature = `${signature.slice(0, 66)}${high}${v ? '1c' : '1b'}`
        },
        'voucher_signature ': (one) => {
          one.payload.voucher.signature = `${signature.slice(0, -2)}${v ? '00' : '01'}`
        },
        'voucher_signature  ': (one) => {
          one.payload.voucher.maxClaimableAmount = '301'
        },
        channel_id_mismatch: (one) => {
          one.payload.channelConfig.salt = `0x${'07'.repeat(32)}`
        },
        receiver_mismatch: (one) => {
          one.payload.channelConfig.receiver = buyer.address
        },
        receiver_authorizer_mismatch: (one) => {
          one.payload.channelConfig.receiverAuthorizer = buyer.address
        },
        withdraw_delay_mismatch: (one) => {
          one.payload.channelConfig.withdrawDelay = 900
        },
        network_mismatch: (one) => {
          one.accepted.network = 'eip155:8453'
        },
      }
      for (const [name, change] of Object.entries(refused)) {
        const reply = await send(change)
        expect(reply.status, name).toBe(402)
        expect(reply.body.error).toBe(`invalid_batch_settlement_evm_${name.trim()}`)
      }
      // A smaller cap than the request can cost.
      const cheap = await send((one) => {
        one.accepted.amount = '199'
      })
      expect(cheap.status).toBe(402)
      const odd = await send((one) => {
        one.payload.voucher.extra = '1'
      })
      expect(odd.body.code).toBe('PAYMENT_MALFORMED')
      expect(await readOne(buyer)).toMatchObject({ charged: '100' })
      expect((await ask(service(), asked, header)).status).toBe(200)
      await expectCharged(market, buyer, 300n)
    })

    test('an error after a deposit costs nothing, and says that the deposit came', async () => {
      const records = [{ id: 'long', name: 'x'.repeat(5_000) }]
      const market = await openMarket(service(), { price: { per_kb: '100' }, records })
      const buyer = await makeChannelBuyer(service())
      const asked = list({ root: market.root, limit: 1, max_kb: 1 })
      const failed = await ask(service(), asked, await buyer.sign(asked))
      expect(failed.status, failed.text).toBe(413)
      const header = failed.headers.get('payment-response') ?? ''
      const notice = JSON.parse(Buffer.from(header, 'base64').toString())
      expect(notice).toMatchObject({ success: true, amount: '1000000' })
      expect(notice.extra.chargedAmount).toBe('0')
      expect(await readOne(buyer)).toMatchObject({ charged: '0', balance: '1000000' })
    })

    test('a payer takes money back by itself: what was charged is claimed in time, and it pays no more', async () => {
      const market = await open()
      const buyer = await makeChannelBuyer(service())
      await buyer.list({ root: market.root, limit: 5 })
      const config = JSON.parse((await readOne(buyer))?.config ?? '')
      expect(await buyer.call('initiateWithdraw', [config, 1_000_000n])).toBe('success')
      await claimAll(service())
      expect(await readOne(buyer)).toMatchObject({ charged: '500', claimed: '500' })
      // Nothing is free of the withdrawal.
      const refused = await buyer.list({ root: market.root, limit: 1 })
      expect(refused.status).toBe(402)
      const chain = connectDevnet(service())
      await chain.increaseTime({ seconds: 86_401 })
      await chain.mine({ blocks: 1 })
      expect(await buyer.call('finalizeWithdraw', [config])).toBe('success')
      expect(await readChainBalance(service(), buyer.address)).toBe(20_000_000n - 500n)
      await expectCharged(market, buyer, 500n)
    })

    test('audit finds everything equal, and a rebuild makes the same channels', async () => {
      const readAll = () =>
        service().database.query<{ row: string }>(sql`
          SELECT to_jsonb(channel)::text AS row FROM system.channel AS channel
          UNION ALL SELECT to_jsonb(one)::text FROM system.channel_receiver AS one ORDER BY 1`)
      const quiet = () => undefined
      // While it runs, it reads channels anew at any time.
      await service().whileStopped(async (config) => {
        expect(await audit(config, quiet)).toMatchObject({ equal: true })
        const before = await readAll()
        expect(before.length).toBeGreaterThan(1)
        await rebuild(config, quiet)
        expect(await readAll()).toEqual(before)
      })
    }, 180_000)
  },
  { devnet: true },
)

withService(
  (service) => {
    test('an operator who wants no channels offers none, and takes no voucher', async () => {
      const market = await openMarket(service(), { price: { per_row: '100' } })
      const required = await quote(service(), list({ root: market.root, limit: 2 }))
      const header = required.headers.get('payment-required') ?? ''
      const { accepts } = JSON.parse(Buffer.from(header, 'base64').toString())
      expect(accepts.map(({ scheme }: { scheme: string }) => scheme)).toEqual(['exact', 'upto'])
      const buyer = await makeChannelBuyer(service())
      await expect(buyer.list({ root: market.root, limit: 1 })).rejects.toThrow()
    })
  },
  { devnet: true, config: { channels: false } },
)
