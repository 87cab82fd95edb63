import type { Queryable } from '@tollbase/server/database/database'
import { sql } from '@tollbase/server/database/sql'
import { planning, setSettings } from '@tollbase/server/projections/live-views'
import { measureLiveBlocks } from './live-view-blocks.ts'
import { measureLiveStores } from './live-view-stores.ts'
import { measureLiveViews } from './live-views.ts'
import { openPlace, type Place } from './place.ts'
import type { Benchmark, Row, RunOptions } from './report.ts'
import { interleave } from './rounds.ts'
import {
  itemsPerPlace,
  type KeptView,
  openViewsPlace,
  runStatements,
  schema,
  type ViewsPlace,
} from './views-place.ts'

const fewTotal = 10_000
const blockSize = 100
/** The number of blocks of one round. */
const blocks = 100
const lazySize = 1_000

const makeGroupSelect = (collection: string, key = '"group"') =>
  `SELECT ${key} AS "group", count(*) AS n, sum(amount) AS total, avg(amount) AS mean FROM bench::${collection} GROUP BY ${key}`
/** The expression of ten groups, by the last digit of the others' names. */
const fewGroups = 'right("group", 1)'
const joined = `SELECT i.id, i.amount, p.amount AS rent FROM bench::items i JOIN bench::places p ON i.place = p.place`

/** The same groups by PostgreSQL's own view. */
const materialized = `SELECT data -> 'group' AS "group", count(*) AS n, sum((data ->> 'amount')::numeric) AS total,
 avg((data ->> 'amount')::numeric) AS mean FROM ${schema}.c_1 WHERE superseded_by IS NULL AND NOT deleted GROUP BY 1`

/** Compares keeping a view up to date with the writes themselves, and with computing the view anew. */
export const views: Benchmark = {
  name: 'views',
  run: async (options) => {
    const many = 'many'.includes(options.only) ? await measureLiveViews(options) : []
    const stores = 'stores'.includes(options.only) ? await measureLiveStores(options) : []
    if (['many', 'stores'].includes(options.only)) return [...stores, ...many]
    const place = await openPlace()
    try {
      const open = await openViewsPlace(place, { items: options.records, few: fewTotal })
      return [...(await measure({ server: place, place: open }, options)), ...stores, ...many]
    } finally {
      await place.close()
    }
  },
}

type Places = { readonly server: Place; readonly place: ViewsPlace }
type Bench = RunOptions & Places & { readonly groups: KeptView }

async function measure(places: Places, options: RunOptions): Promise<readonly Row[]> {
  const { place } = places
  const groups = await place.addView(makeGroupSelect('items'))
  const bench = { ...options, ...places, groups }
  const parts: readonly (readonly [string, (bench: Bench) => Promise<readonly Row[]>])[] = [
    ['beside', besideWritesOfAll],
    ['refresh', againstRefresh],
    ['growth', growth],
    ['lazy', lazy],
    ['join', joins],
  ]
  const rows: Row[] = []
  for (const [name, part] of parts.filter(([name]) => name.includes(options.only))) {
    process.stderr.write(`measuring ${name} ...\n`)
    rows.push(...(await part(bench)))
  }
  return rows
}

/** The cost of a view depends on the groups that a block touches: as many as records, or few. */
async function besideWritesOfAll(bench: Bench): Promise<readonly Row[]> {
  const each = {
    select: makeGroupSelect('items'),
    spread: 'each record of a block in another of 1,000 groups',
  }
  const few = {
    select: makeGroupSelect('items', fewGroups),
    spread: 'the records of a block in 10 groups',
  }
  return [await measureLiveBlocks(bench, each), await measureLiveBlocks(bench, few)]
}

async function againstRefresh({ place, groups, rounds, records }: Bench): Promise<readonly Row[]> {
  await place.transaction(async (tx) => {
    await tx.execute(
      sql.compiled(`CREATE MATERIALIZED VIEW ${schema}.groups AS ${materialized}`, []),
    )
  })
  const refresh = () =>
    perSecond(1, () =>
      place.transaction(async (tx) => {
        await tx.execute(sql.compiled(`REFRESH MATERIALIZED VIEW ${schema}.groups`, []))
      }),
    )
  const ours = async () => 1000 / (await advanceMs(place, groups, 'items'))
  await ours()
  return [
    {
      name: `a live GROUP BY view after a block of ${blockSize} new records, ${text(records)} records`,
      unit: 'times/s',
      target: 300,
      comparison: await interleave({ rounds, ours, peer: refresh }),
      note: 'REFRESH MATERIALIZED VIEW of the same query',
    },
  ]
}

