import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { createData, type Data, listIds } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import type { TestReply, TestService } from '../support/service.ts'

/** The time for which statements are cancelled: a write tries again for longer. */
const cancelledMs = 2_000

/**
 * Sends a request while all tables are locked, and cancels each of its statements that waits for them, as a time-out
 * does.
 */
async function askCancelled(
  service: TestService,
  ask: () => Promise<TestReply>,
): Promise<TestReply> {
  const { database } = service
  const tables = await database.query<{ schema: string; name: string }>(sql`
    SELECT nspname::text AS schema, relname::text AS name FROM pg_class
    JOIN pg_namespace AS one ON one.oid = relnamespace
    WHERE nspname ~ '^(app_|system$|operations$)' AND relkind = 'r' ORDER BY 1, 2`)
  const asked = await database.transaction(async (tx) => {
    for (const { schema, name } of tables)
      await tx.execute(sql`LOCK TABLE ${sql.id(schema, name)} IN ACCESS EXCLUSIVE MODE`)
    const reply = ask()
    const end = Date.now() + cancelledMs
    while (Date.now() < end && (await Promise.race([reply, setTimeout(20)])) === undefined)
      await database.query(sql`
        SELECT pg_cancel_backend(pid) AS done FROM pg_stat_activity
        WHERE wait_event_type = 'Lock' AND datname = current_database()`)
    // Not awaited before the locks are gone.
    return { reply }
  })
  return asked.reply
}

/**
 * Begins a work while no tables can follow their log, and cancels so many statements that wait for that; the work goes on
 * after it.
 */
async function cancelAppliers<T>(
  { database }: TestService,
  times: number,
  begin: () => Promise<T>,
): Promise<T> {
  const places = await database.query<{ schema: string }>(sql`
    SELECT nspname::text AS schema FROM pg_class JOIN pg_namespace AS one ON one.oid = relnamespace
    WHERE nspname ~ '^(app_|system$)' AND relname = 'watermark' ORDER BY 1`)
  const begun = await database.transaction(async (tx) => {
    for (const { schema } of places)
      await tx.execute(sql`LOCK TABLE ${sql.id(schema, 'watermark')} IN EXCLUSIVE MODE`)
    const work = begin()
    for (let done = 0; done < times; ) {
      const rows = await database.query(sql`
        SELECT pg_cancel_backend(pid) AS done FROM pg_stat_activity
        WHERE wait_event_type = 'Lock' AND datname = current_database()`)
      done += rows.length
      await setTimeout(10)
    }
    // Not awaited before the locks are gone.
    return { work }
  })
  return begun.work
}

withService((service) => {
  test('tables whose statements are cancelled again and again follow their log once nobody cancels them', async () => {
    const app = await createData(service())
    await app.store('c', [{ id: 'a' }])
    const stored = await cancelAppliers(service(), 5, () => app.store('c', [{ id: 'b' }]))
    expect(stored.status, stored.text).toBe(200)
    expect(listIds(await app.list('c')).toSorted()).toEqual(['a', 'b'])
  })

  const asks: readonly (readonly [string, (app: Data) => Promise<TestReply>])[] = [
    ['a list of collections', (app) => app.call('GET', '/collections')],
    ['a wallet', (app) => app.call('GET', '/wallet')],
    ['a list of sales', (app) => app.call('GET', '/sales')],
    [
      'a new set',
      (app) => app.call('POST', '/datasets', { name: 'd', kind: 'values', entries: ['x'] }),
    ],
    [
      'a batch',
      (app) =>
        app.call('POST', '/batch', {
          operations: [{ operation: 'create', collection: 'c', data: { id: 'b' } }],
        }),
    ],
  ]

  const isRead = (name: string) => /^a (list|wallet)/.test(name)

  test.each(asks)(
    '%s whose statement is cancelled while it waits for a lock is answered 503, or done once nobody cancels it, and afterwards as ever',
    async (name, ask) => {
      const app = await createData(service())
      await app.store('c', [{ id: 'a' }])
      const cancelled = await askCancelled(service(), () => ask(app))
      if (isRead(name) || cancelled.status >= 300) {
        expect([cancelled.status, cancelled.body.code]).toEqual([503, 'UNAVAILABLE'])
        expect(cancelled.headers.get('retry-after')).toBe('1')
      }
      const again = await ask(app)
      expect(again.status, again.text).toBeLessThan(300)
    },
  )
})
