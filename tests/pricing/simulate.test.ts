import { limits } from '@tollbase/contract/limits'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { rebuild } from '../../packages/server/src/operator/rebuild.ts'
import {
  type Asked,
  ask,
  type Buyer,
  createFundedBuyer,
  depositing,
  list,
  quote,
} from '../support/buyer.ts'
import type { Data } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import { perRow } from '../support/price-rules.ts'
import type { Json } from '../support/service.ts'
import { createSeller } from './support.ts'

const target = { collection: 'sales' }
const rule = (model: string, more: object = {}) => ({ target, operation: 'read', model, ...more })
const writeRule = (model: string, more: object) => ({ ...rule(model, more), operation: 'write' })

/** Each list has a pass of an hour and a price for writes, so that everything can be bought under each. */
const ruleLists = {
  plain: [
    perRow('100'),
    rule('time_pass', { hours: 1, amount: '90' }),
    writeRule('field_value', { field: 'fee' }),
  ],
  counted: [
    { ...perRow('70'), tiers: [{ above: 4, amount: '30' }] },
    rule('per_kb', { amount: '11' }),
    rule('free_quota', { unit: 'row', quantity: 3, period: 'day' }),
    rule('time_pass', { hours: 1, amount: '400' }),
    writeRule('per_record', { amount: '40' }),
    writeRule('field_value', { field: 'fee' }),
  ],
  bounded: [
    rule('per_access', { amount: '25' }),
    perRow('90'),
    rule('minimum', { amount: '160' }),
    rule('maximum', { amount: '230' }),
    rule('free_quota', { unit: 'request', quantity: 2 }),
    rule('time_pass', { hours: 1, amount: '33' }),
    writeRule('per_kb', { amount: '900' }),
    writeRule('minimum', { amount: '35' }),
    writeRule('field_value', { field: 'fee' }),
  ],
}

type Step = { readonly buyer: number; readonly kind: string; readonly count: number }
const step: fc.Arbitrary<Step> = fc.record({
  buyer: fc.nat({ max: 2 }),
  kind: fc.constantFrom(
    'list',
    'list',
    'list',
    'record',
    'none',
    'derived',
    'store',
    'batch',
    'pass',
  ),
  count: fc.integer({ min: 1, max: 3 }),
})
const once = [
  'list',
  'record',
  'none',
  'derived',
  'store',
  'batch',
  'list',
  'pass',
  'list',
] as const
const program: readonly Step[] = [
  ...once.map((kind, at) => ({ buyer: 0, kind, count: 1 + (at % 3) })),
  ...fc.sample(step, { seed: 7, numRuns: 9 }),
]

