import { sql } from '@tollbase/server/database/sql'
import { getCity, type Item, itemsPerCity, makeItem } from './documents.ts'
import { app, call, createApplication, type Place } from './place.ts'
import { makeProgressBar } from './progress.ts'

/**
 * The data of the query benchmarks: items, places that have ten items each (joined by the name of their city), and
 * a small collection of the same items for comparison. The tables have these names because no others are made
 * before them.
 */
export const collections = {
  items: { name: 'items', table: 'c_1', fields: ['title', 'city', 'price'] },
  places: { name: 'places', table: 'c_2', fields: ['region'] },
  few: { name: 'few', table: 'c_3', fields: ['title'] },
} as const

/** The declared types of items, as far as a query is measured over declared fields. */
const itemSchema = {
  properties: {
    price: { type: 'number' },
    stock: { type: 'object', properties: { warehouse: { type: 'string' } } },
  },
}

export const schema = 'app_1'
export const fewTotal = 10_000
export const placesPerRegion = 100

const batchSize = 2000
const senders = 3
const indexPollMs = 200

/** Returns the title of an item; titles are unique, as each ends with the item's number. */
export function getTitle(at: number, total: number): string {
  return makeItem(at, total).title
}

export function countRegions(total: number): number {
  return Math.max(1, Math.floor(total / itemsPerCity / placesPerRegion))
}

function placeRecord(at: number, total: number): object {
  const { tags, description } = makeItem(at, total)
  return {
    id: `place-${at}`,
    city: getCity(at, total),
    region: `region-${at % countRegions(total)}`,
    tags,
    note: description.slice(0, 120),
  }
}

/** Stores all records by the public interface, then has the indexes built, as a bulk load is best done. */
export async function fillCollections(port: number, total: number): Promise<void> {
  const key = await createApplication(port)
  const to = (name: string) => ({ port, key, name })
  for (const { name } of Object.values(collections))
    await call(port, `/api/apps/${app}/collections`, {
      key,
      body: {
        name,
        access_policy: 'public',
        ...(name === collections.items.name && { schema_definition: itemSchema }),
      },
    })
  const places = Math.floor(total / itemsPerCity)
  await storeAll(to(collections.items.name), total, (at) => makeItem(at, total))
  await storeAll(to(collections.places.name), places, (at) => placeRecord(at, total))
  await storeAll(to(collections.few.name), fewTotal, (at): Item => makeItem(at, fewTotal))
  for (const { name, fields } of Object.values(collections)) await buildIndexes(to(name), fields)
}

type Target = { readonly port: number; readonly key: string; readonly name: string }

async function storeAll(
  { port, key, name }: Target,
  total: number,
  makeRecord: (at: number) => object,
): Promise<void> {
  const show = makeProgressBar(`storing ${name}`, total)
  let next = 0
  let done = 0
  const send = async () => {
    for (let from = next; from < total; from = next) {
      const size = Math.min(batchSize, total - from)
      next = from + size
      const data = Array.from({ length: size }, (_, at) => makeRecord(from + at))
      await call(port, '/store?wait=true', { key, body: { root: `${app}::${name}`, data } })
      done += size
      show(done)
    }
  }
  await Promise.all(Array.from({ length: senders }, send))
}

async function buildIndexes({ port, key, name }: Target, fields: readonly string[]): Promise<void> {
  const path = `/api/apps/${app}/collections/${name}/indexes`
  for (const field_name of fields) await call(port, path, { key, body: { field_name } })
  for (;;) {
    const reply = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { 'x-app-key': key } })
    const { indexes } = (await reply.json()) as { indexes: { field: string; status: string }[] }
    const failed = indexes.find(({ status }) => status === 'failed')
    if (failed !== undefined) throw new Error(`the index of ${name}.${failed.field} failed`)
    if (indexes.every(({ status }) => status === 'active')) return
    await new Promise((resolve) => setTimeout(resolve, indexPollMs))
  }
}

/** Copies the items into a table as a developer would make one for JSON: a key, the record, and plain indexes. */
export async function fillPlainTable({ database }: Place): Promise<void> {
  await database.execute(sql`CREATE SCHEMA plain`)
  await database.execute(sql`CREATE TABLE plain.items (id text PRIMARY KEY, data jsonb NOT NULL)`)
  await database.transaction(
    async (tx) => {
      await tx.execute(sql`
        INSERT INTO plain.items
        SELECT data ->> 'id', data FROM ${sql.id(schema, collections.items.table)} ORDER BY leaf`)
      await tx.execute(
        sql`CREATE INDEX items_warehouse ON plain.items ((data -> 'stock' ->> 'warehouse'))`,
      )
      await tx.execute(sql`CREATE INDEX items_price ON plain.items (((data ->> 'price')::numeric))`)
    },
    { statementTimeoutMs: 0 },
  )
}

/**
 * Copies the items into a table of columns with the same index, which is how the packaged peers are at their best.
 */
export async function fillPeersTable({ database }: Place): Promise<void> {
  process.stderr.write('copying the items into a table for the packaged peers ...\n')
  await database.execute(sql`CREATE SCHEMA peers`)
  await database.execute(sql`CREATE SCHEMA directus`)
  await database.execute(sql`
    CREATE TABLE peers.items (id text PRIMARY KEY, city text, price float8, title text, tags jsonb, stock jsonb,
      active bool, description text)`)
  await database.transaction(
    async (tx) => {
      await tx.execute(sql`
        INSERT INTO peers.items
        SELECT data ->> 'id', data ->> 'city', (data -> 'price')::float8, data ->> 'title', data -> 'tags',
          data -> 'stock', (data -> 'active')::bool, data ->> 'description'
        FROM ${sql.id(schema, collections.items.table)} ORDER BY leaf`)
      await tx.execute(sql`CREATE INDEX items_title ON peers.items (title)`)
    },
    { statementTimeoutMs: 0 },
  )
}
