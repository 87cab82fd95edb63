import { expect, test } from 'vitest'
import type { AppliedEntry } from '../../packages/server/src/chain/applier.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import {
  applyWithLiveViews,
  viewAdvancesMs,
} from '../../packages/server/src/projections/live-views.ts'
import { viewSession } from '../../packages/server/src/projections/view-sessions.ts'
import { viewPauseMs, WaitingViews } from '../../packages/server/src/projections/waiting-views.ts'
import { enterSession } from '../../packages/server/src/services/views/view-store.ts'
import type { Data } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import type { TestReply, TestService } from '../support/service.ts'
import { createSeller, createView, grouped, listRows, perMarket } from '../support/views.ts'
import { holdTable } from './support.ts'

withService((service) => {
  const loadTenant = (app: Data) => service().running.service.tenants.load(app.appId)
  const readState = async (app: Data, name: string) =>
    (await app.call('GET', `/views/${name}`)).body

  /** Damages the view's tables, as a bug or a bad disk would. */
  async function breakView(app: Data, name: string): Promise<string> {
    const { schema, data } = await loadTenant(app)
    const table = data.catalog.viewsByName.get(name)?.table ?? ''
    await service().database.execute(
      sql`ALTER TABLE ${sql.id(schema, table)} RENAME COLUMN body TO broken`,
    )
    return table
  }

  test('a live view that fails stands still and says why, keeps no write and no other view back, and a refresh repairs it', async () => {
    const app = await createSeller(service())
    for (const name of ['early', 'bad', 'good'])
      await createView(app, { name, query: perMarket, refresh_mode: 'live' })
    const table = await breakView(app, 'bad')
    const stored = await app.store('sales', [{ id: 's9', market: 'SOL', amount: 1 }])
    expect(stored.status, stored.text).toBe(200)
    const sol = { market: 'SOL', total: 1, trades: 1 }
    for (const name of ['early', 'good'])
      expect(listRows(await app.list(name))).toEqual([...grouped, sol])
    expect(await readState(app, 'bad')).toMatchObject({
      status: 'stale',
      stale_reason: expect.stringMatching(/body/),
    })
    const { schema } = await loadTenant(app)
    await service().database.execute(
      sql`ALTER TABLE ${sql.id(schema, table)} RENAME COLUMN broken TO body`,
    )
    expect(listRows(await app.list('bad'))).toEqual(grouped)
    await app.store('sales', [{ id: 's9', market: 'SOL', amount: 4 }])
    expect((await app.list('bad')).body.lag.blocks).toBe(2)
    const refreshed = await app.call('POST', '/views/bad/refresh', {})
    expect(refreshed.status, refreshed.text).toBe(200)
    expect(await readState(app, 'bad')).toMatchObject({ status: 'live' })
    expect(listRows(await app.list('bad'))).toEqual([...grouped, { ...sol, total: 4 }])
    await app.store('sales', [{ id: 's9', deleted: true }])
    expect(listRows(await app.list('bad'))).toEqual(grouped)
  })

  test.each(['40P01', '55P03', '53100'])(
    'a passing %s of the records stops no view, and is not mistaken for another error',
    async (state) => {
      const app = await createSeller(service())
      await createView(app, { name: 'totals', query: perMarket, refresh_mode: 'live' })
      const { schema, data, chain } = await loadTenant(app)
      const table = data.catalog.byName.get('sales')?.table ?? ''
      const fails = sql.id(schema, 'fails')
      for (const statement of [
        sql`CREATE SEQUENCE ${fails}`,
        sql`CREATE FUNCTION ${fails}() RETURNS trigger LANGUAGE plpgsql AS ${sql.literal(
          `BEGIN IF nextval(TG_ARGV[0]::regclass) < 6 THEN RAISE EXCEPTION 'passing' USING ERRCODE = TG_ARGV[1]; END IF; RETURN NEW; END`,
        )}`,
        sql`CREATE TRIGGER fails BEFORE INSERT ON ${sql.id(schema, table)}
        FOR EACH ROW EXECUTE FUNCTION ${fails}(${sql.literal(`${schema}.fails`)}, ${sql.literal(state)})`,
      ])
        await service().database.execute(statement)
      // This lets all answers of a transaction be read at once.
      const busy = setInterval(() => {
        for (const end = Date.now() + 15; Date.now() < end; );
      }, 1)
      try {
        await app.store('sales', [{ id: 's9', market: 'SOL', amount: 1 }])
        await expect
          .poll(async () => listRows(await app.list('totals')))
          .toEqual([...grouped, { market: 'SOL', total: 1, trades: 1 }])
      } finally {
        clearInterval(busy)
      }
      // A chain that had stopped would have been opened anew.
      expect((await loadTenant(app)).chain).toBe(chain)
      expect(chain.failure).toBeUndefined()
      expect(await readState(app, 'totals')).toMatchObject({ status: 'live' })
    },
  )

  test('a view that is not filled yet is not read as an empty one', async () => {
    const app = await createSeller(service())
    await createView(app, { name: 'totals', query: perMarket })
    const { data } = await loadTenant(app)
    const held = await holdFills(service(), app)
    try {
      const body = { name: 'slow', source_collections: ['sales'], query: perMarket }
      const creating = app.call('POST', '/views', body)
      await expect.poll(() => data.catalog.viewsByName.has('slow')).toBe(true)
      for (const reply of [await app.list('slow'), await app.call('GET', '/views/slow/data')])
        expect(reply).toMatchObject({ status: 503, body: { code: 'VIEW_NOT_READY' } })
      expect(await readState(app, 'slow')).toMatchObject({ status: 'building' })
      await held.release()
      expect((await creating).body.view.status).toBe('lazy')
    } finally {
      await held.release()
    }
    expect(listRows(await app.list('slow'))).toEqual(grouped)
  })

  test('a live view that takes longer than it may does not hold up the write, and brings itself up to date', async () => {
    const app = await createSeller(service())
    await createView(app, { name: 'slow', query: perMarket, refresh_mode: 'live' })
    const { data } = await loadTenant(app)
    const held = await holdTable(service(), app, data.catalog.viewsByName.get('slow')?.table)
    try {
      const stored = await app.store('sales', [{ id: 's9', market: 'SOL', amount: 1 }])
      expect(stored.status, stored.text).toBe(200)
    } finally {
      await held.release()
    }
    await expect
      .poll(async () => (await readState(app, 'slow')).status, { timeout: 20_000 })
      .toBe('live')
    expect(listRows(await app.list('slow'))).toHaveLength(3)
    await app.store('sales', [{ id: 's10', market: 'DOT', amount: 1 }])
    expect(listRows(await app.list('slow'))).toHaveLength(4)
  })

  test('live views that a turn has no time for are caught up beside the writes, and are live again', async () => {
    const app = await createSeller(service())
    for (const name of ['early', 'totals'])
      await createView(app, { name, query: perMarket, refresh_mode: 'live' })
    const { schema, data } = await loadTenant(app)
    const { id = '', view } = data.catalog.viewsByName.get('totals') ?? {}
    const collection = data.catalog.byName.get('sales')?.id ?? ''
    let clock = 0
    const entry = {
      header: { type: 'record', collection, key: 'x' },
      body: '{}',
      height: 1000,
      sequence: 0,
      leafIndex: 5000,
      time: 0,
    }
    const now = () => {
      clock += viewAdvancesMs
      return clock
    }
    const stale: unknown[] = []
    const live = { now, onStale: (...told: unknown[]) => stale.push(told) }
    const at = { height: 1000, sequence: 0, leaf: 5001 }
    const { catalog } = data
    const entries = [entry]
    const decision = new WaitingViews(() => 0).decide({ catalog, entries, catchUp: true })
    const send = async () => ({ done: Promise.resolve() })
    const isLeft = await service().database.transaction((tx) =>
      applyWithLiveViews(tx, { schema, catalog, entries, send, at, decision, live }),
    )
    expect(isLeft).toBe(true)
    expect(stale).toEqual([])
    expect(await readState(app, 'early')).toMatchObject({ status: 'live' })
    expect(await readState(app, 'totals')).toMatchObject({ status: 'building' })
    expect(listRows(await app.list('totals'))).toEqual(grouped)
    await service().running.service.viewBuilder.whenDone(app.appId, id)
    expect(await readState(app, 'totals')).toMatchObject({ name: view?.name, status: 'live' })
    await app.store('sales', [{ id: 's3', deleted: true }])
    expect(listRows(await app.list('totals'))).toEqual([grouped[0]])
  })

  test('a view that is replaced is read until the new one is whole, and the new one is shown as its replacement', async () => {
    const app = await createSeller(service())
    await createView(app, { name: 'totals', query: perMarket })
    const { data } = await loadTenant(app)
    const held = await holdFills(service(), app)
    let creating: Promise<TestReply> | undefined
    try {
      const at = `"${app.appId}"::`
      creating = app.call('POST', '/views/sql', {
        sql: `CREATE OR REPLACE MATERIALIZED VIEW ${at}totals AS SELECT DISTINCT market FROM ${at}sales`,
      })
      await expect.poll(() => data.catalog.views.size).toBe(2)
      expect(listRows(await app.list('totals'))).toEqual(grouped)
    } finally {
      await held.release()
    }
    expect((await creating)?.body.view).toMatchObject({ status: 'lazy' })
    expect(listRows(await app.list('totals'))).toEqual([{ market: 'BTC' }, { market: 'ETH' }])
    const { body } = await app.call('GET', '/views')
    expect(body.views).toHaveLength(1)
    expect(body.views[0].replacement).toBeUndefined()
  })

  test('a view that is made while records are written has neither a gap nor an overlap', async () => {
    const app = await createSeller(service())
    let isOver = false
    let written = 0
    const writing = (async () => {
      while (!isOver) {
        const id = `w${written % 40}`
        const market = `m${written % 3}`
        await app.queue('sales', [
          { id, market, amount: written },
          { id: `n${written}`, market, amount: 1 },
        ])
        written += 1
      }
    })()
    await createView(app, { name: 'one', query: perMarket, refresh_mode: 'live' })
    await createView(app, { name: 'two', query: perMarket, refresh_mode: 'live' })
    isOver = true
    await writing
    await app.store('sales', [{ id: 'last', market: 'm0', amount: 0 }])
    const wanted = await app.list('sales', {
      group_by: 'market',
      aggregate: { total: { $sum: 'amount' }, trades: { $count: '*' } },
    })
    for (const name of ['one', 'two']) {
      expect(listRows(await app.list(name)), `${written} writes`).toEqual(listRows(wanted))
      expect((await app.list(name)).body.lag.blocks).toBe(0)
    }
  })

  test('a collection is deleted though a view of another application is being filled from it for long', async () => {
    const app = await createSeller(service())
    const { schema, data } = await loadTenant(app)
    const table = data.catalog.byName.get('sales')?.table ?? ''
    let isReading: () => void = () => undefined
    const reading = new Promise<void>((resolve) => {
      isReading = resolve
    })
    const filling = service().database.transaction(async (tx) => {
      await enterSession(tx, viewSession)
      await tx.query(sql`SELECT count(*) AS n FROM ${sql.id(schema, table)}`)
      isReading()
      await tx.query(sql`SELECT pg_sleep(60) AS slept`)
    })
    const ended = filling.catch((error: Error) => error.message)
    await reading
    expect((await app.call('DELETE', '/collections/sales')).status).toBe(200)
    expect(await ended).toMatch(/cancel/)
  })

  test('a view that has just taken in a write and that nobody reads waits for more writes, while others follow the tables, and later takes in all of them', async () => {
    const app = await createSeller(service())
    await app.create({ name: 'others' })
    const others = { source_collections: ['others'], query: { select: ['x'] } }
    await createView(app, { name: 'other', refresh_mode: 'live', ...others })
    await createView(app, { name: 'totals', query: perMarket, refresh_mode: 'live' })
    const { schema, data } = await loadTenant(app)
    const [other, totals] = ['other', 'totals'].map(
      (name) => data.catalog.viewsByName.get(name)?.id ?? '',
    )
    const positions = async () => {
      const rows = await service().database.query<{ view: string; leaf: bigint }>(
        sql`SELECT view, leaf FROM ${sql.id(schema, 'view_state')}`,
      )
      return Object.fromEntries(rows.map(({ view, leaf }) => [view, Number(leaf)]))
    }
    const before = await positions()
    const header = { type: 'record', collection: data.catalog.byName.get('sales')?.id ?? '' }
    const entry = { header, body: '{}', height: 90, sequence: 0, leafIndex: 500, time: 0 }
    const { catalog } = data
    const send = async () => ({ done: Promise.resolve() })
    const live = { now: () => 0, onStale: () => undefined }
    let ticks = 0
    const waiting = new WaitingViews(() => ticks)
    let at = { height: 1, sequence: 0, leaf: before[totals ?? ''] ?? 0 }
    const follow = async (entries: readonly AppliedEntry[], catchUp: boolean) => {
      const decision = waiting.decide({ catalog, entries, catchUp })
      await service().database.transaction((tx) =>
        applyWithLiveViews(tx, { schema, catalog, entries, send, at, decision, live }),
      )
      waiting.noteCommit(decision, catalog)
    }
    waiting.open(catalog)
    await follow([], true)
    ticks = viewPauseMs - 1
    at = { height: 90, sequence: 0, leaf: 501 }
    await follow([entry], false)
    expect(await positions()).toEqual({ ...before, [other ?? '']: 501 })
    expect(waiting.isBehind({ id: totals ?? '' })).toBe(true)
    await follow([], true)
    expect(await positions()).toEqual({ [other ?? '']: 501, [totals ?? '']: 501 })
    waiting.noteRead({ id: totals ?? '' })
    await follow([{ ...entry, height: 91, leafIndex: 501 }], false)
    expect(await positions()).toEqual({ [other ?? '']: 502, [totals ?? '']: 502 })
  })

  test('the next reader gets what live views had not taken in when the service was stopped', async () => {
    const app = await createSeller(service())
    await createView(app, { name: 'totals', query: perMarket, refresh_mode: 'live' })
    const { data } = await loadTenant(app)
    const view = data.catalog.viewsByName.get('totals') ?? { id: '' }
    let amount = 0
    // Even on the slowest day two writes are close together at some time.
    while (!data.waiting.isBehind(view) && amount < 1_000) {
      amount += 1
      await app.store('sales', [{ id: 's9', market: 'SOL', amount }])
    }
    await service().restart()
    const sol = { market: 'SOL', total: amount, trades: 1 }
    const listed = await app.list('totals')
    expect(listRows(listed)).toEqual([...grouped, sol])
    expect(listed.body.lag).toEqual({ blocks: 0, ms: 0 })
  })

  test('live and lazy views outlast a restart', async () => {
    const app = await createSeller(service())
    await createView(app, { name: 'live', query: perMarket, refresh_mode: 'live' })
    await createView(app, { name: 'lazy', query: perMarket })
    await service().restart()
    expect(listRows(await app.list('lazy'))).toEqual(grouped)
    await app.store('sales', [{ id: 's9', market: 'SOL', amount: 1 }])
    const sol = { market: 'SOL', total: 1, trades: 1 }
    expect(listRows(await app.list('live'))).toEqual([...grouped, sol])
    expect(listRows(await app.list('lazy'))).toEqual(grouped)
    await app.call('POST', '/views/lazy/refresh', {})
    expect(listRows(await app.list('lazy'))).toEqual([...grouped, sol])
  })
})

/** Holds the builder of an application's views, before it has done anything, until it is released. */
async function holdFills(service: TestService, app: Data) {
  const { data } = await service.running.service.tenants.load(app.appId)
  return holdTable(service, app, data.catalog.byName.get('sales')?.table)
}
