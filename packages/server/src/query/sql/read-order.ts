import type { Node, SortBy } from 'libpg-query'
import { makeExactKey } from '../tree/expression-key.ts'
import { castTo, coerceTo, findItems } from '../tree/make-expression.ts'
import type { Expression, Order } from '../tree/query.ts'
import { type ReadExpression, refuse, runAt, type SqlPlace } from './sql-reader.ts'

/** Reads the terms of an ORDER BY. */
export function readOrder(
  nodes: readonly Node[] | undefined,
  place: SqlPlace,
  read: ReadExpression,
): readonly Order[] {
  const sorts = (nodes ?? []).flatMap((node) => ('SortBy' in node ? [node.SortBy] : []))
  return Object.freeze(sorts.map((sort) => makeOrder(sort, read(sort.node, place), place)))
}

/** Makes an order from the parser's sort; `expression` is sorted by. */
export function makeOrder(sort: SortBy, expression: Expression, place: SqlPlace): Order {
  if (sort.sortby_dir === 'SORTBY_USING') throw refuse(place, sort.location, 'ORDER BY … USING')
  if (findItems(expression) !== undefined && !place.reader.isStored)
    throw refuse(place, sort.location, 'ORDER BY of an array; order by one of its elements')
  const nulls = { SORTBY_NULLS_FIRST: 'first', SORTBY_NULLS_LAST: 'last' } as const
  const given = sort.sortby_nulls
  return Object.freeze({
    expression,
    descending: sort.sortby_dir === 'SORTBY_DESC',
    nulls:
      given === 'SORTBY_NULLS_FIRST' || given === 'SORTBY_NULLS_LAST' ? nulls[given] : undefined,
  })
}

/** The aggregates that gather values; all others give the same in any order. */
const gathering: ReadonlySet<string> = new Set(['string_agg', 'array_agg', 'jsonb_agg', 'json_agg'])

type DistinctCall = {
  readonly name: string
  readonly args: readonly Expression[]
  readonly location: number | undefined
}

/** Values that are taken once come in the order of the values, as only what is taken once can be ordered by. */
export function sortDistinct(
  order: readonly Order[],
  { name, args, location }: DistinctCall,
  place: SqlPlace,
): readonly Order[] {
  const [value] = args
  return order.map((each) => {
    const gathered = runAt(place, location, () =>
      name === 'string_agg' ? castTo(each.expression, 'text') : coerceTo(each.expression, 'json'),
    )
    if (!gathering.has(name) || !value || makeExactKey(gathered) !== makeExactKey(value))
      throw refuse(
        place,
        location,
        'DISTINCT and ORDER BY in one aggregate, except one that gathers values in the order of these values',
      )
    return Object.freeze({ ...each, expression: value })
  })
}
