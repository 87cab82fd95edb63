import { noLog } from '@tollbase/server/base/log'
import { realWorld } from '@tollbase/server/base/world'
import { ApplierLoop } from '@tollbase/server/chain/applier-loop'
import { BlockStore } from '@tollbase/server/chain/block-store'
import type { StoredView } from '@tollbase/server/model/definitions'
import { fillViews } from '@tollbase/server/operator/audit/audit-views'
import { DataProjection } from '@tollbase/server/projections/data-projection'
import { makeApplier } from '@tollbase/server/projections/make-applier'
import { parseViewSql } from '@tollbase/server/views/definition/parse-view-sql'
import { app, type Place } from './place.ts'
import type { Row, RunOptions } from './report.ts'
import { interleave } from './rounds.ts'
import { schema, type ViewsPlace } from './views-place.ts'

const blockSize = 100
/** The number of blocks of one round. */
const blocks = 100

type Bench = Pick<RunOptions, 'rounds' | 'records'> & {
  readonly server: Place
  readonly place: ViewsPlace
}

type Case = {
  /** The SELECT of the view. */
  readonly select: string
  readonly spread: string
}

/**
 * Measures blocks through the service's own applier loop, each applied before the next one comes: with a live view,
 * up to the moment in which the view has them too, and without one.
 */
export async function measureLiveBlocks(bench: Bench, { select, spread }: Case): Promise<Row> {
  const { server, place, rounds, records } = bench
  const view = await storedView(select)
  await place.define([{ kind: 'view', id: view.id, body: view }])
  await place.mark()
  const projections = () => [new DataProjection()]
  const chain = { app, schema, origin: schema, vkey: '', projections }
  await fillViews(server.database, [chain], () => undefined)
  const ours = () => blockMs(bench, true)
  const peer = () => blockMs(bench, false)
  await ours()
  await peer()
  const comparison = await interleave({ rounds, ours, peer })
  await place.define([{ kind: 'view', id: view.id, body: undefined }])
  return {
    name: `applying a block of ${blockSize} new records with a live GROUP BY view (ours) and without (peer), ${spread}, ${records.toLocaleString('en-US')} records`,
    unit: 'ms',
    most: 1.5,
    comparison,
    note: `one block after the other through the lane, ${blocks} a round, until all are in the tables and in the view; count, sum and mean of each group`,
  }
}

/** Returns the mean time of a block in milliseconds. */
async function blockMs({ server: { database }, place }: Bench, isViewed: boolean): Promise<number> {
  await place.mark()
  const world = realWorld
  const live = { now: world.now, onStale: failed }
  const nothing = () => undefined
  const calls = { onChange: nothing, onViews: nothing, onApplied: nothing }
  const listener = { ...calls, ticks: world.ticks, live }
  // Without a listener the projection does not update views.
  const data = new DataProjection(isViewed ? listener : undefined)
  await data.load(database, schema)
  const store = new BlockStore(database, schema)
  const watermark = await store.watermark()
  const applier = makeApplier(schema, [data])
  const options = { relaxed: true, database, store, world, log: noLog, chain: schema, watermark }
  const { apply } = applier
  const applierLoop = new ApplierLoop({ ...options, applier: isViewed ? applier : { apply } })
  await applierLoop.whenCaughtUp()
  const from = world.ticks()
  for (let made = 0; made < blocks; made += 1) {
    const block = place.next({ collection: 'items', count: blockSize })
    const { height, time } = block
    applierLoop.push({ height, time, bytes: 0, entries: blockSize, open: () => block })
    await applierLoop.whenApplied(height)
  }
  await applierLoop.whenCaughtUp()
  const ms = (world.ticks() - from) / blocks
  await applierLoop.stop(0)
  return ms
}

function failed(_view: StoredView, reason: string): never {
  throw new Error(reason)
}

let views = 0

async function storedView(select: string): Promise<StoredView> {
  views += 1
  const name = `live_${views}`
  const { definition } = await parseViewSql(
    `CREATE MATERIALIZED VIEW ${app}::${name} AS ${select}`,
    app,
  )
  const source = { model: `${app}::items`, app, id: 'items' }
  return {
    id: name,
    app,
    // Positions below this one belong to the views that are kept by hand.
    number: 1_000 + views,
    name,
    refresh_mode: 'live',
    query: definition,
    source_collections: ['items'],
    sources: [source],
    reads: [source],
    inner: {},
    types: {},
    positions: {},
    variables: null,
    description: null,
    access_policy: {},
    least_read: null,
    created_at: '',
  }
}
