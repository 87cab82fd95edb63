import { beforeEach, describe, expect, test } from 'vitest'
import { createData, type Data } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import { nameRule, perRow } from '../support/price-rules.ts'
import { createSeller } from './support.ts'

withService((service) => {
  let seller: Data
  beforeEach(async () => {
    seller = await createSeller(service(), { read: 'public' })
  })
  const put = (body: object) => seller.call('PUT', '/pricing', body)
  const patch = (body: object) => seller.call('PATCH', '/pricing', body)
  describe('a change by which strangers would read for nothing', () => {
    const refusal = (names: object[]) => ({
      code: 'PRICE_REMOVED',
      details: { confirm_free: names },
    })

    test('a collection that would become free is named and needs a confirmation, whichever way its price goes', async () => {
      await put({ rules: [perRow('5')] })
      const collection = { collection: 'sales' }
      for (const change of [
        () => put({ rules: [] }),
        () => put({ rules: [perRow('0')] }),
        () => patch({ remove: [nameRule(perRow('5'))] }),
        () => patch({ set: [perRow('0')] }),
        () => put({ rules: [], confirm_free: [{ view: 'sales' }] }),
      ]) {
        const { status, body } = await change()
        expect(status).toBe(409)
        expect(body).toMatchObject(refusal([collection]))
      }
      expect((await seller.call('GET', '/pricing')).body.rules).toEqual([perRow('5')])
      expect((await put({ rules: [], confirm_free: [collection] })).status).toBe(200)
    })

    test('a view and a query that cost what their source does are named too', async () => {
      await put({ rules: [perRow('5')] })
      const app = seller.appId
      const sql = `SELECT id, region FROM "${app}"::sales`
      const view = await seller.call('POST', '/views/sql', {
        sql: `CREATE MATERIALIZED VIEW "${app}"::mine AS ${sql}`,
      })
      expect(view.status, view.text).toBe(201)
      expect((await seller.call('POST', '/queries', { name: 'all', sql })).status).toBe(201)
      const { body } = await put({ rules: [] })
      expect(body).toMatchObject(
        refusal([{ collection: 'sales' }, { view: 'mine' }, { query: 'all' }]),
      )
    })

    test('a collection whose new policy says nothing of its price is named, and keeps it', async () => {
      const priced = { access_policy: { read: 'public', price: { per_row: '5' } } }
      expect((await seller.call('PUT', '/collections/sales', priced)).status).toBe(200)
      const free = { access_policy: { read: 'public' } }
      const refused = await seller.call('PUT', '/collections/sales', free)
      expect(refused.status, refused.text).toBe(409)
      expect(refused.body).toMatchObject(refusal([{ collection: 'sales' }]))
      const { access_policy } = (await seller.call('GET', '/collections/sales')).body
      expect(access_policy).toEqual(priced.access_policy)
      // Nothing is given away where strangers may read it no more.
      const closed = { access_policy: 'key' }
      expect((await seller.call('PUT', '/collections/sales', closed)).status).toBe(200)
      expect((await seller.call('PUT', '/collections/sales', priced)).status).toBe(200)
      const sure = { ...free, confirm_free: [{ collection: 'sales' }] }
      expect((await seller.call('PUT', '/collections/sales', sure)).status).toBe(200)
    })

    test('a view that is replaced by one without a price is named', async () => {
      const app = seller.appId
      const sql = `SELECT id, region FROM "${app}"::sales`
      const create = `CREATE MATERIALIZED VIEW "${app}"::mine AS ${sql}`
      const made = { sql: create, price: { per_row: '5' } }
      expect((await seller.call('POST', '/views/sql', made)).status).toBe(201)
      const replace = create.replace('CREATE', 'CREATE OR REPLACE')
      // A price that is not given stays.
      expect((await seller.call('POST', '/views/sql', { sql: replace })).status).toBe(201)
      const free = { sql: replace, access_policy: 'public' }
      const refused = await seller.call('POST', '/views/sql', free)
      expect(refused.status, refused.text).toBe(409)
      expect(refused.body).toMatchObject(refusal([{ view: 'mine' }]))
      const sure = { ...free, confirm_free: [{ view: 'mine' }] }
      expect((await seller.call('POST', '/views/sql', sure)).status).toBe(201)
    })

    test('a new version of a query that states no price is named where the newest one has one', async () => {
      const app = seller.appId
      const query = { name: 'all', sql: `SELECT id, region FROM "${app}"::sales` }
      const define = (more: object) => seller.call('POST', '/queries', { ...query, ...more })
      expect((await define({ price: { per_access: '9' } })).status).toBe(201)
      const refused = await define({})
      expect(refused.status, refused.text).toBe(409)
      expect(refused.body).toMatchObject(refusal([{ query: 'all' }]))
      expect((await define({ price: { per_access: '0' } })).status).toBe(201)
      expect((await define({ price: { per_access: '9' } })).status).toBe(201)
      expect((await define({ confirm_free: [{ query: 'all' }] })).status).toBe(201)
    })

    test.each([
      ['an older version of a query', `SELECT id, region FROM`, { per_access: '9' }],
      ['a query that could not be had for money', `SELECT count(*) AS n FROM`, undefined],
    ])('the warning names %s too', async (_, select, price) => {
      const app = seller.appId
      await seller.call('POST', '/collections', { name: 'kept', access_policy: 'key' })
      const query = { name: 'told', sql: `${select} "${app}"::kept`, public: true }
      expect((await seller.call('POST', '/queries', query)).status).toBe(201)
      if (price !== undefined)
        expect((await seller.call('POST', '/queries', { ...query, price })).status).toBe(201)
      await put({ rules: [perRow('5', { collection: 'kept' })] })
      const { status, body } = await put({ rules: [] })
      expect(status).toBe(409)
      expect(body).toMatchObject(refusal([{ query: 'told' }]))
    })

    test.each(['private', 'key', undefined])(
      'a collection that others may show in their views at its derive price is named too, where its policy says %s',
      async (policy) => {
        const other = await createData(service())
        await seller.call('POST', '/collections', {
          name: 'kept',
          ...(policy !== undefined && { access_policy: policy }),
        })
        const grant = { grantee: other.appId, collection: 'kept' }
        const given = await seller.call('POST', '/grants', grant)
        expect(given.status, given.text).toBe(201)
        await put({ rules: [perRow('5', { collection: 'kept' })] })
        const { status, body } = await put({ rules: [] })
        expect(status).toBe(409)
        expect(body).toMatchObject(refusal([{ collection: 'kept' }]))
        // With a price of its own a grant gives nothing away.
        const paid = { ...grant, per_access: '7' }
        expect((await seller.call('POST', '/grants', paid)).status).toBe(201)
        expect((await put({ rules: [] })).status).toBe(200)
      },
    )

    test('a collection that nobody else may read loses its price without a confirmation', async () => {
      await seller.call('POST', '/collections', { name: 'unsaid' })
      const rule = perRow('5', { collection: 'unsaid' })
      await put({ rules: [rule] })
      expect((await put({ rules: [] })).status).toBe(200)
    })
  })
})
