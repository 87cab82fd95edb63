import { expect, test } from 'vitest'
import { withService } from '../support/per-engine.ts'
import {
  createFromSql,
  createSeller,
  createView,
  grouped,
  listRows,
  perMarket,
} from '../support/views.ts'

withService((service) => {
  test('a view counts the rows that it gives, and no groups that HAVING leaves out', async () => {
    const app = await createSeller(service())
    for (const refresh_mode of ['lazy', 'live']) {
      const { view } = await createFromSql(
        app,
        `CREATE MATERIALIZED VIEW "${app.appId}"::${refresh_mode}_totals AS
 SELECT market, sum(amount) AS total FROM "${app.appId}"::sales GROUP BY market HAVING sum(amount) > 5`,
        { refresh_mode },
      )
      expect(view.refresh_metadata).toMatchObject({
        total_source_records: 3,
        total_view_records: 1,
      })
    }
  })

  test('a lazy view shows what it showed until it is refreshed, with its own position and how far it is behind', async () => {
    const app = await createSeller(service())
    await createView(app, { name: 'totals', query: perMarket })
    const before = await app.list('totals')
    expect(listRows(before)).toEqual(grouped)
    await app.store('sales', [{ id: 's1', market: 'BTC', price: 10, amount: 100 }])
    const behind = await app.list('totals')
    expect(listRows(behind)).toEqual(grouped)
    expect(behind.body.as_of).toEqual(before.body.as_of)
    expect(behind.body.lag.blocks).toBe(1)
    const refreshed = await app.call('POST', '/views/totals/refresh', {})
    expect(refreshed.status, refreshed.text).toBe(200)
    expect(refreshed.body).toMatchObject({
      success: true,
      refresh_metadata: { total_source_records: 3, total_view_records: 2 },
    })
    const after = await app.list('totals')
    expect(listRows(after)).toEqual([{ market: 'BTC', total: 101, trades: 2 }, grouped[1]])
    expect(after.body.lag).toEqual({ blocks: 0, ms: 0 })
    expect(after.body.as_of).toEqual({
      block_height: refreshed.body.refresh_metadata.last_processed_block_height,
      sequence: refreshed.body.refresh_metadata.last_processed_sequence,
    })
  })

  test.each([
    [
      'a function in FROM',
      'SELECT s.id, n FROM $ s, generate_series(1, 2) WITH ORDINALITY AS g (n, place) WHERE place < 2',
    ],
    [
      'LATERAL',
      'SELECT s.id, t.n FROM $ s, LATERAL (SELECT count(*) AS n FROM $ o WHERE o.id = s.id) t',
    ],
  ])('a view with %s is lazy, and a live one is refused by that reason', async (reason, select) => {
    const app = await createSeller(service())
    const sql = `CREATE MATERIALIZED VIEW "${app.appId}"::made AS ${select.replaceAll('$', `"${app.appId}"::sales`)}`
    const live = await app.call('POST', '/views/sql', { sql, refresh_mode: 'live' })
    expect(live.status).toBe(400)
    expect(live.body.error).toContain(
      `cannot be live: ${reason} cannot be maintained incrementally`,
    )
    await createFromSql(app, sql)
    await app.store('sales', [{ id: 's4', market: 'SOL', amount: 4 }])
    expect((await app.call('POST', '/views/made/refresh')).status).toBe(200)
    const rows = ['s1', 's2', 's3', 's4'].map((id) => ({ id, n: 1 }))
    expect(listRows(await app.list('made'), 'id')).toEqual(rows)
  })

  test('a lazy view of a variance, or with a LATERAL query, has the rows that SQL gives', async () => {
    const app = await createSeller(service())
    const sales = `"${app.appId}"::sales s`
    const queries = {
      spread: `SELECT round(var_pop(s.amount::numeric), 6) AS c0, count(*) AS c1 FROM ${sales}`,
      near: `SELECT s.id, near.n AS c1 FROM ${sales} CROSS JOIN LATERAL (SELECT count(*) AS n FROM (VALUES (1), (2), (NULL)) AS v (b) WHERE s.amount IS NULL OR v.b > 1) AS near`,
    }
    for (const [name, sql] of Object.entries(queries)) {
      await createFromSql(app, `CREATE MATERIALIZED VIEW "${app.appId}"::${name} AS ${sql}`)
      const asked = { body: { sql }, headers: app.headers }
      const { body } = await service().request('POST', '/query/sql', asked)
      const { records } = (await app.list(name)).body
      expect(records).toHaveLength(body.count)
      expect(records).toEqual(expect.arrayContaining(body.data))
    }
  })

  test('a view tells of itself what the interface specifies, with true numbers', async () => {
    const app = await createSeller(service())
    const created = await createView(app, {
      name: 'totals',
      query: perMarket,
      variables: { market: 'market' },
      description: 'What was traded',
    })
    expect(created).toMatchObject({ success: true, view_name: 'totals' })
    const { results } = (await app.store('sales', [{ id: 's9', market: 'X', amount: 1 }])).body
    await app.call('POST', '/views/totals/refresh', {})
    const { status, body } = await app.call('GET', '/views')
    expect(status).toBe(200)
    const [view] = body.views
    expect(view).toMatchObject({
      name: 'totals',
      source_collections: ['sales'],
      refresh_mode: 'lazy',
      variables: { market: 'market' },
      description: 'What was traded',
      status: 'lazy',
      refresh_metadata: {
        last_processed_tx_id: results[0].tx_hash,
        total_source_records: 4,
        total_view_records: 3,
      },
    })
    expect(Date.parse(view.refresh_metadata.last_processed_timestamp)).toBeGreaterThanOrEqual(
      Date.parse(view.created_at),
    )
    expect((await app.call('GET', '/views/totals')).body).toEqual(view)
    // The view's count is as old as the view: 4 records, whatever became of them since.
    const later = [
      { id: 's1', deleted: true },
      { id: 's2', market: 'BTC', amount: 5 },
      { id: 's10', market: 'Y', amount: 1 },
      { id: 's11', market: 'Y', amount: 1 },
    ]
    await app.store('sales', later)
    const counted = async () => (await app.call('GET', '/views/totals')).body.refresh_metadata
    expect(await counted()).toEqual(view.refresh_metadata)
    await app.call('POST', '/views/totals/refresh', {})
    expect(await counted()).toMatchObject({ total_source_records: 5, total_view_records: 4 })
    const task = await service().request('GET', `/task/${created.ticket_id}`)
    expect(task.body).toMatchObject({ status: 'Completed', operation_type: 'create_view' })
  })
})
