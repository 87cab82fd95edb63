import { makeInvalidFault } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import { type DefinitionPlace, enterMember, type ReadPart } from './definition-place.ts'
import { joinSql, type MarkedSql } from './marked-sql.ts'
import type { Json } from './view-definition.ts'

/** Reads the order of rows: a list of expressions, or of {by, direction, nulls}. */
export function readOrder(
  value: unknown,
  place: DefinitionPlace,
): { readonly json: readonly Json[]; readonly sql: MarkedSql } {
  if (!Array.isArray(value)) throw makeInvalidFault(place.pointer, 'must be a list')
  const orders = value.map((item: unknown, index) => readOne(item, enterMember(place, index)))
  return {
    json: orders.map((each) => each.json),
    sql: joinSql(
      orders.map((each) => each.sql),
      ', ',
    ),
  }
}

const members = ['by', 'direction', 'nulls']

/** Returns true if the name of a field could be meant as one with a direction, `price desc` or `-price`. */
export function isDirected(by: Json): boolean {
  return typeof by === 'string' && /^[-+]|\s(asc|desc)(ending)?$/i.test(by)
}

function readOne(item: unknown, place: DefinitionPlace): ReadPart {
  if (typeof item === 'string' && isDirected(item))
    throw makeInvalidFault(
      place.pointer,
      'is the name of a field; an order is {"by": "price", "direction": "desc"}',
    )
  if (!isRecord(item) || !('by' in item)) return place.expression(item, place)
  const foreign = Object.keys(item).find((key) => !members.includes(key))
  if (foreign !== undefined)
    throw makeInvalidFault(enterMember(place, foreign).pointer, `is none of ${members.join(', ')}`)
  const { direction = 'asc', nulls } = item
  if (direction !== 'asc' && direction !== 'desc')
    throw makeInvalidFault(enterMember(place, 'direction').pointer, 'must be asc or desc')
  if (nulls !== undefined && nulls !== 'first' && nulls !== 'last')
    throw makeInvalidFault(enterMember(place, 'nulls').pointer, 'must be first or last')
  const { json, sql } = place.expression(item.by, enterMember(place, 'by'))
  const isPlain = direction === 'asc' && nulls === undefined && !isDirected(json)
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