async function growth({ place, groups, rounds, records }: Bench): Promise<readonly Row[]> {
  const few = await place.addView(makeGroupSelect('few'))
  const [large, small] = [
    () => advanceMs(place, groups, 'items'),
    () => advanceMs(place, few, 'few'),
  ]
  await large()
  await small()
  return [
    {
      name: `a live GROUP BY view after a block of ${blockSize} new records, among ${text(records)} records (ours) and ${text(fewTotal)} (peer)`,
      unit: 'ms',
      most: 1.3,
      comparison: await interleave({ rounds, ours: large, peer: small }),
      note: 'our view on both sides',
    },
  ]
}

async function lazy({ place, groups, rounds, records }: Bench): Promise<readonly Row[]> {
  const ours = async () => {
    for (let at = 0; at < lazySize; at += blockSize)
      await place.transaction((tx) => place.write(tx, { collection: 'items', count: blockSize }))
    return perSecond(1, () => place.transaction((tx) => bring(tx, place, groups)))
  }
  await ours()
  return [
    {
      name: `refresh of a lazy GROUP BY view after ${text(lazySize)} new records, ${text(records)} records`,
      unit: 'times/s',
      target: 50,
      comparison: await interleave({ rounds, ours, peer: () => recomputed(place, groups) }),
      note: 'the same query computed anew',
    },
  ]
}

async function joins({ place, rounds, records }: Bench): Promise<readonly Row[]> {
  const view = await place.addView(joined)
  const row = async (collection: 'items' | 'places', note: string): Promise<Row> => {
    const ours = async () => 1000 / (await advanceMs(place, view, collection))
    await ours()
    return {
      name: `a live view of a join after a block of ${blockSize} ${collection}, ${text(records)} items`,
      unit: 'times/s',
      target: 100,
      comparison: await interleave({ rounds, ours, peer: () => recomputed(place, view) }),
      note: `the same query computed anew; ${note}`,
    }
  }
  return [
    await row('items', 'new items, each with one place'),
    await row('places', `new versions of places, each with ${itemsPerPlace} items or more`),
  ]
}

/** Returns the mean time of a block in milliseconds. */
async function timedBlocks(
  place: ViewsPlace,
  collection: 'items' | 'few' | 'places',
  work: (tx: Queryable, written: Promise<void>) => Promise<void>,
): Promise<number> {
  const from = performance.now()
  for (let made = 0; made < blocks; made += 1) {
    await place.transaction((tx) => {
      return work(tx, place.write(tx, { collection, count: blockSize }))
    })
  }
  return (performance.now() - from) / blocks
}

/** Returns the mean time in milliseconds that the view alone takes for a block. */
async function advanceMs(
  place: ViewsPlace,
  view: KeptView,
  collection: 'items' | 'few' | 'places',
): Promise<number> {
  await catchUp(place, view)
  let ms = 0
  await timedBlocks(place, collection, async (tx, written) => {
    await written
    const from = performance.now()
    await advance(tx, place, view)
    ms += performance.now() - from
  })
  return ms / blocks
}

/** Advances a view as the applier advances live views: with plans that are made once. */
async function advance(tx: Queryable, place: ViewsPlace, view: KeptView): Promise<void> {
  await setSettings(tx, planning)
  await bring(tx, place, view)
}

async function bring(tx: Queryable, place: ViewsPlace, view: KeptView): Promise<void> {
  const [from, to] = [view.at, place.size()]
  await runStatements(
    tx,
    view.program.advance(
      view.place,
      () => from,
      () => to,
    ),
  )
  view.at = to
}

async function catchUp(place: ViewsPlace, view: KeptView): Promise<void> {
  if (view.at < place.size()) await place.transaction((tx) => bring(tx, place, view))
}

/** Measures how often in a second the rows can be computed anew; they stay in the database. */
function recomputed(place: ViewsPlace, { program, place: own }: KeptView): Promise<number> {
  const { text: rows, values } = program.recompute(own, () => place.size())
  return perSecond(1, () =>
    place.transaction(async (tx) => {
      await tx.query(
        sql.compiled(`SELECT count(octet_length(body)) FROM (${rows}) AS row_of`, values),
      )
    }),
  )
}

async function perSecond(times: number, work: () => Promise<void>): Promise<number> {
  const from = performance.now()
  for (let time = 0; time < times; time += 1) await work()
  return (times * 1000) / (performance.now() - from)
}

function text(count: number): string {
  return count.toLocaleString('en-US')
}
