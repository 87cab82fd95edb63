import type { Node, SortBy } from 'libpg-query'
import { castTo, findItems } from '../tree/make-expression.ts'
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

type DistinctCall = {
  readonly name: string
  readonly args: readonly Expression[]
  readonly location: number | undefined
}

/** Texts that are taken once come in the order of the texts, as only what is taken once can be ordered by. */
export function sortDistinct(
  order: readonly Order[],
  { name, args, location }: DistinctCall,
  place: SqlPlace,
): readonly Order[] {
  const [text] = args
  return order.map((each) => {
    const printed = runAt(place, location, () => castTo(each.expression, 'text'))
    if (name !== 'string_agg' || !text || JSON.stringify(printed) !== JSON.stringify(text))
      throw refuse(
        place,
        location,
        'DISTINCT and ORDER BY in one aggregate, except string_agg in the order of its own texts',
      )
    return Object.freeze({ ...each, expression: text })
  })
}
