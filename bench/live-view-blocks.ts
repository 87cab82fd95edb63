import { realWorld } from '@tollbase/server/base/world'
import { Lane } from '@tollbase/server/chain/applier-loop'
import { BlockStore } from '@tollbase/server/chain/block-store'
import { noLog } from '@tollbase/server/chain/log'
import type { StoredView } from '@tollbase/server/model/definitions'
import { fillViews } from '@tollbase/server/operator/audit/audit-views'
import { DataProjection } from '@tollbase/server/projections/data-projection'
import { applierOf } from '@tollbase/server/projections/projection'
import { viewFromSql } from '@tollbase/server/views/definition/parse-view-sql'
import { app, type Place } from './place.ts'
import type { Row, RunOptions } from './report.ts'
import { interleave } from './rounds.ts'
import { schema, type ViewsPlace } from './views-place.ts'

const blockSize = 100
/** Blocks of one round. */
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
 * Blocks through the service's own lane, each applied before the next one comes: with a live view, up to the moment in
 * which it has them too, and as if there were none.
 */
export async function besideWrites(bench: Bench, { select, spread }: Case): Promise<Row> {
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

/** Milliseconds for a block, in the mean. */
async function blockMs({ server: { database }, place }: Bench, isViewed: boolean): Promise<number> {
  await place.mark()
  const world = realWorld
  const live = { now: world.now, onStale: failed }
  const nothing = () => undefined
  const listener = { onChange: nothing, onViews: nothing, ticks: world.ticks, live }
  // Without a listener it leaves views behind.
  const data = new DataProjection(isViewed ? listener : undefined)
  await data.load(database, schema)
  const store = new BlockStore(database, schema)
  const watermark = await store.watermark()
  const applier = applierOf(schema, [data])
  const options = { relaxed: true, database, store, world, log: noLog, chain: schema, watermark }
  const { apply } = applier
  const lane = new Lane({ ...options, applier: isViewed ? applier : { apply } })
  await lane.whenCaughtUp()
  const from = world.ticks()
  for (let made = 0; made < blocks; made += 1) {
    const block = place.next({ collection: 'items', count: blockSize })
    const { height, time } = block
    lane.push({ height, time, bytes: 0, entries: blockSize, open: () => block })
    await lane.whenApplied(height)
  }
  await lane.whenCaughtUp()
  const ms = (world.ticks() - from) / blocks
  await lane.stop(0)
  return ms
}

function failed(_view: StoredView, reason: string): never {
  throw new Error(reason)
}

let views = 0

async function storedView(select: string): Promise<StoredView> {
  views += 1
  const name = `live_${views}`
  const { definition } = await viewFromSql(
    `CREATE MATERIALIZED VIEW ${app}::${name} AS ${select}`,
    app,
  )
  const source = { model: `${app}::items`, app, id: 'items' }
  return {
    id: name,
    app,
    // The places of the views that are kept by hand are below.
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
