import { limits } from '@tollbase/contract/limits'
import { expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { newData } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import type { TestReply } from '../support/service.ts'

withService((service) => {
  test('however many lists are stuck, stores and reads by key go on', async () => {
    const data = await newData(service())
    await data.store('held', [{ id: 'a', n: 1 }])
    await data.store('other', [{ id: 'b', n: 2 }])
    const { schema, data: projection } = await service().running.service.tenancy.tenant(data.appId)
    const table = projection.catalog.byName.get('held')?.table ?? ''
    const { queryDatabase } = service().running.service
    const lists = await service().database.transaction(async (tx) => {
      await tx.execute(sql`LOCK TABLE ${sql.id(schema, table)} IN ACCESS EXCLUSIVE MODE`)
      const stuck = Array.from({ length: 16 }, () => data.list('held', { find: { n: 1 } }))
      // More wait than there are connections.
      while (queryDatabase.stats().waiting < 6)
        await new Promise((resolve) => setTimeout(resolve, 10))
      // Each of these would wait for as long as the lists do if it needed one of theirs.
      expect((await data.store('other', [{ id: 'c', n: 3 }])).status).toBe(200)
      const strict = await data.store('other', [{ id: 'd' }], { strict: true })
      expect(strict.status, strict.text).toBe(200)
      expect((await data.record('other', 'c')).body.record).toEqual({ id: 'c', n: 3 })
      return stuck
    })
    for (const reply of await Promise.all(lists))
      expect(reply.body.records).toEqual([{ id: 'a', n: 1 }])
  })

  test('heavy queries wait for their turn, too many are 503 with Retry-After, and plain reads go on', async () => {
    const data = await newData(service())
    await data.store('held', [{ id: 'a', n: 1 }])
    await data.store('other', [{ id: 'b', n: 2 }])
    const { schema, data: projection } = await service().running.service.tenancy.tenant(data.appId)
    const table = projection.catalog.byName.get('held')?.table ?? ''
    const count = { sql: `SELECT count(*) AS n FROM "${data.appId}"::held` }
    const heavy = () =>
      service().request('POST', '/query/sql', { body: count, headers: data.headers })
    const most = limits.queriesAtOnceMax + limits.queriesWaitingMax
    // Nothing that reads the table ends before this transaction does.
    const replies = await service().database.transaction(async (tx) => {
      await tx.execute(sql`LOCK TABLE ${sql.id(schema, table)} IN ACCESS EXCLUSIVE MODE`)
      const early: TestReply[] = []
      const asked = Array.from({ length: most + 3 }, async () => {
        const reply = await heavy()
        early.push(reply)
        return reply
      })
      while (early.length < 3) await new Promise((resolve) => setTimeout(resolve, 10))
      for (const { status, body, headers } of early) {
        expect(status).toBe(503)
        expect(body.code).toBe('UNAVAILABLE')
        expect(headers.get('retry-after')).toBe('2')
      }
      expect((await data.list('other')).body.records).toEqual([{ id: 'b', n: 2 }])
      return asked
    })
    const statuses = (await Promise.all(replies)).map(({ status }) => status)
    // On a slow day some have waited too long.
    expect(statuses.filter((status) => status !== 200 && status !== 503)).toEqual([])
    expect(statuses.filter((status) => status === 200).length).toBeGreaterThan(0)
    expect((await heavy()).body.data).toEqual([{ n: 1 }])
  })
})
