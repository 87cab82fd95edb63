import { limits } from '@tollbase/contract/limits'
import { expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { idsOf, newData } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import type { TestService } from '../support/service.ts'

const most = limits.collectionsPerApplicationMax
/** Each with an index of its own, as most collections have. */
const schema_definition = { fields: { n: { type: 'number', index: true } } }
const patienceMs = 240_000
const callers = 8

/** Objects in the database's catalogue, and the size of its tables. */
async function catalogue({ database }: TestService): Promise<{ objects: number; mb: number }> {
  const [row] = await database.query<{ objects: bigint; bytes: bigint }>(sql`
    SELECT count(*) AS objects, sum(pg_catalog.pg_total_relation_size('pg_catalog.' || relation))::int8 AS bytes FROM (
      SELECT catalogue.relname AS relation FROM pg_catalog.pg_class AS catalogue
      JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = catalogue.relnamespace
      WHERE namespace.nspname = 'pg_catalog' AND catalogue.relkind = 'r') AS tables`)
  const [all] = await database.query<{ objects: bigint }>(
    sql`SELECT count(*) AS objects FROM pg_catalog.pg_class`,
  )
  return { objects: Number(all?.objects ?? 0), mb: Number(row?.bytes ?? 0) / 2 ** 20 }
}

withService((service) => {
  test(`${most} collections fit into one application, the last is made as fast as the first, and there is no more`, {
    timeout: patienceMs,
  }, async () => {
    const app = await newData(service())
    const before = await catalogue(service())
    const heap = process.memoryUsage().heapUsed
    const tookMs: number[] = []
    let next = 0
    const create = async () => {
      for (let at = next++; at < most; at = next++) {
        const from = performance.now()
        const { status } = await app.create({ name: `c${at}`, schema_definition })
        expect(status).toBe(201)
        tookMs.push(performance.now() - from)
      }
    }
    const from = performance.now()
    await Promise.all(Array.from({ length: callers }, create))
    const seconds = (performance.now() - from) / 1000
    const tenth = Math.floor(most / 10)
    const mean = (list: readonly number[]) => list.reduce((sum, ms) => sum + ms, 0) / list.length
    const [first, last] = [mean(tookMs.slice(0, tenth)), mean(tookMs.slice(-tenth))]
    const after = await catalogue(service())
    console.log(
      `${most} collections with an index each: ${seconds.toFixed(1)} s with ${callers} callers; a call ${first.toFixed(1)} ms at first, ${last.toFixed(1)} ms at last; ` +
        `${((process.memoryUsage().heapUsed - heap) / 2 ** 20).toFixed(0)} MB of heap; ` +
        `${after.objects - before.objects} objects and ${(after.mb - before.mb).toFixed(0)} MB more in the database's catalogue`,
    )
    // What grew with the square of the collections took twenty times as long at the end.
    expect(last).toBeLessThan(first * 6)

    const { status, body } = await app.create({ name: 'one_more' })
    expect({ status, code: body.code }).toEqual({ status: 409, code: 'CONFLICT' })
    expect((await app.store('one_more', [{ id: 'a' }])).status).toBe(409)

    await app.store('c0', [{ id: 'a', n: 1 }])
    await app.store(`c${most - 1}`, [{ id: 'z', n: 1 }])
    expect(idsOf(await app.list('c0', { find: { n: 1 } }))).toEqual(['a'])
    expect((await app.call('GET', '/collections')).body).toHaveLength(most)
    expect((await app.call('GET', '/indexes')).body).toHaveLength(most)

    const restarted = performance.now()
    await service().restart()
    const found = await service().request('POST', '/list', {
      body: { root: `${app.appId}::c${most - 1}` },
      headers: app.headers,
    })
    expect(idsOf(found)).toEqual(['z'])
    console.log(`restarted in ${Math.round(performance.now() - restarted)} ms`)
  })
})
