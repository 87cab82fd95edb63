import { expect, test } from 'vitest'
import { withService } from '../support/per-engine.ts'
import { createSeller, createView, grouped, listRows, perMarket } from '../support/views.ts'

withService((service) => {
  test('a live view shows a write as soon as the write is shown, at the position of the write', async () => {
    const app = await createSeller(service())
    const { view } = await createView(app, {
      name: 'totals',
      query: perMarket,
      refresh_mode: 'live',
    })
    expect(view).toMatchObject({ name: 'totals', refresh_mode: 'live', status: 'live' })
    expect(listRows(await app.list('totals'))).toEqual(grouped)
    const stored = await app.store('sales', [
      { id: 's1', market: 'BTC', price: 10, amount: 5 },
      { id: 's4', market: 'SOL', price: 1, amount: 4 },
      { id: 's3', deleted: true },
    ])
    const listed = await app.list('totals')
    expect(listRows(listed)).toEqual([
      { market: 'BTC', total: 6, trades: 2 },
      { market: 'SOL', total: 4, trades: 1 },
    ])
    const [, , last] = stored.body.results
    expect(listed.body.as_of).toEqual({ block_height: last.block_height, sequence: last.sequence })
    expect(listed.body.lag).toEqual({ blocks: 0, ms: 0 })
  })

  test('each of many live views costs a write one statement more, and none costs a savepoint of its own', async () => {
    const app = await createSeller(service())
    const views = Array.from({ length: 5 }, (_, at) => `totals_${at}`)
    for (const name of views)
      await createView(app, { name, query: perMarket, refresh_mode: 'live' })
    const sent: { readonly text: string; readonly connection: object }[] = []
    const stop = service().running.service.database.observe((text, connection) => {
      sent.push({ text, connection })
    })
    await app.store('sales', [{ id: 's4', market: 'SOL', price: 1, amount: 4 }])
    stop()
    const begin = sent.findIndex(({ text }) => text === 'SAVEPOINT live_views')
    const { connection } = sent[begin] ?? {}
    const statements = sent.slice(begin).filter((each) => each.connection === connection)
    const end = statements.findIndex(({ text }) => text === 'RELEASE SAVEPOINT live_views')
    expect(end).toBe(1 + views.length)
    expect(statements.filter(({ text }) => text.includes('SAVEPOINT'))).toHaveLength(2)
    for (const name of views) expect(listRows(await app.list(name))).toHaveLength(3)
  })

  test('a query sees a live view and its source at one position, whatever is written meanwhile', async () => {
    const app = await createSeller(service())
    const names = Array.from({ length: 8 }, (_, at) => `totals_${at}`)
    for (const name of names)
      await createView(app, { name, query: perMarket, refresh_mode: 'live' })
    let isOver = false
    const writing = [0, 1, 2].map(async (writer) => {
      for (let n = 0; !isOver; n++) {
        const records = [{ id: `w${writer}-${n % 50}`, market: `m${n % 5}`, amount: n }]
        if (n % 7 === 0) await app.store('sales', records)
        else await app.queue('sales', records)
      }
    })
    const sum = (of: string, from: string) => `(SELECT sum(${of}) FROM "${app.appId}"::${from})`
    try {
      // Nobody has read the next view yet, so it may wait for several writes.
      for (const name of names.flatMap((each) => Array.from({ length: 5 }, () => each))) {
        const query = `SELECT ${sum('total', name)} AS viewed, ${sum('amount', 'sales')} AS stored FROM "${app.appId}"::sales LIMIT 1`
        const asked = { body: { sql: query }, headers: app.headers }
        const from = performance.now()
        const { body, text } = await service().request('POST', '/query/sql', asked)
        expect(body.data?.[0]?.viewed, text).toBeTypeOf('number')
        // A reader has patience for a second.
        const isPatient = performance.now() - from < 900
        if (isPatient) expect(body.data[0].viewed, text).toBe(body.data[0].stored)
      }
    } finally {
      isOver = true
      await Promise.all(writing)
    }
  })
})
