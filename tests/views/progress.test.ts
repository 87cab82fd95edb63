import { expect, test } from 'vitest'
import { requirePresent } from '../../packages/server/src/base/assert.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import { findViewTask } from '../../packages/server/src/services/tasks/view-task.ts'
import {
  makeSessionName,
  makeWork,
} from '../../packages/server/src/services/views/build-progress.ts'
import type { Data } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import type { Json } from '../support/service.ts'
import { createSeller, createView, perMarket } from '../support/views.ts'
import { holdOpen, holdTable } from './support.ts'

const records = 8_000

withService((service) => {
  const newestTask = async (app: Data): Promise<Json> =>
    (await app.call('GET', '/tasks?limit=1')).body.tasks[0]

  /** Returns the task as `newestTask` does, once it has passed that many records. */
  const pastRecords = async (app: Data, count: number): Promise<Json> => {
    await expect
      .poll(async () => (await newestTask(app)).progress?.done ?? -1)
      .toBeGreaterThan(count)
    return newestTask(app)
  }

  test('the task that fills a view says how many records it has read, and 100 only when the view is whole', async () => {
    const app = await createSeller(service())
    await app.create({ name: 'many' })
    const list = Array.from({ length: records }, (_, at) => ({ id: `r${at}`, at }))
    await app.store('many', list)
    const tenant = await service().running.service.tenants.load(app.appId)
    const { data, chain } = tenant
    const reading = await holdTable(service(), app, data.catalog.byName.get('many')?.table)
    const body = {
      name: 'all',
      source_collections: ['many'],
      query: { select: ['at'], where: { $lt: ['at', 800] } },
    }
    const creating = app.call('POST', '/views', body)
    try {
      expect(await pastRecords(app, -1)).toMatchObject({
        operation_type: 'create_view',
        status: 'StoringData',
        progress: { percent: 0, done: 0, total: records, unit: 'records' },
        progress_log: [expect.any(String), `0 of about ${records} records read`],
      })
      // A process that has nothing but the database is told the same.
      const { height } = chain.head()
      const block = requirePresent(await chain.readBlock(height), 'the block')
      expect(
        await findViewTask(service().database, tenant, {
          id: '',
          block,
          sequence: 0,
        }),
      ).toMatchObject({ progress: { percent: 0, done: 0, total: records, unit: 'records' } })
      // The build reads everything before it writes the first row, which waits for this transaction.
      const table = data.catalog.viewsByName.get('all')?.table ?? ''
      const writing = await holdOpen(service(), app, (tx, schema) =>
        tx.execute(sql`
          INSERT INTO ${sql.id(schema, table)} (leaf, key, data, body) OVERRIDING SYSTEM VALUE
          VALUES (1, '', '{}', '{}')`),
      )
      await reading.release()
      const { status, progress } = await pastRecords(app, 0)
      expect(status).toBe('StoringData')
      expect(progress.percent).toBe(Math.min(99, Math.floor((100 * progress.done) / records)))
      await writing.release()
    } finally {
      await reading.release()
    }
    const { ticket_id, view } = (await creating).body
    expect(view.refresh_metadata.total_view_records).toBe(800)
    const task = await service().request('GET', `/task/${ticket_id}`)
    expect(task.body).toMatchObject({ status: 'Completed', progress: { percent: 100 } })
  })

  test('PostgreSQL keeps whole what a session says about its work, also for the largest numbers', async () => {
    const app = await createSeller(service())
    await createView(app, { name: 'totals', query: perMarket })
    const { application, data } = await service().running.service.tenants.load(app.appId)
    const view = requirePresent(data.catalog.viewsByName.get('totals')?.view, 'the view')
    const name = makeSessionName(
      { application: { ...application, number: 9_999_999 } },
      { ...view, number: 999_999 },
      { ...makeWork(), total: 99_999_999_999, done: 99_999_999_999 },
    )
    const [kept] = await service().database.query<{ name: string }>(
      sql`SELECT set_config('application_name', ${name}, true) AS name`,
    )
    expect(kept?.name).toBe(name)
  })

  test('the task of a refresh by changes counts entries, and a repair counts records again', async () => {
    const app = await createSeller(service())
    await createView(app, { name: 'totals', query: perMarket })
    const { data } = await service().running.service.tenants.load(app.appId)
    const table = data.catalog.viewsByName.get('totals')?.table
    await app.store('sales', [{ id: 's4', market: 'SOL', amount: 1 }])
    const refreshed = async (unit: string, total: number) => {
      const held = await holdTable(service(), app, table)
      const refreshing = app.call('POST', '/views/totals/refresh', {})
      try {
        await expect
          .poll(async () => (await newestTask(app)).progress)
          .toEqual({ percent: 0, done: 0, total, unit })
      } finally {
        await held.release()
      }
      expect((await refreshing).status).toBe(200)
    }
    // The record and the refresh.
    await refreshed('entries', 2)
    const { schema } = await service().running.service.tenants.load(app.appId)
    await service().database.execute(
      sql`UPDATE ${sql.id(schema, 'view_state')} SET status = 'stale', whole = false, reason = 'as a test wants'`,
    )
    const { body: stale } = await app.call('GET', '/views/totals')
    expect(stale).toMatchObject({ status: 'stale', stale_reason: 'as a test wants' })
    // The work that was done stays done.
    expect((await newestTask(app)).status).toBe('Completed')
    await refreshed('records', 4)
    expect((await newestTask(app)).progress).toEqual({ percent: 100 })
  })
})
