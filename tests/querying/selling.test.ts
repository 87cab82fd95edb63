import { verifyDocument } from '@tollbase/verify/verify'
import { describe, expect, test } from 'vitest'
import { type Asked, ask, createFundedBuyer, list, quote, readBalance } from '../support/buyer.ts'
import {
  cities,
  expectBalanced,
  type Market,
  openMarket,
  readAccounts,
  readEarnings,
  readReceipt,
} from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import type { Json, TestReply, TestService } from '../support/service.ts'

const inSql = (sql: string, more: object = {}): Asked => ({
  method: 'POST',
  path: '/query/sql',
  raw: JSON.stringify({ sql, ...more }),
})

const nameIn = ({ appId, collection }: Market) => `"${appId}"::${collection}`
const computePlatformShare = (amount: bigint) => (amount * 2000n) / 10_000n

describe('sales of queries', () =>
  withService(
    (service) => {
      const readAmount = (required: TestReply) => BigInt(required.body.accepts[0].maxAmountRequired)

      test('rows of SQL are quoted for the LIMIT and charged for what was delivered, once, with a receipt that verifies', async () => {
        const market = await openMarket(service(), { price: { per_row: '100' } })
        const buyer = await createFundedBuyer(service())
        const asked = inSql(`SELECT name FROM ${nameIn(market)} ORDER BY population LIMIT 8`)
        const required = await quote(service(), asked)
        expect(readAmount(required)).toBe(800n)
        const payment = await buyer.payV2(required)
        const reply = await ask(service(), asked, payment)
        expect(reply.status, reply.text).toBe(200)
        expect(reply.body).toMatchObject({
          data: cities.map(({ name }) => ({ name })),
          count: 5,
          app_id: market.appId,
          collection: market.collection,
        })
        expect(await readBalance(service(), buyer.address)).toBe(300n)
        expect(await readEarnings(service(), market)).toBe(400n)
        await expectReceipt(service(), { asked, reply })
        const again = await ask(service(), asked, payment)
        expect(again.text).toBe(reply.text)
        expect(again.headers.get('idempotent-replayed')).toBe('true')
        expect(await readEarnings(service(), market)).toBe(400n)
        await expectBalanced(service())
      })

      test('rows of SQL without a LIMIT are refused before anyone pays, and rows by the KB end where they were bought', async () => {
        const byRow = await openMarket(service(), { price: { per_row: '1' } })
        expect(await ask(service(), inSql(`SELECT name FROM ${nameIn(byRow)}`))).toMatchObject({
          status: 400,
          body: { details: { field: '/sql' } },
        })
        const records = Array.from({ length: 40 }, (_, at) => ({
          id: `r${at}`,
          pad: 'x'.repeat(99),
        }))
        const byKb = await openMarket(service(), { price: { per_kb: '10' }, records })
        const buyer = await createFundedBuyer(service())
        const asked = inSql(`SELECT * FROM ${nameIn(byKb)}`, { max_kb: 2 })
        expect(readAmount(await quote(service(), asked))).toBe(20n)
        const refused = await buyer.buy(service(), asked)
        expect([refused.status, refused.body.code]).toEqual([413, 'RESULT_TOO_LARGE'])
        expect(refused.body.details).toMatchObject({ max_kb: 8, limit: 16, charged: '0' })
        expect(await readBalance(service(), buyer.address)).toBe(20n)
        for (const [sql, size] of [
          [`SELECT * FROM ${nameIn(byKb)}`, { max_kb: 8 }],
          [`SELECT * FROM ${nameIn(byKb)} LIMIT 16`, { max_kb: 2 }],
        ] as const) {
          const { status, body } = await buyer.buy(service(), inSql(sql, size))
          expect(status).toBe(200)
          expect(body.data).toEqual(records.slice(0, size.max_kb === 8 ? 40 : 16))
        }
      })

      test('a join over two sellers pays each seller its rows and derivation, to the atomic unit', async () => {
        const rows = await openMarket(service(), { price: { per_row: '333' } })
        const other = await openMarket(service(), {
          price: { per_row: '9' },
          policy: { derive: { per_access: '77' } },
        })
        const buyer = await createFundedBuyer(service())
        const before = await readAccounts(service())
        const asked = list({
          root: rows.root,
          limit: 6,
          find: {
            same: { model: other.root, many: false, resolve: { find: { id: '$data.id' } } },
          },
        })
        const required = await quote(service(), asked)
        expect(readAmount(required)).toBe(6n * 333n + 77n)
        expect(required.body.accepts[0].extra.costBreakdown).toMatchObject({
          per_row: 1998,
          derive: 77,
        })
        const payment = await buyer.payV2(required)
        const reply = await ask(service(), asked, payment)
        expect(reply.status, reply.text).toBe(200)
        expect(reply.body.records).toEqual(cities.map((city) => ({ ...city, same: city })))
        const due = 5n * 333n
        expect(await readEarnings(service(), rows)).toBe(due - computePlatformShare(due))
        expect(await readEarnings(service(), other)).toBe(77n - computePlatformShare(77n))
        const after = await readAccounts(service())
        expect((after.get('platform') ?? 0n) - (before.get('platform') ?? 0n)).toBe(
          computePlatformShare(due) + computePlatformShare(77n),
        )
        expect(await readBalance(service(), buyer.address)).toBe(333n)
        const receipt = await expectReceipt(service(), { asked, reply })
        expect(receipt).toMatchObject({ amount: String(due + 77n), payee: `app:${rows.appId}` })
        const shares = Object.fromEntries(
          listPostings(receipt).map(({ account, amount }) => [account, BigInt(amount)]),
        )
        expect(shares).toEqual({
          [`wallet:${buyer.address}`]: -(due + 77n),
          [`app:${rows.appId}`]: due - computePlatformShare(due),
          [`app:${other.appId}`]: 77n - computePlatformShare(77n),
          platform: computePlatformShare(due) + computePlatformShare(77n),
        })
        expect((await ask(service(), asked, payment)).text).toBe(reply.text)
        await expectBalanced(service())
      })

      test('the quote of a query asks for what its 402 asks for, joins, groups and SQL included', async () => {
        const rows = await openMarket(service(), { price: { per_row: '333' } })
        const other = await openMarket(service(), {
          price: { per_row: '9', per_access: '5' },
          policy: { derive: { per_access: '77' } },
        })
        const join = { model: other.root, resolve: { find: { id: '$data.id' } } }
        const sql = `SELECT name, count(*) AS n FROM ${nameIn(other)} GROUP BY name`
        for (const [market, query] of [
          [rows, { limit: 6 }],
          [rows, { limit: 6, find: { same: join } }],
          [other, { limit: 2, offset: 1, sortBy: 'name' }],
          [other, { aggregate: { n: { $count: '*' } } }],
          [other, { sql }],
        ] as const) {
          const asked = 'sql' in query ? inSql(sql) : list({ root: market.root, ...query })
          const price = readAmount(await quote(service(), asked))
          const body = {
            app_id: market.appId,
            collection: market.collection,
            operation_type: 'read',
            size_kb: 0,
            query,
          }
          const told = await service().request('POST', '/api/pricing/quote', { body })
          expect(told.status, told.text).toBe(200)
          expect(told.body.total_cost_atomic, JSON.stringify(query)).toBe(String(price))
          expect(told.body.total_cost).toBe(Number(price) / 1e6)
          const own = await service().request('POST', '/api/pricing/quote', {
            body,
            headers: market.headers,
          })
          const isOwn = !JSON.stringify(query).includes('model')
          expect(own.body.total_cost_atomic).toBe(isOwn ? '0' : '77')
        }
        const body = {
          app_id: rows.appId,
          collection: rows.collection,
          operation_type: 'read',
          size_kb: 0,
        }
        for (const [query, status] of [
          [{}, 400],
          [{ limit: 'x' }, 400],
          [{ limit: 2, max_kb: 0.5 }, 400],
          [{ aggregate: { n: { $count: '*' } } }, 403],
        ] as const)
          expect(
            (await service().request('POST', '/api/pricing/quote', { body: { ...body, query } }))
              .status,
            JSON.stringify(query),
          ).toBe(status)
      })

      test('derivation from several sources costs the sum of their prices, however often each is named', async () => {
        const policy = (amount: string) => ({
          price: { per_row: '9' },
          policy: { derive: { per_access: amount } },
        })
        const [one, two] = [
          await openMarket(service(), policy('50')),
          await openMarket(service(), policy('31')),
        ]
        const buyer = await createFundedBuyer(service())
        const asked = inSql(
          `SELECT count(*) AS n FROM ${nameIn(one)} a JOIN ${nameIn(two)} b ON a.id = b.id JOIN ${nameIn(one)} c ON c.id = a.id`,
        )
        expect(readAmount(await quote(service(), asked))).toBe(81n)
        const { body } = await buyer.buy(service(), asked)
        expect(body.data).toEqual([{ n: 5 }])
        expect(await readEarnings(service(), one)).toBe(40n)
        expect(await readEarnings(service(), two)).toBe(31n - computePlatformShare(31n))
        await expectBalanced(service())
      })

      test('groups are sold at the derive price, and an empty answer is free where its owner says so', async () => {
        const market = await openMarket(service(), {
          price: { per_row: '9' },
          policy: { derive: { per_access: '60' }, empty_answer: 'free' },
        })
        const buyer = await createFundedBuyer(service())
        const groups = { root: market.root, group_by: 'name', sortBy: 'name' }
        const { body } = await buyer.buy(service(), list(groups))
        expect(body).toMatchObject({ records: [{ name: 'Graz' }, {}, {}, {}, {}], total: 5 })
        expect(await readEarnings(service(), market)).toBe(48n)
        const empty = await buyer.buy(service(), list({ ...groups, find: { name: 'nowhere' } }))
        expect(empty.body.records).toEqual([])
        expect(await readEarnings(service(), market)).toBe(48n)
        expect(await readBalance(service(), buyer.address)).toBe(60n)
      })

      test('a query that the owner forbids after the quote gets 403, and no money moves', async () => {
        const market = await openMarket(service(), {
          price: { per_row: '9' },
          policy: { derive: { per_access: '60' } },
        })
        const buyer = await createFundedBuyer(service())
        const asked = inSql(`SELECT max(population) AS m FROM ${nameIn(market)}`)
        const payment = await buyer.payV2(await quote(service(), asked))
        const put = await service().request(
          'PUT',
          `/api/apps/${market.appId}/collections/${market.collection}`,
          {
            body: { access_policy: { read: 'public', price: { per_row: '9' }, derive: 'deny' } },
            headers: market.headers,
          },
        )
        expect(put.status, put.text).toBe(200)
        expect((await ask(service(), asked, payment)).status).toBe(403)
        expect(await readBalance(service(), buyer.address)).toBe(0n)
        expect(await readEarnings(service(), market)).toBe(0n)
      })
    },
    { devnet: true },
  ))

/** Lists who got how much, from the ledger's entry inside a receipt, which the receipt's proof covers. */
function listPostings(receipt: Json): readonly { account: string; amount: string }[] {
  const entry = Buffer.from(receipt.ledger.entry, 'base64').toString()
  return JSON.parse(entry.slice(entry.indexOf('\n') + 1)).postings
}

async function expectReceipt(
  service: TestService,
  { asked, reply }: { asked: Asked; reply: TestReply },
) {
  const receipt = await readReceipt(service, reply)
  const { body: known } = await service.request('GET', '/.well-known/tollbase')
  const { checks } = verifyDocument(JSON.stringify(receipt), {
    trustedKey: known.receipt_public_key,
    request: { method: asked.method, path: asked.path, body: Buffer.from(asked.raw ?? '') },
    reply: Buffer.from(reply.text),
  })
  expect(checks.filter(({ ok }) => !ok)).toEqual([])
  return receipt
}
