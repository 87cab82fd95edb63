import { limits } from '@tollbase/contract/limits'
import { compileList } from '@tollbase/server/query/compile-list'
import { printKeyExpression } from '@tollbase/server/query/index-key'
import { type ListRequest, parseList } from '@tollbase/server/query/list-query'
import { collections, schema } from './engine-data.ts'

/** The statement that our service makes of a list of items; the bare server sends the same one. */
export function compileListStatement(request: ListRequest) {
  const { text, values } = compileList(parseList(request), {
    schema,
    table: collections.items.table,
    caps: { rows: limits.rowsMax, bytes: limits.resultBytesMax },
    total: true,
    primaryColumn: 'id',
  })
  return { text, values }
}

const items = `${schema}.${collections.items.table}`
const places = `${schema}.${collections.places.table}`
const live = (record: string) => `${record}.superseded_by IS NULL AND NOT ${record}.deleted`
const key = (record: string, field: string) => `(${printKeyExpression([field], `${record}.data`)})`

/**
 * The places of a region, each with its items, by hand: it uses the expressions of the indexes, as no others are
 * served by them, and the database joins the texts of the records. $1 is the region as JSON, $2 the limit.
 */
export const joinByHand = `SELECT count(*)::int4 AS total, string_agg(
  left(place.body, -1) || ',"items":[' || coalesce(joined.records, '') || ']}', ',' ORDER BY place.leaf) AS records
FROM (SELECT place.leaf, place.data, place.body FROM ${places} AS place
  WHERE ${live('place')} AND ${key('place', 'region')} = $1::jsonb ORDER BY place.leaf LIMIT $2) AS place
CROSS JOIN LATERAL (SELECT string_agg(item.body, ',' ORDER BY item.leaf) AS records FROM ${items} AS item
  WHERE ${live('item')} AND ${key('item', 'city')} = ${key('place', 'city')}) AS joined`

/**
 * Groups all items by their warehouse, by hand. JSON null and a missing field are one group; a value that is no
 * number is left out of the sum; numbers are exact. `nested` puts the group's field inside its object, as /list
 * does.
 */
export function groupByHand(nested: boolean): string {
  const warehouse = nested
    ? `'stock', json_build_object('warehouse', warehouse)`
    : `'warehouse', warehouse`
  return `SELECT count(*)::int4 AS total, string_agg(
  json_build_object(${warehouse}, 'count', count, 'total', total)::text, ',' ORDER BY warehouse) AS records
FROM (SELECT nullif(item.data -> 'stock' -> 'warehouse', 'null') AS warehouse, count(*) AS count,
  coalesce(sum(CASE WHEN jsonb_typeof(item.data -> 'price') = 'number' THEN (item.data -> 'price')::numeric END), 0) AS total
  FROM ${items} AS item WHERE ${live('item')} GROUP BY 1) AS grouped`
}

/** Sums up all items by their warehouse as a developer would over a table of JSON, with plain casts. */
export const sumsByHand = `SELECT count(*)::int4 AS total, string_agg(
  json_build_object('warehouse', warehouse, 'count', count, 'total', total, 'mean', mean, 'least', least, 'most', most)::text,
  ',' ORDER BY warehouse) AS records
FROM (SELECT data -> 'stock' ->> 'warehouse' AS warehouse, count(*) AS count, sum((data ->> 'price')::numeric) AS total,
  avg((data ->> 'price')::numeric) AS mean, min((data ->> 'price')::numeric) AS least, max((data ->> 'price')::numeric) AS most
  FROM plain.items GROUP BY 1) AS grouped`
