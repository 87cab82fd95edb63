import { createHash } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { createData, type Data } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import { createSeller } from './support.ts'

const perRow = (amount: string, target: object = { collection: 'sales' }) => ({
  target,
  operation: 'read',
  model: 'per_row',
  amount,
})
const perAccess = (amount: string) => ({ ...perRow(amount), model: 'per_access' })
const name = ({ target, operation, model }: ReturnType<typeof perRow>) => ({
  target,
  operation,
  model,
})

withService((service) => {
  let seller: Data
  beforeEach(async () => {
    seller = await createSeller(service(), { read: 'public' })
  })
  const put = (body: object) => seller.call('PUT', '/pricing', body)
  const patch = (body: object) => seller.call('PATCH', '/pricing', body)

  describe('a change of prices', () => {
    test('names what was added, changed and removed, with the amount of before', async () => {
      const first = await put({ rules: [perRow('5'), perAccess('7')] })
      expect(first.body).toMatchObject({
        added: [perRow('5'), perAccess('7')],
        changed: [],
        removed: [],
      })
      const second = await put({ rules: [perRow('6')] })
      expect(second.body).toMatchObject({
        rules: [perRow('6')],
        added: [],
        changed: [{ ...perRow('6'), previous_amount: '5' }],
        removed: [perAccess('7')],
      })
    })

    test('of single rules leaves all others', async () => {
      await put({ rules: [perRow('5'), perAccess('7')] })
      const set = await patch({ set: [perAccess('8')] })
      expect(set.body.rules).toEqual([perRow('5'), perAccess('8')])
      const removed = await patch({ remove: [name(perRow('5'))] })
      expect(removed.body).toMatchObject({ rules: [perAccess('8')], removed: [perRow('5')] })
    })

    test.each([
      [{ remove: [name(perRow('5'))] }, '/remove/0'],
      [{ set: [perAccess('5')], remove: [name(perAccess('5'))] }, '/remove'],
      [{ set: [perAccess('5'), perAccess('6')] }, '/set/1'],
      [{ set: [{ ...perRow('5'), amount: undefined }] }, '/set/0/amount'],
    ])('that cannot be meant is refused and named: %j', async (body, field) => {
      await put({ rules: [perAccess('7')] })
      const { status, body: said } = await patch(body)
      expect(status).toBe(400)
      expect(said.details.field).toBe(field)
    })

    test('made from older prices than those of now is refused', async () => {
      const { body } = await put({ rules: [perRow('5')] })
      const change = (version: string) =>
        service().request('PATCH', `/api/apps/${seller.appId}/pricing`, {
          body: { set: [perRow('6')] },
          headers: { ...seller.headers, 'if-match': `"${version}"` },
        })
      const late = await change('0000000000000000')
      expect([late.status, late.body.code]).toEqual([412, 'PRICING_CHANGED'])
      expect(late.body.details.version).toBe(body.version)
      const done = await change(body.version)
      expect(done.status).toBe(200)
      expect(done.body.version).not.toBe(body.version)
      expect((await seller.call('GET', '/pricing')).body.version).toBe(done.body.version)
    })
  })

  test('the version of prices that are not shown cannot be found by hashing guesses, nor by setting the same elsewhere', async () => {
    const other = await createData(service())
    const rule = perRow('5', { collection: 'kept' })
    const versions: string[] = []
    for (const app of [seller, other]) {
      await app.call('POST', '/collections', { name: 'kept', access_policy: 'private' })
      expect((await app.call('PUT', '/pricing', { rules: [rule] })).status).toBe(200)
      const shown = await service().request('GET', `/api/apps/${app.appId}/pricing`)
      expect(shown.body.rules).toEqual([])
      versions.push(shown.body.version)
      const own = await app.call('GET', '/pricing')
      expect(own.body).toMatchObject({ rules: [rule], version: shown.body.version })
    }
    const guess = createHash('sha256')
      .update(JSON.stringify([rule]))
      .digest('hex')
    expect(guess.startsWith(versions[0] ?? '')).toBe(false)
    expect(versions[0]).not.toBe(versions[1])
    await service().restart()
    expect((await seller.call('GET', '/pricing')).body.version).toBe(versions[0])
  })

  describe('what would become free to strangers', () => {
    const refusal = (names: object[]) => ({
      code: 'PRICE_REMOVED',
      details: { confirm_free: names },
    })

    test('is named and needs to be confirmed, however its price goes', async () => {
      await put({ rules: [perRow('5')] })
      const collection = { collection: 'sales' }
      for (const change of [
        () => put({ rules: [] }),
        () => put({ rules: [perRow('0')] }),
        () => patch({ remove: [name(perRow('5'))] }),
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

    test('is also a view and a query that cost what their source does', async () => {
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

    test.each([
      ['an older version of a query', `SELECT id, region FROM`, { per_access: '9' }],
      ['a query that could not be had for money', `SELECT count(*) AS n FROM`, undefined],
    ])('is also %s', async (_, select, price) => {
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
      'is also what others may show in their views at the price of deriving from it, where its policy says %s',
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

    test('is not what nobody else may read', async () => {
      await seller.call('POST', '/collections', { name: 'unsaid' })
      const rule = perRow('5', { collection: 'unsaid' })
      await put({ rules: [rule] })
      expect((await put({ rules: [] })).status).toBe(200)
    })
  })
})
