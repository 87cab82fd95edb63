import { expect, test } from 'vitest'
import { createData } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'

withService((service) => {
  test('texts that grow inside each other are refused before they are made, in every request that may hold them', async () => {
    const data = await createData(service())
    await data.store('notes', [{ id: 'a', text: 'x'.repeat(1000) }])
    const source = `"${data.appId}"::notes`
    const grown = `replace(replace(replace(text, 'x', '${'x'.repeat(100)}'), 'x', text), 'x', text)`
    const sql = `SELECT ${grown} AS big FROM ${source}`
    const replies = [
      await data.call('POST', '/queries', { name: 'big', sql }),
      await data.call('POST', '/views/sql', {
        sql: `CREATE MATERIALIZED VIEW "${data.appId}"::big AS ${sql}`,
      }),
      await service().request('POST', '/query/sql', { body: { sql }, headers: data.headers }),
    ]
    for (const { status, text } of replies) {
      expect(status, text).toBe(400)
      expect(text).toMatch(/replace could give more than 16 MiB/)
    }
    // A stranger may not read the collection, and is told nothing else.
    const stranger = await service().request('POST', '/query/sql', { body: { sql } })
    expect(stranger.status, stranger.text).toBe(401)
  })

  test('what a statement makes without records may not take more memory either', async () => {
    const data = await createData(service())
    await data.store('rows', [{ id: 'a' }])
    const values = `(VALUES ${Array.from({ length: 100 }, (_, at) => `(${at})`).join()})`
    const lists = Array.from({ length: 4 }, (_, at) => `${values} AS v${at} (n)`).join(', ')
    const series = 'generate_series(1, 100000) AS a (n), generate_series(1, 1000) AS b (n)'
    const long = `repeat('x', 9000)`
    const statements = [
      `SELECT length(string_agg(${long} || v0.n, ',')) AS n FROM ${lists}`,
      `SELECT length(jsonb_agg(${long} || a.n)::text) AS n FROM ${series}`,
      `SELECT cardinality(array_agg(${long} || a.n)) AS n FROM ${series}`,
      `WITH RECURSIVE t AS (SELECT ${long} || n AS s FROM generate_series(1, 90000) n UNION SELECT s || 'x' FROM t) SELECT count(*) AS n FROM t`,
    ]
    for (const sql of statements) {
      const asked = service().request('POST', '/query/sql', {
        body: { sql },
        headers: data.headers,
      })
      expect((await data.record('rows', 'a')).status).toBe(200)
      const reply = await asked
      expect(reply.status, sql).toBe(413)
      expect(reply.body.code).toBe('QUERY_TOO_EXPENSIVE')
    }
    const after = { body: { sql: 'SELECT 1 AS n' }, headers: data.headers }
    expect((await service().request('POST', '/query/sql', after)).body.data).toEqual([{ n: 1 }])
  }, 120_000)

  test('a query that gathers more than a session may hold is 413, others are answered meanwhile, and all goes on after it', async () => {
    const data = await createData(service())
    const pad = 'x'.repeat(2000)
    await data.store(
      'rows',
      Array.from({ length: 1500 }, (_, at) => ({ id: `${at}`, pad })),
    )
    const source = `"${data.appId}"::rows`
    const ask = (what: string) =>
      service().request('POST', '/query/sql', {
        body: { sql: `SELECT ${what} AS n FROM ${source} AS a, ${source} AS b` },
        headers: data.headers,
      })
    for (const what of [
      "length(string_agg(a.pad || b.id, ','))",
      'cardinality(array_agg(a.pad || b.id))',
    ]) {
      const asked = ask(what)
      expect((await data.record('rows', '7')).status).toBe(200)
      const reply = await asked
      expect(reply.status, reply.text).toBe(413)
      expect(reply.body.code).toBe('QUERY_TOO_EXPENSIVE')
      expect((await data.list('rows', { find: { id: '7' } })).body.total).toBe(1)
    }
  }, 120_000)
})
