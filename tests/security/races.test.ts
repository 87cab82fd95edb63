import { expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { createData, type Data } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import type { TestReply } from '../support/service.ts'

withService((service) => {
  test.each<[string, (data: Data) => Promise<TestReply>]>([
    ['list', (data) => data.list('c')],
    ['record', (data) => data.record('c', 'k')],
    ['history', (data) => data.record('c', 'k', '/history')],
    ['proof', (data) => data.record('c', 'k', '/proof')],
    ['preview', (data) => data.call('GET', '/collections/c/preview')],
  ])(
    'a %s whose collection is deleted while it waits is answered 404, not that the service is broken',
    async (_, read) => {
      const data = await createData(service())
      await data.store('c', [{ id: 'k' }])
      const tenant = await service().running.service.tenants.load(data.appId)
      const table = tenant.data.catalog.byName.get('c')?.table ?? ''
      const replies = await service().database.transaction(async (tx) => {
        // The table waits for the end of this lock, and the reader waits for the table.
        await tx.execute(sql`LOCK TABLE ${sql.id(tenant.schema, table)} IN ACCESS SHARE MODE`)
        const waiters = async (count: number) => {
          for (;;) {
            const rows = await tx.query(sql`
            SELECT pid FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock'`)
            if (rows.length >= count) return
            await new Promise((resolve) => setTimeout(resolve, 10))
          }
        }
        const deleting = data.call('DELETE', '/collections/c')
        await waiters(1)
        const reading = read(data)
        await waiters(2)
        return { deleting, reading }
      })
      expect((await replies.deleting).status).toBe(200)
      const reply = await replies.reading
      expect(reply, reply.text).toMatchObject({
        status: 404,
        body: { code: 'COLLECTION_NOT_FOUND' },
      })
    },
  )
})