withService(
  (service) => {
    const open = async (rules: readonly object[]) => {
      const app = await createSeller(service(), { derive: { per_access: '15' } })
      const { status, text } = await app.call('PUT', '/pricing', { rules })
      expect(status, text).toBe(200)
      return app
    }
    const createDepositor = async (): Promise<Buyer> => {
      const buyer = await createFundedBuyer(service(), 10_000_000n)
      const deposit = depositing(buyer.address, '9000000')
      expect((await buyer.buy(service(), deposit)).status).toBe(200)
      return buyer
    }
    const buy = async (buyer: Buyer, asked: Asked): Promise<void> => {
      const bought = await ask(service(), asked, await buyer.payV2(await quote(service(), asked)))
      expect(bought.status, bought.text).toBeLessThan(300)
    }
    const make = ({ appId, headers }: Data, { kind, count }: Step, at: number): Asked => {
      const root = `${appId}::sales`
      const post = (path: string, body: object) => ({
        ...{ method: 'POST', path, headers },
        raw: JSON.stringify(body),
      })
      const records = Array.from({ length: count }, (_, n) => ({ id: `w${at}.${n}`, fee: 0.0001 }))
      switch (kind) {
        case 'record':
          return { method: 'GET', path: `/api/apps/${appId}/collections/sales/records/none` }
        case 'none':
          return list({ root, find: { id: 'none' }, limit: count })
        case 'derived':
          return {
            ...post('/query/sql', { sql: `SELECT count(*) AS n FROM "${appId}"::sales` }),
            headers: {},
          }
        case 'store':
          return post('/store?wait=true', { root, data: records })
        case 'batch':
          return post(`/api/apps/${appId}/batch`, {
            operations: records.flatMap((data) => [
              { operation: 'create', collection: 'sales', data },
              { operation: 'create', collection: 'notes', data },
            ]),
          })
        case 'pass':
          return { ...post(`/api/apps/${appId}/passes`, { target, hours: 1 }), headers: {} }
        default:
          return list({ root, limit: count })
      }
    }
    const run = async (rules: readonly object[]): Promise<Data> => {
      const app = await open(rules)
      const buyers = await Promise.all([0, 1, 2].map(createDepositor))
      for (const [at, one] of program.entries()) {
        const buyer = buyers[one.buyer]
        if (buyer !== undefined) await buy(buyer, make(app, one, at))
      }
      return app
    }
    const simulate = async (app: Data, rules: readonly object[], more: object = {}) => {
      const { status, text, body } = await app.call('POST', '/pricing/simulate', { rules, ...more })
      expect(status, text).toBe(200)
      return body
    }

    test('what a simulation says is what the same purchases earn where its rules are in force, for every two lists of rules', async () => {
      const lists = Object.values(ruleLists)
      const apps = await Promise.all(lists.map(run))
      for (const [at, app] of apps.entries()) {
        const { sales } = (await app.call('GET', '/sales')).body
        const from = sales[Math.floor(sales.length / 2)].time
        // Purchases before the period count in it.
        const later = await simulate(app, lists[at] ?? [], { from })
        expect(later.difference).toBe('0')
        expect(later.sales).toBeLessThan(program.length)
        for (const [by, rules] of lists.entries()) {
          const other = apps[by]
          if (other === undefined) throw new Error('each list has an application')
          const [said, real] = [await simulate(app, rules), await simulate(other, rules)]
          expect(said.not_simulated.sales).toBe(0)
          expect(said.sales).toBe(program.length)
          const { gross } = (
            await service().request('GET', `/api/billing/${other.appId}`, {
              headers: other.headers,
            })
          ).body
          // Its own rules say what was earned, and other rules what is earned there.
          expect([real.earned, real.simulated, real.difference]).toEqual([gross, gross, '0'])
          const see = (one: Json) =>
            one.items.map(({ item, operation, sales, simulated }: Json) => [
              ...[item.kind, item.name, operation, sales, simulated],
            ])
          expect(see(said).toSorted()).toEqual(see(real).toSorted())
          expect(BigInt(said.difference)).toBe(BigInt(said.simulated) - BigInt(said.earned))
          expect(at === by || said.difference !== '0').toBe(true)
        }
      }
    }, 60_000)

    test('a sale that says nothing of its use, or names what is gone, is counted apart and never guessed', async () => {
      const app = await open([perRow('100')])
      const buyer = await createDepositor()
      const reading = list({ root: `${app.appId}::sales`, limit: 2 })
      await buy(buyer, reading)
      await buy(buyer, reading)
      const { sales } = (await app.call('GET', '/sales')).body
      const [{ payment_id: id }] = sales
      const sale = await service().database.query<{ body: string }>(
        sql`SELECT body FROM system.sale WHERE payment_id = ${id}`,
      )
      const setBody = (body: string) =>
        service().database.execute(
          sql`UPDATE system.sale SET body = ${body} WHERE payment_id = ${id}`,
        )
      const [{ body }] = sale as [{ body: string }]
      // As entries were before the use was noted.
      await setBody(body.replace('"measured"', '"other"'))
      expect(await simulate(app, [perRow('300')])).toMatchObject({
        ...{ sales: 1, earned: '200', simulated: '600', difference: '400' },
        not_simulated: { sales: 1, earned: '200', reasons: { older: 1, gone: 0 } },
      })
      await setBody(body)
    })

    test('a simulation of more sales than one may have is refused before it prices any', async () => {
      const app = await open([perRow('100')])
      const { database } = service()
      const add = (count: number) =>
        database.execute(sql`
          INSERT INTO system.sold (leaf, line, app, time_ms, operation, item_kind, item, buyer, quantity, gross, fee, payment_id)
          SELECT 1000000 + n, 0, ${app.appId}, ${Date.now() - 1000}::int8, 'list', 'collection', 'sales', 'somebody', 1, 1, 0, 'pay_none'
          FROM generate_series(1, ${count}::int8) AS n ON CONFLICT DO NOTHING`)
      await add(limits.simulatedSalesMax)
      expect((await simulate(app, [perRow('1')])).not_simulated.sales).toBe(
        limits.simulatedSalesMax,
      )
      await add(limits.simulatedSalesMax + 1)
      const late = await app.call('POST', '/pricing/simulate', { rules: [perRow('1')] })
      expect([late.status, late.body.details.sales_max]).toEqual([413, limits.simulatedSalesMax])
      await database.execute(sql`DELETE FROM system.sold WHERE app = ${app.appId}`)
    })

    test('the use is in the log: tables made anew say the same', async () => {
      await service().whileStopped(async (config) => {
        expect((await audit(config, () => undefined)).difference).toBeUndefined()
        expect(await rebuild(config, () => undefined)).toMatchObject({ equal: true })
      })
    })
  },
  { devnet: true },
)
