import { beforeEach, describe, expect, test } from 'vitest'
import type { AppliedEntry } from '../chain/applier.ts'
import { type Catalog, emptyCatalog } from '../model/catalog.ts'
import type { StoredView } from '../model/definitions.ts'
import { type Decision, viewPauseMs, viewReadMs, WaitingViews } from './waiting-views.ts'

describe('live views', () => {
  let now: number
  let views: WaitingViews
  beforeEach(() => {
    now = 1_000
    views = new WaitingViews(() => now)
  })
  const decide = (written: readonly string[], catchUp = false, catalog = both) =>
    views.decide({ catalog, entries: written.map(makeEntry), catchUp })
  const follow = (...of: Parameters<typeof decide>): Decision => {
    const decision = decide(...of)
    views.noteCommit(decision, of[2] ?? both)
    return decision
  }

  test('live views are brought on with the first write after a pause, and wait with writes that come soon after', () => {
    expect(listIds(follow(['sales']).due)).toEqual(['totals'])
    expect(views.catchUpAt()).toBeUndefined()
    now += viewPauseMs - 1
    const soon = follow(['sales'])
    expect([listIds(soon.due), listIds(soon.unchanged), [...soon.waiting]]).toEqual([
      [],
      ['places'],
      ['totals'],
    ])
    expect(views.catchUpAt()).toBe(1_000 + viewPauseMs)
    // Nothing more is written to its source, and yet it is not where the tables are.
    expect(listIds(decide(['shops']).unchanged)).toEqual([])
    now += 1
    expect(listIds(follow([]).due)).toEqual(['totals'])
    expect(views.isBehind({ id: 'totals' })).toBe(false)
  })

  test('live views that somebody reads take in each write, without making others wait longer', () => {
    follow(['sales', 'shops'])
    views.noteRead({ id: 'totals' })
    now += 10
    const decision = follow(['sales', 'shops'])
    expect(listIds(decision.due)).toEqual(['totals'])
    expect(views.catchUpAt()).toBe(1_000 + viewPauseMs)
    now += viewReadMs
    follow(['sales', 'shops'])
    now += 10
    expect(listIds(follow(['sales', 'shops']).due)).toEqual([])
  })

  test('live views are behind from the moment in which a transaction leaves them, as readers may see it before it is told', () => {
    follow(['sales'])
    decide(['sales'])
    expect(views.isBehind({ id: 'totals' })).toBe(true)
    expect(views.catchUpAt()).toBeDefined()
    // It failed, and somebody has begun to read.
    views.noteRead({ id: 'totals' })
    expect(listIds(follow(['sales']).due)).toEqual(['totals'])
    expect(views.isBehind({ id: 'totals' })).toBe(false)
  })

  test('live views are all behind when a chain is opened, and forgotten when they are gone', () => {
    views.open(both)
    expect(views.catchUpAt()).toBe(Number.NEGATIVE_INFINITY)
    expect(listIds(decide([]).due)).toEqual(['totals', 'places'])
    follow([], true, emptyCatalog)
    expect(views.catchUpAt()).toBeUndefined()
  })
})

function listIds(views: Decision['due']): string[] {
  return views.map(({ view }) => view.id)
}

function makeEntry(collection: string): AppliedEntry {
  const header = { type: 'record', collection }
  return { header, body: '', height: 1, sequence: 0, leafIndex: 0, time: 0 }
}

function makeView(id: string, source: string): StoredView {
  const reads = [{ model: `app::${source}`, app: 'app', id: source }]
  return {
    ...{ id, app: 'app', number: 1, name: id, refresh_mode: 'live', query: {}, reads },
    ...{ source_collections: [source], sources: reads, inner: {}, types: {}, positions: {} },
    ...{ variables: null, description: null, access_policy: {}, least_read: null, created_at: '' },
  }
}

const both: Catalog = {
  ...emptyCatalog,
  views: new Map(
    [makeView('totals', 'sales'), makeView('places', 'shops')].map((view) => [
      view.id,
      { view, plan: undefined },
    ]),
  ),
}
