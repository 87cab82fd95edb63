import { expect, test } from 'vitest'
import { requirePresent } from '../../packages/server/src/base/assert.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { rebuild } from '../../packages/server/src/operator/rebuild.ts'
import { buildBoughtTotals } from '../../packages/server/src/projections/sales.ts'
import { findClaim } from '../../packages/server/src/services/payments/claims/claim-store.ts'
import { writeReversal } from '../../packages/server/src/services/payments/reversals/write-reversal.ts'
import {
  ask,
  type Buyer,
  createFundedBuyer,
  depositing,
  list,
  quote,
  readBalance,
} from '../support/buyer.ts'
import {
  expectBalanced,
  type Market,
  openMarket,
  readChainBalance,
  readEarnings,
  readReceipt,
} from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import type { Json, TestApp, TestReply } from '../support/service.ts'
import { askSigned, makeTestWallet } from '../support/wallet.ts'
import { makeDyingPayments, replacePayments } from './dying-payments.ts'

withService(
  (service) => {
    /** A wallet with a balance, and nothing on the chain. */
    async function createDepositor(amount: string): Promise<Buyer> {
      const buyer = await createFundedBuyer(service(), BigInt(amount))
      const reply = await buyer.buy(service(), depositing(buyer.address, amount))
      expect(reply.status, reply.text).toBe(200)
      return buyer
    }

    async function grant(by: Buyer, app: TestApp, limits: object): Promise<Json> {
      const body = { grantee: 'an agent', ...limits }
      const reply = await askSigned(service(), makeTestWallet(by.account), {
        ...{ method: 'POST', path: `/api/apps/${app.appId}/authorizations`, body },
      })
      expect(reply.status, reply.text).toBe(201)
      return reply.body
    }

    async function prepay(app: TestApp, amount: string): Promise<string> {
      const payer = await createFundedBuyer(service())
      const reply = await payer.buy(service(), {
        ...{ method: 'POST', path: `/api/apps/${app.appId}/wallet/deposit` },
        ...{ raw: JSON.stringify({ amount }), headers: app.headers },
      })
      expect(reply.status, reply.text).toBe(200)
      return reply.body.payment_id
    }

    async function createAgentKey(app: TestApp, limits: object): Promise<Json> {
      const body = { permissions: ['Pay'], pay_limits: limits, name: 'agent' }
      const path = `/api/apps/${app.appId}/keys`
      return (await service().request('POST', path, { body, headers: app.headers })).body
    }

    /** Reads rows at 1,000 each, so a limit of 2 has a cap of 2,000. */
    const read = (market: Market, limit: number, headers: Record<string, string>) =>
      ask(service(), list({ root: market.root, limit }), headers)
    const user = (key: string, name?: string) => ({
      'x-user-key': key,
      ...(name !== undefined && { 'idempotency-key': name }),
    })
    const statuses = (replies: readonly TestReply[], status: number) =>
      replies.filter((one) => one.status === status).length

    test('the key of an authorization pays from the balance of the wallet that granted it, the true charge and no transfer', async () => {
      const market = await openMarket(service(), { price: { per_row: '1000' } })
      const wallet = await createDepositor('50000')
      const granted = await grant(wallet, market, { spend_limit: '20000' })
      const reply = await read(market, 10, user(granted.user_key))
      expect(reply.status, reply.text).toBe(200)
      expect(reply.body.records).toHaveLength(5)
      const receipt = await readReceipt(service(), reply)
      expect(receipt).toMatchObject({
        ...{ payer: wallet.address, amount: '5000', paid_from: 'balance', transaction: null },
      })
      expect(await readBalance(service(), wallet.address)).toBe(45_000n)
      expect(await readChainBalance(service(), wallet.address)).toBe(0n)
      expect(await readEarnings(service(), market)).toBe(4_000n)
      const path = `/api/apps/${market.appId}/authorizations`
      const { authorizations } = (await service().request('GET', path, { headers: market.headers }))
        .body
      expect(authorizations[0]).toMatchObject({ id: granted.id, spent: '5000', status: 'active' })
    })

    test('where a purchase by key was stored and its outcome was lost, the error names the payment, and the same request gets its answer', async () => {
      const market = await openMarket(service(), { price: { per_row: '1000' } })
      const wallet = await createDepositor('50000')
      const { user_key: key } = await grant(wallet, market, { spend_limit: '20000' })
      const { payments } = service().running.service
      // The first purchase of an account is held first; the others are one commit.
      expect((await read(market, 1, user(key))).status).toBe(200)
      const watched = makeDyingPayments(payments.ports, undefined)
      replacePayments(service(), watched.payments)
      expect((await read(market, 1, user(key))).status).toBe(200)
      const step = watched.steps().indexOf('append')
      const dying = makeDyingPayments(payments.ports, { step, when: 'after' })
      replacePayments(service(), dying.payments)
      const lost = await read(market, 2, user(key, 'lost'))
      replacePayments(service(), payments)
      expect(dying.steps().at(-1)).toBe('append')
      expect(lost.status, lost.text).toBe(500)
      const id: string = lost.body.details.payment_id
      expect(id, lost.text).toMatch(/^pay_/)
      const reply = await read(market, 2, user(key, 'lost'))
      expect(reply.status, reply.text).toBe(200)
      expect(reply.headers.get('x-payment-id')).toBe(id)
      await expectBalanced(service())
    })

    test('with an Idempotency-Key it is one payment, for one request; without it each request is one', async () => {
      const market = await openMarket(service(), { price: { per_row: '1000' } })
      const wallet = await createDepositor('50000')
      const { user_key: key } = await grant(wallet, market, { spend_limit: '40000' })
      const named = await Promise.all([1, 2, 3].map(() => read(market, 2, user(key, 'one'))))
      for (const reply of named) expect(reply.status, reply.text).toBe(200)
      expect(new Set(named.map(({ text }) => text)).size).toBe(1)
      const again = await read(market, 2, user(key, 'one'))
      expect(again.headers.get('idempotent-replayed')).toBe('true')
      expect(await readBalance(service(), wallet.address)).toBe(48_000n)
      const other = await read(market, 3, user(key, 'one'))
      expect([other.status, other.body.code]).toEqual([409, 'PAYMENT_ALREADY_USED'])
      await read(market, 2, user(key))
      await read(market, 2, user(key))
      expect(await readBalance(service(), wallet.address)).toBe(44_000n)
    })

    test('P20: of thirty requests at once at a limit for four, four are paid, and the others name the limit', async () => {
      const market = await openMarket(service(), { price: { per_row: '1000' } })
      const wallet = await createDepositor('90000')
      const { user_key: key } = await grant(wallet, market, { spend_limit: '9999' })
      const replies = await Promise.all(
        Array.from({ length: 30 }, () => read(market, 2, user(key))),
      )
      expect(statuses(replies, 200)).toBe(4)
      const refused = replies.find(({ status }) => status === 403)
      expect(refused?.body).toMatchObject({
        code: 'SPENDING_LIMIT',
        error:
          "The key's limit spend_limit does not allow this payment; 1999 atomic units ($0.001999) is left, and this may cost 2000 atomic units ($0.002)",
        details: { limit: 'spend_limit', allowed: '9999', asked: '2000', resets_at: null },
      })
      expect(statuses(replies, 403)).toBe(26)
      expect(await readBalance(service(), wallet.address)).toBe(82_000n)
      await expectBalanced(service())
    })

    test('of requests at once by two keys on one balance for three, three are paid, none makes it negative, and answers for the others are not made', async () => {
      const market = await openMarket(service(), { price: { per_row: '1000' } })
      const wallet = await createDepositor('7000')
      const keys = [
        (await grant(wallet, market, { spend_limit: '90000' })).user_key,
        (await grant(wallet, market, { spend_limit: '90000' })).user_key,
      ]
      let answers = 0
      service().world.atFailpoints((point) => {
        if (point === 'payment.delivered') answers += 1
      })
      const replies = await Promise.all(
        Array.from({ length: 20 }, (_, at) => read(market, 2, user(keys[at % 2] ?? ''))),
      )
      service().world.atFailpoints(undefined)
      // Three may be made before they are held, which others may be meanwhile.
      expect(answers).toBeLessThanOrEqual(6)
      expect(statuses(replies, 200)).toBe(3)
      expect(statuses(replies, 402)).toBe(17)
      expect(await readBalance(service(), wallet.address)).toBe(1_000n)
      await expectBalanced(service())
    })

    test('each limit is named where it refuses: of one payment, of targets; and what is refused is not charged', async () => {
      const [market, other] = [
        await openMarket(service(), { price: { per_row: '1000' } }),
        await openMarket(service(), { price: { per_row: '1000' } }),
      ]
      const wallet = await createDepositor('50000')
      const { user_key: key } = await grant(wallet, market, {
        ...{ spend_limit: '40000', max_per_tx: '2000', allowed_targets: [market.appId] },
      })
      const dear = await read(market, 3, user(key))
      expect([dear.status, dear.body.details?.limit]).toEqual([403, 'max_per_tx'])
      const elsewhere = await read(other, 1, user(key))
      expect([elsewhere.status, elsewhere.body.details?.limit]).toEqual([403, 'allowed_targets'])
      expect((await read(market, 2, user(key))).status).toBe(200)
      expect(await readBalance(service(), wallet.address)).toBe(48_000n)
    })

    test('a revoked authorization pays nothing, and an empty balance asks for a payment', async () => {
      const market = await openMarket(service(), { price: { per_row: '1000' } })
      const wallet = await createDepositor('3000')
      const granted = await grant(wallet, market, { spend_limit: '40000' })
      const short = await read(market, 4, user(granted.user_key))
      expect(short.status).toBe(402)
      expect(short.body.error).toContain(wallet.address)
      const path = `/api/apps/${market.appId}/authorizations/${granted.id}/revoke`
      await askSigned(service(), makeTestWallet(wallet.account), { method: 'POST', path })
      expect((await read(market, 2, user(granted.user_key))).status).toBe(401)
      expect(await readBalance(service(), wallet.address)).toBe(3_000n)
    })

    test("an agent's key pays from what was paid in for its application, never from what that earned, and its limits outlive it", async () => {
      const seller = await openMarket(service(), { price: { per_row: '1000' } })
      const earner = await openMarket(service(), { price: { per_row: '2000' } })
      const buyer = await createFundedBuyer(service())
      await buyer.buy(service(), list({ root: earner.root, limit: 5 }))
      expect(await readEarnings(service(), earner)).toBe(8_000n)
      const created = await createAgentKey(earner, { spend_allowance: '5000' })
      const agent = (key: string) => ({ 'x-agent-key': key })
      const early = await read(seller, 2, agent(created.key))
      expect([early.status, early.body.details?.limit]).toEqual([403, 'prepaid'])
      await prepay(earner, '4000')
      const paid = await read(seller, 2, agent(created.key))
      expect(paid.status, paid.text).toBe(200)
      expect(await readReceipt(service(), paid)).toMatchObject({ payer: `app:${earner.appId}` })
      expect(await readEarnings(service(), earner)).toBe(10_000n)
      const at = `/api/apps/${earner.appId}/keys/${created.key_hash}/rotate`
      const rotated = await service().request('POST', at, { body: {}, headers: earner.headers })
      expect((await read(seller, 2, agent(created.key))).status).toBe(401)
      expect((await read(seller, 2, agent(rotated.body.key))).status).toBe(200)
      await prepay(earner, '9000')
      const over = await read(seller, 2, agent(rotated.body.key))
      expect([over.status, over.body.details?.limit]).toEqual([403, 'spend_allowance'])
      expect(over.body.details.left).toBe('1000')
    })

    test('what its chain took back of deposits is not there for keys, whatever is earned', async () => {
      const seller = await openMarket(service(), { price: { per_row: '1000' } })
      const earner = await openMarket(service(), { price: { per_row: '2000' } })
      const buyer = await createFundedBuyer(service())
      await buyer.buy(service(), list({ root: earner.root, limit: 5 }))
      const { key } = await createAgentKey(earner, {})
      await prepay(earner, '3000')
      const gone = await prepay(earner, '4000')
      const agent = { 'x-agent-key': key }
      expect((await read(seller, 1, agent)).status).toBe(200)
      const { ports } = service().running.service.payments
      const claim = await findClaim(service().database, { id: gone })
      expect(await writeReversal(ports, requirePresent(claim, 'the claim'), 'a test')).toBe(0n)
      // 8,000 were earned, and 2,000 are left of what was paid in.
      expect(await readEarnings(service(), earner)).toBe(10_000n)
      expect((await read(seller, 3, agent)).body.details).toMatchObject({
        ...{ limit: 'prepaid', asked: '3000', left: '2000' },
      })
      await prepay(earner, '1000')
      expect((await read(seller, 4, agent)).status).toBe(403)
      expect((await read(seller, 3, agent)).status).toBe(200)
      await expectBalanced(service())
    })

    test('the statement of an application has what its keys bought, and closes with its balance; older books are summed likewise', async () => {
      const seller = await openMarket(service(), { price: { per_row: '1000' } })
      const app = await openMarket(service(), { price: { per_row: '2000' } })
      const { key } = await createAgentKey(app, {})
      await prepay(app, '9000')
      for (const limit of [2, 1])
        expect((await read(seller, limit, { 'x-agent-key': key })).status).toBe(200)
      // It buys of itself, too: 2,000 less the platform's 400.
      expect((await read(app, 1, { 'x-agent-key': key })).status).toBe(200)
      expect(await readEarnings(service(), app)).toBe(5_600n)
      const path = `/api/apps/${app.appId}/billing/statement`
      const { body } = await service().request('GET', path, { headers: app.headers })
      expect(body).toMatchObject({ gross: '2000', fees: '400', closing_balance: '5600' })
      const lines = body.lines.map(({ kind, count, net }: Json) => [kind, count, net])
      expect(lines).toEqual([
        ['deposit', 1, '9000'],
        ['purchase', 3, '-5000'],
        ['sale', 1, '1600'],
      ])
      const csv = await service().request('GET', `${path}?format=csv`, { headers: app.headers })
      expect(csv.text).toContain(',purchase,,,,3,4,-5000,0,-5000')

      const readBought = () =>
        service().database.query(
          sql`SELECT * FROM system.sold_total WHERE total_by = 'bought' ORDER BY app, start_ms, operation`,
        )
      const bought = await readBought()
      await service().database.execute(sql`DELETE FROM system.sold_total WHERE total_by = 'bought'`)
      for (const statement of buildBoughtTotals()) await service().database.execute(statement)
      expect(await readBought()).toEqual(bought)
    })

    test('a key without Pay pays nothing, X-Balance: off neither, and a deposit and a change of encryption are never paid by a key', async () => {
      const market = await openMarket(service(), { price: { per_row: '1000' } })
      const wallet = await createDepositor('50000')
      const { user_key: key } = await grant(wallet, market, { spend_limit: '40000' })
      expect((await read(market, 2, { 'x-agent-key': market.key })).status).toBe(200)
      const stranger = await service().createApp()
      expect((await read(market, 2, { 'x-agent-key': stranger.key })).status).toBe(402)
      expect((await read(market, 2, { ...user(key), 'x-balance': 'off' })).status).toBe(402)
      await quote(service(), { ...depositing(wallet.address, '1000'), headers: user(key) })
      const encryption = await service().request('POST', `/api/apps/${stranger.appId}/encryption`, {
        ...{ body: { private_app: true }, headers: { ...stranger.headers, ...user(key) } },
      })
      expect(encryption.status).toBe(402)
      expect(await readBalance(service(), wallet.address)).toBe(50_000n)
    })

    test('a paid write beside a key of the application is paid by the user key, once', async () => {
      const market = await openMarket(service(), {})
      const rules = [
        {
          target: { collection: 'cities' },
          operation: 'write',
          model: 'per_record',
          amount: '1000',
        },
      ]
      await service().request('PUT', `/api/apps/${market.appId}/pricing`, {
        ...{ body: { rules }, headers: market.headers },
      })
      const wallet = await createDepositor('50000')
      const { user_key: key } = await grant(wallet, market, { spend_limit: '40000' })
      const store = (name: string) =>
        service().request('POST', '/store?wait=true', {
          ...{ body: { root: market.root, data: [{ n: 1 }, { n: 2 }] } },
          headers: { ...market.headers, ...user(key, name) },
        })
      const [first, second] = [await store('w'), await store('w')]
      expect(first.status, first.text).toBe(200)
      expect(second.text).toBe(first.text)
      expect(await readBalance(service(), wallet.address)).toBe(48_000n)
    })

    // The clock of the service is moved: nothing that needs the chain's time may come after this.
    test('a daily limit begins anew at midnight in UTC, and says when', async () => {
      const market = await openMarket(service(), { price: { per_row: '1000' } })
      const wallet = await createDepositor('50000')
      const limits = { spend_limit: '40000', daily_limit: '3000' }
      const { user_key: key } = await grant(wallet, market, limits)
      const midnight = (Math.floor(service().world.now() / 86_400_000) + 1) * 86_400_000
      service().world.advance(midnight - service().world.now() - 5_000)
      expect((await read(market, 2, user(key))).status).toBe(200)
      const over = await read(market, 2, user(key))
      expect(over.body).toMatchObject({
        code: 'SPENDING_LIMIT',
        details: {
          limit: 'daily_limit',
          left: '1000',
          resets_at: new Date(midnight).toISOString(),
        },
      })
      service().world.advance(6_000)
      expect((await read(market, 2, user(key))).status).toBe(200)
      expect((await read(market, 2, user(key))).status).toBe(403)
    })

    test('audit finds all of it equal, and a rebuild makes the same', async () => {
      await service().whileStopped(async (config) => {
        const report = await audit(config, () => undefined)
        expect(report.difference).toBeUndefined()
        expect(report.equal).toBe(true)
        expect(await rebuild(config, () => undefined)).toMatchObject({ equal: true })
      })
      await expectBalanced(service())
    })
  },
  { devnet: true },
)
