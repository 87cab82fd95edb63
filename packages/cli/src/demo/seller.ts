import { formatDollars } from '@tollbase/server/base/format-usd'
import { makeProgressLine } from '../progress.ts'
import { attribution, loadCities, sumByCountry } from './data-set.ts'
import type { Market } from './market.ts'
import { formatCount, formatSeconds } from './screen.ts'

/** The seller's possessions: an application, its key, and the key that its chain signs with. */
export type Shop = {
  readonly app: string
  readonly key: string
  readonly vkey: string
  readonly rows: number
}

/** Prices of one collection, atomic units. */
export type Tariff = { readonly perAccess: bigint; readonly perRow: bigint; readonly perKb: bigint }

export const tariffs = {
  cities: { perAccess: 1_000n, perRow: 50n, perKb: 200n },
  countries: { perAccess: 0n, perRow: 0n, perKb: 2_000n },
} as const satisfies Record<string, Tariff>

const app = 'geodata'
const batchRows = 1_000
/** Two, so that one batch is checked while another is being committed. */
const batchesAtOnce = 2

/** Step 2: an application, two collections with indexes, and all rows of the data set. */
export async function stockShop(market: Market, rows: number | undefined): Promise<Shop> {
  const { screen, api, running } = market
  screen.step('The seller stores a public data set')
  screen.note(attribution)
  const cities = loadCities(rows)
  const countries = sumByCountry(cities)
  const { app_key: key } = await api.call(
    'createApplication',
    { body: { name: 'Places of the world', app_id: app } },
    running.operatorKey.key,
  )
  await createCollections(market, key)
  screen.say(
    `application ${app}: collections cities, countries; indexes on name, country, population`,
  )
  const startedAt = Date.now()
  await storeAll(market, key, { collection: 'cities', records: cities })
  const rate = Math.round(cities.length / ((Date.now() - startedAt) / 1000))
  const took = formatSeconds(startedAt)
  await storeAll(market, key, { collection: 'countries', records: countries })
  const head = await api.call('getCheckpoint', { params: { app } }, key)
  const stored = await api.call(
    'getCollectionStats',
    { params: { app, collection: 'cities' } },
    key,
  )
  screen.check(
    stored.document_count === cities.length,
    `${formatCount(cities.length)} records stored in ${took}: ${formatCount(rate)} a second, in batches of ${formatCount(batchRows)}`,
  )
  screen.facts([
    ['block height', formatCount(head.height)],
    ['log entries', formatCount(head.size)],
    ['root', head.root],
    ['checkpoint', `signed by ${head.key}`],
  ])
  return { app, key, vkey: head.key, rows: cities.length }
}

/** Step 3: prices, and only then is the shop open. */
export async function setShopPrices(market: Market, shop: Shop): Promise<void> {
  const { screen, api } = market
  screen.step('The seller sets prices')
  const rules = Object.entries(tariffs).flatMap(([collection, tariff]) =>
    makePriceRules(collection, tariff),
  )
  const { split } = await api.call('setPricing', { params: { app }, body: { rules } }, shop.key)
  const preview = { rows: 3, fields: ['name', 'country', 'population'] }
  for (const [collection, access_policy] of [
    ['cities', { read: 'public', preview }],
    ['countries', { read: 'public' }],
  ] as const) {
    const params = { app, collection }
    await api.call('updateCollection', { params, body: { access_policy } }, shop.key)
  }
  screen.table(
    ['collection', 'per access', 'per row', 'per KB'],
    Object.entries(tariffs).map(([name, { perAccess, perRow, perKb }]) => [
      name,
      ...[perAccess, perRow, perKb].map((amount) => (amount === 0n ? '' : formatDollars(amount))),
    ]),
  )
  screen.say(
    `of each sale ${split.app_owner_percentage} % are the seller's, ${split.platform_percentage} % the platform's`,
  )
}

/** Step 4: what anyone may see for nothing. */
export async function showPreview(market: Market): Promise<void> {
  const { screen, api } = market
  screen.step('A stranger looks at the free sample')
  const preview = await api.call('previewCollection', { params: { app, collection: 'cities' } })
  const columns = ['name', 'country', 'population']
  screen.table(
    columns,
    preview.sample.map((record) => listValues(record, columns)),
  )
  screen.say(`size: ${preview.row_count_band} records (a band, not a count)`)
  screen.check(preview.sample.length === 3, 'three rows of three fields without a key or a payment')
}

export function listValues(record: unknown, columns: readonly string[]): unknown[] {
  const fields: Readonly<Record<string, unknown>> = Object(record)
  return columns.map((name) => fields[name])
}

async function createCollections(market: Market, key: string): Promise<void> {
  const { api } = market
  for (const [name, primary_column] of [
    ['cities', 'id'],
    ['countries', 'country'],
  ] as const) {
    // A collection stays private until it has a price: without one it would be free for everybody.
    const access_policy = { read: 'private' }
    await api.call(
      'createCollection',
      { params: { app }, body: { name, primary_column, access_policy } },
      key,
    )
  }
  for (const field_name of ['name', 'country', 'population']) {
    const params = { app, collection: 'cities' }
    await api.call('createCollectionIndex', { params, body: { field_name } }, key)
  }
}

async function storeAll(
  market: Market,
  key: string,
  goods: { collection: string; records: readonly object[] },
): Promise<void> {
  const { collection, records } = goods
  const bar = makeProgressLine()
  const startedAt = Date.now()
  let next = 0
  let done = 0
  const storeSome = async () => {
    while (next < records.length) {
      const data = records.slice(next, next + batchRows)
      next += data.length
      // The last batches wait until the tables show them, and with them everything before.
      const query = next >= records.length ? { wait: true } : {}
      await market.api.call(
        'storeRecords',
        { query, body: { root: `${app}::${collection}`, data } },
        key,
      )
      done += data.length
      const rate = Math.round(done / ((Date.now() - startedAt) / 1000))
      bar.update(
        `${formatCount(done)} of ${formatCount(records.length)} records, ${formatCount(rate)} a second`,
        done / records.length,
      )
    }
  }
  try {
    await Promise.all(Array.from({ length: batchesAtOnce }, storeSome))
  } finally {
    bar.end()
  }
}

function makePriceRules(collection: string, tariff: Tariff) {
  const rule = (model: 'per_access' | 'per_row' | 'per_kb', amount: bigint) => ({
    target: { collection },
    operation: 'read' as const,
    model,
    amount: String(amount),
  })
  return [
    rule('per_access', tariff.perAccess),
    rule('per_row', tariff.perRow),
    rule('per_kb', tariff.perKb),
  ].filter(({ amount }) => amount !== '0')
}
