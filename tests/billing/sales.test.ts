import { beforeAll, expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { rebuild } from '../../packages/server/src/operator/rebuild.ts'
import { type Asked, type Buyer, createFundedBuyer, list } from '../support/buyer.ts'
import { type Market, openMarket, readEarnings } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import type { Json } from '../support/service.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs

withService(
  (service) => {
    let market: Market
    let other: Market
    let buyers: Buyer[]
    /** The replies of the sales, oldest first. */
    const sold: { buyer: string; item: string; writes: boolean; gross: bigint }[] = []

    const get = async (path: string, headers = market.headers) =>
      service().request('GET', path, { headers })
    const books = `/api/apps/billed`
    const inSql = (text: string): Asked => ({
      method: 'POST',
      path: '/query/sql',
      raw: JSON.stringify({ sql: text }),
    })

    async function buy(at: number, asked: Asked, { item, gross }: { item: string; gross: bigint }) {
      const buyer = buyers[at]
      if (buyer === undefined) throw new Error('no such buyer')
      const reply = await buyer.buy(service(), asked)
      expect([200, 202], reply.text).toContain(reply.status)
      const writes = asked.path === '/store'
      sold.push({ buyer: buyer.address, item, writes, gross })
    }

    /** Reads a list one line at a time. */
    async function readPages(path: string, name: string): Promise<Json[]> {
      const all: Json[] = []
      for (let cursor = ''; ; ) {
        const page = await get(`${path}${path.includes('?') ? '&' : '?'}limit=1${cursor}`)
        expect([page.status, page.body[name]?.length], page.text).toEqual([200, 1])
        all.push(...page.body[name])
        if (page.body.next_cursor === null) return all
        cursor = `&cursor=${page.body.next_cursor}`
      }
    }

    beforeAll(async () => {
      const app = await service().createApp('billed')
      const scene = { request: service().request, createApp: async () => app }
      market = await openMarket(scene, {
        price: { per_row: '333', per_access: '1' },
        policy: { derive: { per_access: '335' } },
      })
      const policy = { read: 'public', price: { per_row: '10' }, derive: { per_access: '77' } }
      other = await openMarket(service(), { policy })
      const query = {
        name: 'all-cities',
        sql: 'SELECT name FROM billed::cities',
        price: { per_access: '5001' },
      }
      const made = await service().request('POST', `${books}/queries`, {
        headers: market.headers,
        body: query,
      })
      expect(made.status, made.text).toBe(201)
      const notes = { headers: market.headers, body: { name: 'notes' } }
      expect((await service().request('POST', `${books}/collections`, notes)).status).toBe(201)
      const priced = await service().request('PATCH', `${books}/pricing`, {
        headers: market.headers,
        body: {
          set: [
            {
              target: { collection: 'notes' },
              operation: 'write',
              model: 'per_record',
              amount: '19',
            },
          ],
        },
      })
      expect(priced.status, priced.text).toBe(200)
      buyers = [await createFundedBuyer(service()), await createFundedBuyer(service())]
      await buy(0, list({ root: market.root, limit: 2 }), {
        item: 'collection cities',
        gross: 667n,
      })
      await buy(1, list({ root: market.root, limit: 9 }), {
        item: 'collection cities',
        gross: 1666n,
      })
      const run: Asked = { method: 'GET', path: '/api/queries/billed/all-cities/data?limit=9' }
      await buy(1, run, { item: 'query all-cities', gross: 5001n })
      const write = JSON.stringify({ root: 'billed::notes', data: [{ a: 1 }, { a: 2 }] })
      const stored = { method: 'POST', path: '/store', raw: write, headers: market.headers }
      await buy(0, stored, { item: 'collection notes', gross: 38n })
      const joined = `SELECT cities.name FROM billed::cities AS cities JOIN "${other.appId}"::cities AS theirs ON theirs.id = cities.id LIMIT 1`
      await buy(0, inSql(joined), { item: 'collection cities', gross: 335n })
    })

    test('every sale is listed with what was sold, to whom, and how it was shared, page by page, newest first', async () => {
      const all = await readPages(`${books}/sales`, 'sales')
      const listed = all.map(({ buyer, item, gross }) => ({
        buyer,
        item: `${item.kind} ${item.name}`,
        gross: BigInt(gross),
      }))
      const expected = sold.map(({ buyer, item, gross }) => ({ buyer, item, gross })).toReversed()
      expect(listed).toEqual(expected)
      const nets = all.map(({ net }) => BigInt(net))
      expect(nets.reduce((sum, one) => sum + one, 0n)).toBe(await readEarnings(service(), market))
      for (const { gross, fee, net, receipt_id: id, payment_id: payment } of all) {
        expect(BigInt(fee) + BigInt(net)).toBe(BigInt(gross))
        const receipt = await get(`/api/receipts/${id}`)
        expect(receipt.body.payment_id).toBe(payment)
      }
      const theirs = await get(`/api/apps/${other.appId}/sales`, other.headers)
      expect(theirs.body.sales).toMatchObject([
        { item: { kind: 'collection', name: 'cities' }, gross: '77', operation: 'sql' },
      ])
    })

    test('sums by hour, day, item and buyer are those of the listed sales', async () => {
      const { body } = await get(`${books}/sales`)
      const cut = (time: string, spanMs: number) =>
        new Date(Date.parse(time) - (Date.parse(time) % spanMs)).toISOString()
      for (const [by, key] of [
        ['hour', (sale) => cut(sale.time, hourMs)],
        ['day', (sale) => cut(sale.time, dayMs)],
        ['item', ({ item }) => `${item.kind} ${item.name}`],
        ['buyer', ({ buyer }) => buyer],
      ] as const satisfies [string, (sale: Json) => string][]) {
        const expected = new Map<string, { sales: number; writes: number; gross: bigint }>()
        for (const sale of body.sales) {
          const sum = expected.get(key(sale)) ?? { sales: 0, writes: 0, gross: 0n }
          const writes = sum.writes + (sale.operation === 'store' ? 1 : 0)
          const gross = sum.gross + BigInt(sale.gross)
          expected.set(key(sale), { sales: sum.sales + 1, writes, gross })
        }
        const found = new Map<string, { sales: number; writes: number; gross: bigint }>()
        for (const one of await readPages(`${books}/sales?by=${by}`, 'buckets')) {
          const name = one.start ?? one.buyer ?? `${one.item.kind} ${one.item.name}`
          const { sales, writes, gross } = one
          expect(found.has(name)).toBe(false)
          found.set(name, { sales, writes, gross: BigInt(gross) })
        }
        expect(found, by).toEqual(expected)
      }
      const half = await get(`${books}/sales?by=day&from=2026-01-01T12:30Z`)
      expect([half.status, half.body.details?.field]).toEqual([400, '/query/from'])
    })

    test('a statement goes from the opening to the closing balance by its lines, which are what the account had at those times', async () => {
      const all = '2020-01-01'
      const to = new Date(service().world.now() + hourMs).toISOString().slice(0, 13)
      const whole = await get(`${books}/billing/statement?from=${all}&to=${to}:00Z`)
      expect(whole.status, whole.text).toBe(200)
      const earned = String(await readEarnings(service(), market))
      expect(whole.body).toMatchObject({ opening_balance: '0', closing_balance: earned })
      const nets = whole.body.lines.map(({ net }: Json) => BigInt(net))
      expect(nets.reduce((sum: bigint, net: bigint) => sum + net, 0n)).toBe(BigInt(earned))
      const statement = `${books}/billing/statement?from=${all}&to=${to}:00Z`
      expect(await readPages(statement, 'lines')).toEqual(whole.body.lines)
      const later = await get(`${books}/billing/statement?from=${to}:00Z&to=${to}:00Z`)
      expect(later.body).toMatchObject({ opening_balance: earned, lines: [] })
      const billing = await get(`/api/billing/billed?from=${all}&to=${to}:00Z`)
      expect(billing.body).toMatchObject({
        sales: sold.length,
        writes: 1,
        gross: whole.body.gross,
        fee: whole.body.fees,
        balance: earned,
        lifetime_earned: earned,
        write_sales: { sales: 1, quantity: 2, gross: '38' },
      })
    })

    test('CSV has the rows of the JSON, and names the rest in a header', async () => {
      const headers = { ...market.headers, accept: 'text/csv' }
      const page = await get(`${books}/sales?limit=2`)
      const csv = await get(`${books}/sales?limit=2`, headers)
      expect(csv.headers.get('content-type')).toMatch(/^text\/csv/)
      expect(csv.headers.get('x-next-cursor')).toBe(page.body.next_cursor)
      const [columns, ...rows] = csv.text.trimEnd().split('\r\n')
      expect(columns).toBe(
        'time,item_kind,item,operation,buyer,quantity,gross,fee,net,payment_id,receipt_id,refunded',
      )
      expect(rows.map((row) => row.split(',').at(-2))).toEqual(
        page.body.sales.map((sale: Json) => sale.receipt_id),
      )
    })

    test('the books are a function of the entries: audit finds them equal, and rebuild makes the same', async () => {
      const readBooks = async () => {
        const tables = ['sold', 'sold_total'].map((table) =>
          service().database.query<{ row: string }>(
            sql`SELECT to_jsonb(one)::text AS row FROM ${sql.id('system', table)} AS one ORDER BY 1`,
          ),
        )
        return (await Promise.all(tables)).flat()
      }
      const before = await readBooks()
      await service().whileStopped(async (config) => {
        expect(await audit(config, () => undefined)).toMatchObject({ equal: true })
        expect(await rebuild(config, () => undefined)).toMatchObject({ equal: true })
      })
      expect(await readBooks()).toEqual(before)
      expect(before.length).toBeGreaterThan(sold.length * 3)
    })
  },
  { devnet: true },
)
