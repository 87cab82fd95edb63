import { expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { rebuild } from '../../packages/server/src/operator/rebuild.ts'
import {
  ask,
  type Buyer,
  createFundedBuyer,
  depositing,
  list,
  makeBuyer,
  quote,
  readBalance,
} from '../support/buyer.ts'
import type { Data } from '../support/data.ts'
import { expectBalanced, readChainBalance, readReceipt } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import { perRow } from '../support/price-rules.ts'
import type { TestReply } from '../support/service.ts'
import { createSeller, readAmount } from './support.ts'

withService(
  (service) => {
    const target = { collection: 'sales' }
    const reading = ({ appId }: Data, limit: number) => list({ root: `${appId}::sales`, limit })
    const quota = (unit: string, quantity: number) => ({
      ...{ target, operation: 'read', model: 'free_quota', unit, quantity },
    })
    const pass = (hours: number, amount: string) => ({
      ...{ target, operation: 'read', model: 'time_pass', hours, amount },
    })
    const seller = async (...rules: object[]) => {
      const app = await createSeller(service(), {})
      const { status, text } = await app.call('PUT', '/pricing', { rules })
      expect(status, text).toBe(200)
      return app
    }
    /** A wallet with a balance, and nothing on the chain. */
    const createDepositor = async (amount: string): Promise<Buyer> => {
      const buyer = await createFundedBuyer(service(), BigInt(amount))
      expect((await buyer.buy(service(), depositing(buyer.address, amount))).status).toBe(200)
      return buyer
    }
    /** Pays from the balance. */
    const buy = async (buyer: Buyer, asked: Parameters<typeof quote>[1]) =>
      ask(service(), asked, await buyer.payV2(await quote(service(), asked)))
    const readCharge = async (reply: TestReply) => {
      expect(reply.status, reply.text).toBe(200)
      return Number((await readReceipt(service(), reply)).amount)
    }
    const buyPass = (app: Data, hours: number) => ({
      method: 'POST',
      path: `/api/apps/${app.appId}/passes`,
      raw: JSON.stringify({ target, hours }),
    })

    test('rows above a bound cost less, for the buyer who had those below it, and the quote stays that of a stranger', async () => {
      const tiers = [
        { above: 4, amount: '60' },
        { above: 7, amount: '10' },
      ]
      const app = await seller({ ...perRow('100'), tiers })
      const [one, two] = [await createDepositor('9000'), await createDepositor('9000')]
      const charges: number[] = []
      for (let n = 0; n < 4; n++) charges.push(await readCharge(await buy(one, reading(app, 3))))
      // 3 at 100; 1 at 100 and 2 at 60; 1 at 60 and 2 at 10; 3 at 10.
      expect(charges).toEqual([300, 220, 80, 30])
      expect(readAmount(await quote(service(), reading(app, 3)))).toBe(300n)
      expect(await readCharge(await buy(two, reading(app, 3)))).toBe(300)
      expect(await readBalance(service(), one.address)).toBe(9_000n - 630n)
    })

    test('a quota is free once a buyer has paid, also without a balance, and is over when it is over', async () => {
      const app = await seller(perRow('1000'), quota('row', 4))
      const buyer = await createDepositor('3000')
      const charges: number[] = []
      charges.push(await readCharge(await buy(buyer, reading(app, 3))))
      expect(await readBalance(service(), buyer.address)).toBe(0n)
      charges.push(await readCharge(await buy(buyer, reading(app, 3))))
      expect(await readChainBalance(service(), buyer.address)).toBe(0n)
      // One row is left of the quota, and there is nothing to pay the others with.
      expect((await buy(buyer, reading(app, 3))).status).toBe(402)
      charges.push(await readCharge(await buy(buyer, reading(app, 1))))
      expect((await buy(buyer, reading(app, 1))).status).toBe(402)
      expect(charges).toEqual([3000, 0, 0])
      await expectBalanced(service())
    })

    test('of many requests at once, no more are free than the quota has, by transfers and by balance alike', async () => {
      const app = await seller(perRow('100'), quota('row', 10), { ...quota('request', 2) })
      const buyer = await createDepositor('100000')
      const chain = await createFundedBuyer(service(), 100_000n)
      for (const [payer, headers] of [
        [buyer, {}],
        [chain, { 'x-balance': 'off' }],
      ] as const) {
        const first = await payer.payV2(await quote(service(), reading(app, 3)))
        expect(
          await readCharge(await ask(service(), reading(app, 3), { ...first, ...headers })),
        ).toBe(300)
        const payments = await Promise.all(
          Array.from({ length: 9 }, async () =>
            payer.payV2(await quote(service(), reading(app, 3))),
          ),
        )
        const replies = await Promise.all(
          payments.map((payment) => ask(service(), reading(app, 3), { ...payment, ...headers })),
        )
        const charges = await Promise.all(replies.map(readCharge))
        // Two requests are wholly free, and ten rows of the others: 9 x 3 - 2 x 3 - 10 = 11 rows are paid.
        expect(charges.reduce((sum, one) => sum + one, 0)).toBe(1_100)
      }
      await expectBalanced(service())
    })

    test('a price for written records that comes with an index takes no pass from who has bought one', async () => {
      const app = await seller(perRow('100'), pass(24, '500'))
      const holder = await createDepositor('2000')
      expect(await readCharge(await buy(holder, buyPass(app, 24)))).toBe(500)
      expect(await readCharge(await buy(holder, reading(app, 3)))).toBe(0)
      const price_config = { pricing_model: 'per_record', price_per_record: '7' }
      const body = { collection: 'others', field_name: 'f', price_config }
      const made = await app.call('POST', '/indexes', body)
      expect(made.status, made.text).toBe(200)
      expect(await readCharge(await buy(holder, reading(app, 3)))).toBe(0)
    })

    test('a pass makes requests free while it is valid, for the account that paid, and the next one goes on after it', async () => {
      const app = await seller(perRow('100'), pass(24, '500'), pass(1, '50'))
      const holder = await createDepositor('1000')
      const other = await createDepositor('3000')
      const required = await quote(service(), buyPass(app, 24))
      expect(readAmount(required)).toBe(500n)
      const bought = await buy(holder, buyPass(app, 24))
      expect(await readCharge(bought)).toBe(500)
      const second = await buy(holder, buyPass(app, 1))
      const passes = await Promise.all(
        [bought, second].map(({ body }) =>
          service().request('GET', `/api/apps/${app.appId}/passes/${body.pass_id}`),
        ),
      )
      const [first, next] = passes.map(({ body }) => body)
      expect(first).toMatchObject({
        buyer: holder.address,
        item: { kind: 'collection', name: 'sales' },
      })
      expect(Date.parse(first.valid_until) - Date.parse(first.valid_from)).toBe(24 * 3_600_000)
      expect(next.valid_from).toBe(first.valid_until)
      // Nothing is taken, whatever is asked for.
      expect(await readCharge(await buy(holder, reading(app, 3)))).toBe(0)
      expect(await readBalance(service(), holder.address)).toBe(450n)
      expect(await readCharge(await buy(other, reading(app, 3)))).toBe(300)
      // The seller stops selling passes: those that are sold are honoured.
      await app.call('PUT', '/pricing', { rules: [perRow('100')] })
      expect(await readCharge(await buy(holder, reading(app, 3)))).toBe(0)
      expect((await ask(service(), buyPass(app, 24))).body.code).toBe('PASS_NOT_FOUND')
      await expectBalanced(service())
    })

    test('a pass is valid from the moment it is bought, also where the clock of its sale was ahead of the next one', async () => {
      const app = await seller(perRow('100'), pass(1, '500'))
      const holder = await createDepositor('1000')
      service().world.advance(60_000)
      const bought = await buy(holder, buyPass(app, 1))
      service().world.advance(-60_000)
      expect(await readCharge(bought)).toBe(500)
      expect(await readCharge(await buy(holder, reading(app, 3)))).toBe(0)
    })

    test('who has neither money nor a discount leaves nothing behind, whatever it signs', async () => {
      const app = await seller(perRow('100'), quota('row', 5), pass(1, '500'))
      const countLocks = async (): Promise<number> =>
        (await service().database.query(sql`SELECT account FROM operations.account_lock`)).length
      const before = await countLocks()
      for (let n = 0; n < 3; n++) expect((await buy(makeBuyer(), reading(app, 3))).status).toBe(402)
      expect(await countLocks()).toBe(before)
    })

    test('an answer names what changed of a rule, whatever it is, and discounts that say nothing are refused', async () => {
      const app = await seller(perRow('100'), quota('row', 5))
      const { body } = await app.call('PATCH', '/pricing', { set: [quota('row', 9)] })
      expect(body.changed).toEqual([{ ...quota('row', 9), previous: quota('row', 5) }])
      const put = async (...rules: object[]) => {
        const { status, body: said } = await app.call('PUT', '/pricing', { rules })
        return [status, said.details?.field]
      }
      const tiers = (...list: [number, string][]) => ({
        ...perRow('100'),
        tiers: list.map(([above, amount]) => ({ above, amount })),
      })
      expect(await put(tiers([5, '101']))).toEqual([400, '/rules/0/tiers/0/amount'])
      expect(await put(tiers([5, '90'], [5, '80']))).toEqual([400, '/rules/0/tiers/1/above'])
      expect(await put({ ...tiers([5, '90']), operation: 'write' })).toEqual([
        400,
        '/rules/0/tiers',
      ])
      expect(await put({ ...perRow('100'), period: 'day' })).toEqual([400, '/rules/0/period'])
      expect(await put(perRow('1'), pass(1, '0'))).toEqual([400, '/rules/1/amount'])
      expect(await put(quota('row', 5))).toEqual([400, ''])
      expect((await put(perRow('1'), pass(1, '9'), pass(2, '9'), quota('kb', 1)))[0]).toBe(200)
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
