import { limits } from '@tollbase/contract/limits'
import { expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { readSettled } from '../../packages/server/src/projections/read-channels.ts'
import {
  type ClaimerPorts,
  makeClaimerMemory,
  runClaimRound,
} from '../../packages/server/src/services/payments/channels/claimer.ts'
import { endOldHolds } from '../../packages/server/src/services/payments/channels/refund-channel.ts'
import { readChannelPayment } from '../../packages/server/src/x402/channels/read-channel-payment.ts'
import { ask, list } from '../support/buyer.ts'
import { expectBalanced, type Market, openMarket } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import type { Json } from '../support/service.ts'
import { askSigned, makeTestWallet } from '../support/wallet.ts'
import { type ChannelBuyer, claimAll, makeChannelBuyer, readChannels } from './channel-buyer.ts'

withService(
  (service) => {
    const open = () => openMarket(service(), { price: { per_row: '1' } })
    const readOne = async ({ address }: ChannelBuyer) => (await readChannels(service(), address))[0]
    const refund = ({ scheme, url }: ChannelBuyer, { appId, collection }: Market) =>
      scheme.refund(`${url}/api/apps/${appId}/collections/${collection}/records/c1`)
    const getParts = () => {
      const { payments, log } = service().running.service
      const ports: ClaimerPorts = { ...payments.ports, log }
      const [method] = ports.methods
      if (method?.escrow === undefined) throw new Error('this needs channels')
      return { ports, method: { ...method, escrow: method.escrow } }
    }

    const decode = (header: string): Json => JSON.parse(Buffer.from(header, 'base64').toString())
    const encode = (payment: Json) => ({
      'payment-signature': Buffer.from(JSON.stringify(payment)).toString('base64'),
    })

    test('a payer who deposits and takes back in turns gets one refund a day for nothing, by whichever channel', async () => {
      const market = await open()
      const buyer = await makeChannelBuyer(service())
      const { root } = market
      await buyer.list({ root, limit: 1 })
      expect((await refund(buyer, market)).success).toBe(true)
      await buyer.list({ root, limit: 4 })
      await expect(refund(buyer, market)).rejects.toThrow('refund_too_soon')
      const salt = `0x${'1'.padStart(64, '0')}` as const
      const other = await makeChannelBuyer(service(), { key: buyer.key, salt })
      await other.list({ root, limit: 1 })
      await expect(refund(other, market)).rejects.toThrow('refund_too_soon')
      // Five smallest payments were charged since the first: that is worth a refund.
      await buyer.list({ root, limit: 1 })
      expect((await refund(buyer, market)).success).toBe(true)
      const all = await readChannels(service(), buyer.address)
      const found = all.find(({ charged }) => charged === '6')
      expect(found).toMatchObject({ claimed: '6', balance: '6' })
      await expectBalanced(service())
    })

    test('of several refunds at once that earned no gas a payer gets one, and one that earned its gas stands in nobody’s way', async () => {
      const market = await open()
      const { root } = market
      const buyer = await makeChannelBuyer(service())
      await buyer.list({ root, limit: 5 })
      expect((await refund(buyer, market)).success).toBe(true)
      const others: ChannelBuyer[] = []
      for (const last of ['1', '2', '3']) {
        const salt = `0x${last.padStart(64, '0')}` as const
        const other = await makeChannelBuyer(service(), { key: buyer.key, salt })
        await other.list({ root, limit: 1 })
        others.push(other)
      }
      const refunds = await Promise.allSettled(others.map((one) => refund(one, market)))
      expect(refunds.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
      await expectBalanced(service())
    })

    test('a dollar that goes round through new wallets and buys nothing leaves half of the free refunds to those who bought', async () => {
      const market = await openMarket(service(), {
        price: { per_row: '1' },
        policy: { empty_answer: 'free' },
      })
      const { root } = market
      const nothing = { root, find: { id: 'none' }, limit: 1 }
      const [bought, ...idle] = await Promise.all([1, 2, 3].map(() => makeChannelBuyer(service())))
      if (bought === undefined) throw new Error('three buyers were made')
      await bought.list({ root, limit: 1 })
      for (const one of idle) await one.list(nothing)
      const [first, last] = idle
      if (first === undefined || last === undefined) throw new Error('three buyers were made')
      expect(await readOne(first)).toMatchObject({ charged: '0', balance: '1000000' })
      const { id = '' } = (await readOne(first)) ?? {}
      const { now } = service().world
      const { database } = service()
      await database.execute(sql`
        INSERT INTO system.channel (id, network, config, balance, claimed, withdrawing, charged, uses, refunded_at_ms, refund_charged)
        SELECT 'round' || n, network, '{"payer":"another"}', 0, 0, 0, 0, 0, ${now()}::int8, 0
        FROM system.channel, generate_series(1, ${limits.channelUnusedRefundsMax - 1}::int4) AS n WHERE id = ${id}`)
      try {
        expect((await refund(first, market)).success).toBe(true)
        await expect(refund(last, market)).rejects.toThrow('refund_too_soon')
        expect((await refund(bought, market)).success).toBe(true)
      } finally {
        await database.execute(sql`DELETE FROM system.channel WHERE id LIKE 'round%'`)
      }
    })

    test('what is deposited into a channel, claimed from it and given back is in its payer’s list with its transaction, and the sum of a claim in the operator’s', async () => {
      const market = await open()
      const { root } = market
      const buyer = await makeChannelBuyer(service())
      const other = await makeChannelBuyer(service())
      await buyer.list({ root, limit: 2 })
      await buyer.list({ root, limit: 1 })
      await other.list({ root, limit: 4 })
      await claimAll(service())
      const path = `/api/wallets/${buyer.address}/transactions`
      const wallet = makeTestWallet(buyer.account)
      const { body } = await askSigned(service(), wallet, { method: 'GET', path })
      const { id: channel } = (await readOne(buyer)) ?? {}
      const [claim, ...payments] = body.transactions
      const deposit = payments.pop()
      const isHash = expect.stringMatching(/^0x[0-9a-f]{64}$/)
      const moved = { status: 'confirmed', transaction_hash: isHash }
      expect(deposit).toMatchObject({
        ...{ ...moved, kind: 'channel_deposit', amount: '1000000' },
        ...{ from: buyer.address, to: `channel:${channel}` },
      })
      expect(claim).toMatchObject({
        ...{ ...moved, kind: 'channel_claim', amount: '3', from: `channel:${channel}` },
      })
      expect(payments.map((one: Json) => [one.kind, one.from, one.amount])).toEqual([
        ['payment', `channel:${channel}`, '1'],
        ['payment', `channel:${channel}`, '2'],
      ])
      expect((await refund(buyer, market)).success).toBe(true)
      const { body: after } = await askSigned(service(), wallet, { method: 'GET', path })
      const [refunded] = after.transactions
      expect(refunded).toMatchObject({
        ...{ ...moved, kind: 'channel_refund', amount: '999997' },
        ...{ from: `channel:${channel}`, to: buyer.address },
      })
      for (const one of [claim, deposit, refunded]) {
        const single = await service().request('GET', `/api/transactions/${one.id}`)
        expect(single.body).toEqual(one)
      }
      const of = async (kind: string): Promise<Json> => {
        const { operator: headers } = service()
        const signed = await service().request('GET', '/api/platform/transactions', { headers })
        return signed.body.transactions.find((one: Json) => one.makes[0].kind === kind)
      }
      // The journal knows a moment later than the books that its block is there.
      await expect
        .poll(() => of('channel_claim'), { timeout: 30_000 })
        .toMatchObject({ transaction_hash: claim.transaction_hash, status: 'confirmed' })
      const made = await of('channel_claim')
      const [{ amount, usd }] = made.makes
      expect(BigInt(amount)).toBeGreaterThanOrEqual(7n)
      expect(usd.amount).toMatch(/^0\.0000\d+$/)
      expect((await of('channel_settlement')).makes[0].amount).toMatch(/^[1-9]\d*$/)
    })

    test('what brings less than the smallest payment is not claimed, at any age, until it brings more', async () => {
      const { root } = await open()
      const buyer = await makeChannelBuyer(service())
      await buyer.list({ root, limit: 4 })
      const { ports, method } = getParts()
      const network = { ...method.network, minimumPayment: 5n }
      const round = () =>
        runClaimRound(ports, { ...method, network }, { memory: makeClaimerMemory(), isEnd: true })
      await round()
      expect(await readOne(buyer)).toMatchObject({ charged: '4', claimed: '0' })
      await buyer.list({ root, limit: 1 })
      await round()
      expect(await readOne(buyer)).toMatchObject({ charged: '5', claimed: '5' })
    })

    test('a channel that cannot be read, or claimed from, keeps no other one waiting, and is tried again', async () => {
      const { root } = await open()
      const [bad, good] = [await makeChannelBuyer(service()), await makeChannelBuyer(service())]
      for (const one of [bad, good]) await one.list({ root, limit: 5 })
      const { id = '' } = (await readOne(bad)) ?? {}
      const { ports, method } = getParts()
      const { escrow } = method
      const outcomes: string[] = []
      const watched = { ...ports, onClaim: (outcome: string) => void outcomes.push(outcome) }
      const memory = makeClaimerMemory()
      const broken = {
        ...method,
        network: { ...method.network, minimumPayment: 5n },
        escrow: {
          ...escrow,
          readState: async (one: string) => {
            if (one === id) throw new Error('the node is away')
            return escrow.readState(one)
          },
          chooseClaimable: async (rows: Parameters<typeof escrow.chooseClaimable>[0]) =>
            rows.filter(({ config }) => config.payer !== bad.address),
        },
      }
      await runClaimRound(watched, broken, { memory, isEnd: true })
      expect(await readOne(good)).toMatchObject({ claimed: '5' })
      expect(await readOne(bad)).toMatchObject({ claimed: '0' })
      expect(memory.seenMs.has(id)).toBe(false)
      expect(memory.refusedMs.has(id)).toBe(true)
      expect(outcomes).toEqual(['refused', 'made'])
      // The next round reads it, and leaves it alone for a while.
      await runClaimRound(watched, method, { memory, isEnd: false })
      expect(memory.seenMs.has(id)).toBe(true)
      expect(outcomes).toEqual(['refused', 'made'])
      await claimAll(service())
      expect(await readOne(bad)).toMatchObject({ claimed: '5' })
    })

    test('a deposit whose request died is found by the next voucher, though the channel was not there a moment ago', async () => {
      const { root } = await open()
      const buyer = await makeChannelBuyer(service())
      const one = list({ root, limit: 1 })
      const header = await buyer.sign(one)
      const payment = decode(Object.values(header)[0] ?? '')
      const { deposit: _, ...payload } = payment.payload
      const bare = encode({ ...payment, payload: { ...payload, type: 'voucher' } })
      const early = await ask(service(), one, bare)
      expect(early.status).toBe(402)
      expect(decode(early.headers.get('payment-required') ?? '').error).toContain('mismatch')
      const { method } = getParts()
      const sent = readChannelPayment(payment)
      if (sent.deposit === undefined) throw new Error('needs a deposit')
      await method.escrow.deposit({ id: sent.voucher.channelId, config: sent.config }, sent.deposit)
      const bought = await ask(service(), one, bare)
      expect(bought.status, bought.text).toBe(200)
      expect(await readOne(buyer)).toMatchObject({ charged: '1', balance: '1000000' })
    })

    test('what the contract has sent is booked by the next round where its transaction was late', async () => {
      const { root } = await open()
      const buyer = await makeChannelBuyer(service())
      await buyer.list({ root, limit: 5 })
      const { ports, method } = getParts()
      const { escrow, network } = method
      const before = await escrow.readReceiver()
      const names: string[] = []
      const late = {
        ...method,
        network: { ...network, minimumPayment: 1n },
        escrow: {
          ...escrow,
          settle: async (name: string) => {
            names.push(name)
            if (names.length > 1) return escrow.settle(name)
            return { state: 'pending' as const, reason: 'not_confirmed' }
          },
        },
      }
      const memory = makeClaimerMemory()
      await runClaimRound(ports, late, { memory, isEnd: true })
      const { claimed } = await escrow.readReceiver()
      expect(claimed).toBeGreaterThan(before.claimed)
      await runClaimRound(ports, late, { memory, isEnd: false })
      expect(names[1]).toBe(names[0])
      const { schema } = ports.tenants.system
      await ports.tenants.system.chain.whenApplied(ports.tenants.system.chain.head().height)
      expect(await readSettled(ports.database, schema, network.id)).toBe(claimed)
    })

    test('the claimer looks at all channels in turn, however many stand before them', async () => {
      const { root } = await open()
      const buyer = await makeChannelBuyer(service())
      await buyer.list({ root, limit: 5 })
      const { id = '' } = (await readOne(buyer)) ?? {}
      const { ports, method } = getParts()
      // A thousand that nothing can be claimed from: their payers have taken all back.
      await service().database.execute(sql`
        INSERT INTO system.channel SELECT 'dead' || n, network, config, claimed, claimed, 0, claimed + 9, uses, max_claimable,
          signature, last_base, last_charge, 1, refunded_at_ms, refund_charged
        FROM system.channel, generate_series(1, 1000) AS n WHERE id = ${id}`)
      try {
        await runClaimRound(ports, method, { memory: makeClaimerMemory(), isEnd: true })
      } finally {
        await service().database.execute(sql`DELETE FROM system.channel WHERE id LIKE 'dead%'`)
      }
      expect(await readOne(buyer)).toMatchObject({ claimed: '5' })
    })

    test('a refund whose request died is ended, though a hundred others before it cannot be', async () => {
      const { root } = await open()
      const buyer = await makeChannelBuyer(service())
      await buyer.list({ root, limit: 1 })
      const { id = '' } = (await readOne(buyer)) ?? {}
      const { ports, method } = getParts()
      const holds = sql.id('operations', 'account_hold')
      await service().database.execute(sql`
        INSERT INTO ${holds} (id, account, amount)
        SELECT 'channel_1_' || lpad(n::text, 3, '0'), CASE n WHEN 120 THEN ${`channel:${id}`} ELSE 'channel:none' END, 10
        FROM generate_series(1, 120) AS n`)
      try {
        const busy = await ask(service(), list({ root, limit: 2 }), {})
        expect(busy.status).toBe(402)
        await endOldHolds(ports, [method])
        // The hold of the sale before goes a moment after its entry is in the tables.
        const left = await service().database.query(sql`
          SELECT id FROM ${holds} WHERE account = ${`channel:${id}`} AND id LIKE 'channel\\_%'`)
        expect(left).toEqual([])
        expect((await buyer.list({ root, limit: 2 })).status).toBe(200)
      } finally {
        await service().database.execute(sql`DELETE FROM ${holds} WHERE account = 'channel:none'`)
      }
    })

    test('a total that a request died over while it took it over is let go after two minutes', async () => {
      const { root } = await open()
      const buyer = await makeChannelBuyer(service())
      await buyer.list({ root, limit: 1 })
      const { id = '' } = (await readOne(buyer)) ?? {}
      const { ports, method } = getParts()
      const { database } = service()
      const holds = sql.id('operations', 'account_hold')
      const hold = async (ageMs: number) => {
        const holdId = `takeover_${(Date.now() - ageMs).toString(36)}_00`
        await database.execute(
          sql`INSERT INTO ${holds} (id, account, amount) VALUES (${holdId}, ${`channel:${id}`}, 0)`,
        )
        await endOldHolds(ports, [method])
        const left = await database.query(sql`SELECT id FROM ${holds} WHERE id = ${holdId}`)
        await database.execute(sql`DELETE FROM ${holds} WHERE id = ${holdId}`)
        return left.length
      }
      expect(await hold(119_000)).toBe(1)
      expect(await hold(121_000)).toBe(0)
      expect((await buyer.list({ root, limit: 2 })).status).toBe(200)
    })

    test('a payer sees the channels of its wallet, and when a withdrawal ends; metrics count them', async () => {
      const { root } = await open()
      const buyer = await makeChannelBuyer(service())
      await buyer.list({ root, limit: 5 })
      const { config = '', id } = (await readOne(buyer)) ?? {}
      const path = `/api/wallets/${buyer.address}/channels`
      const read = async () => {
        const wallet = makeTestWallet(buyer.account)
        const { status, body, text } = await askSigned(service(), wallet, { method: 'GET', path })
        expect(status, text).toBe(200)
        return body.channels
      }
      expect(await read()).toEqual([
        {
          ...{ channel_id: id, network: 'eip155:84532', balance: '1000000', charged: '5' },
          ...{ claimed: '0', available: '999995', withdrawing: '0', withdrawal_ends_at: null },
        },
      ])
      const metrics = await service().request('GET', '/metrics', { headers: service().operator })
      expect(metrics.text).toMatch(/tollbase_channels_open\{network="eip155:84532"\} [1-9]/)
      expect(metrics.text).toMatch(/tollbase_channels_unclaimed_atomic\{[^}]*\} [1-9]/)
      expect(await buyer.call('initiateWithdraw', [JSON.parse(config), 400_000n])).toBe('success')
      await claimAll(service())
      const [channel] = await read()
      expect(channel).toMatchObject({ claimed: '5', available: '599995', withdrawing: '400000' })
      const leftMs = Date.parse(channel.withdrawal_ends_at) - Date.now()
      expect(leftMs).toBeGreaterThan(86_000_000)
      expect((await service().request('GET', path)).status).toBe(401)
    })

    test('a database from before refunds were counted keeps its channels, and counts them from now on', async () => {
      const market = await open()
      const buyer = await makeChannelBuyer(service())
      await buyer.list({ root: market.root, limit: 5 })
      const before = await readOne(buyer)
      await service().whileStopped(async () => {
        const { database } = service()
        await database.execute(sql`DROP INDEX system.channel_payer, system.channel_refunded`)
        await database.execute(sql`ALTER TABLE system.channel DROP COLUMN refund_charged`)
        await database.execute(sql`DELETE FROM operations.migration WHERE id = 19`)
      })
      const { key, storage } = buyer
      const again = await makeChannelBuyer(service(), { key, storage })
      expect(await readOne(again)).toMatchObject({ id: before?.id, charged: '5' })
      expect((await refund(again, market)).success).toBe(true)
      await again.list({ root: market.root, limit: 1 })
      expect((await refund(again, market)).success).toBe(true)
      await again.list({ root: market.root, limit: 1 })
      await expect(refund(again, market)).rejects.toThrow('refund_too_soon')
    })
  },
  { devnet: true },
)
