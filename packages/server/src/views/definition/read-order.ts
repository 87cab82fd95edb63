import { invalid } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import { inside, type Place, type Read } from './definition-place.ts'
import { joined, type MarkedSql } from './marked-sql.ts'
import type { Json } from './view-definition.ts'

/** What rows are ordered by: a list of expressions, or of {by, direction, nulls}. */
export function readOrder(
  value: unknown,
  place: Place,
): { readonly json: readonly Json[]; readonly sql: MarkedSql } {
  if (!Array.isArray(value)) throw invalid(place.pointer, 'must be a list')
  const orders = value.map((item: unknown, index) => readOne(item, inside(place, index)))
  return {
    json: orders.map((each) => each.json),
    sql: joined(
      orders.map((each) => each.sql),
      ', ',
    ),
  }
}

const members = ['by', 'direction', 'nulls']

/** Whether the name of a field could be meant as one with a direction, `price desc` or `-price`. */
export function looksDirected(by: Json): boolean {
  return typeof by === 'string' && /^[-+]|\s(asc|desc)(ending)?$/i.test(by)
}

function readOne(item: unknown, place: Place): Read {
  if (typeof item === 'string' && looksDirected(item))
    throw invalid(
      place.pointer,
      'is the name of a field; an order is {"by": "price", "direction": "desc"}',
    )
  if (!isRecord(item) || !('by' in item)) return place.expression(item, place)
  const foreign = Object.keys(item).find((key) => !members.includes(key))
  if (foreign !== undefined)
    throw invalid(inside(place, foreign).pointer, `is none of ${members.join(', ')}`)
  const { direction = 'asc', nulls } = item
  if (direction !== 'asc' && direction !== 'desc')
    throw invalid(inside(place, 'direction').pointer, 'must be asc or desc')
  if (nulls !== undefined && nulls !== 'first' && nulls !== 'last')
    throw invalid(inside(place, 'nulls').pointer, 'must be first or last')
  const { json, sql } = place.expression(item.by, inside(place, 'by'))
  const isPlain = direction === 'asc' && nulls === undefined && !looksDirected(json)
  return {
    json: isPlain
      ? json
      : {
          by: json,
          ...(direction === 'desc' ? { direction } : {}),
          ...(nulls === undefined ? {} : { nulls }),
        },
    sql: [
      sql,
      direction === 'desc' ? ' DESC' : '',
      nulls === undefined ? '' : ` NULLS ${nulls.toUpperCase()}`,
    ],
  }
}
