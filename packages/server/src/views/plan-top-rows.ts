import { rowText } from '../query/compile/compile-query.ts'
import { orderEnding, orderText, sqlTypes } from '../query/compile/print-expression.ts'
import type { SelectQuery } from '../query/tree/query.ts'
import { weighted } from './delta-relation.ts'
import { indexedBytesMax, type Tally, tableOf } from './group-state.ts'
import { type Kept, lowerSelect } from './lower-query.ts'
import { Obstacle } from './not-incremental.ts'
import { type Lines, rowsAsGone } from './view-rows.ts'

/** Rows up to the end of a page that is kept. */
const topRowsMax = 10_000
/** An index has at most 32 columns; rows that are equal in so many are sorted. */
const orderedMax = 8

/**
 * The first rows by an order, as lines: all rows are kept in a table by their texts and what they are sorted by, with
 * an index in that order, and the view becomes the first of them.
 */
export function topRows(query: SelectQuery, kept: Kept): Lines {
  const { limit, offset, orderBy } = query
  if (limit === undefined) throw new Obstacle('an OFFSET without a LIMIT')
  const most = limit + offset
  if (most > topRowsMax) throw new Obstacle(`a LIMIT and OFFSET past ${topRowsMax} rows`)
  const width = query.columns.length
  const sorted = orderBy.map(({ expression }, at) => ({ name: `sort ${at}`, expression }))
  const flow = lowerSelect({ ...query, columns: [...query.columns, ...sorted] }, kept)
  const suffix = kept.nextSuffix()
  const terms = orderBy.map((order, at) => {
    const text = orderText(`k${at + 1}`, order.expression.type)
    return { text: `(${text})`, ending: orderEnding(order) }
  })
  const order = terms.map(({ text, ending }) => `${text}${ending}`).join(', ')
  const keys = orderBy.map((_, at) => `fresh.k${at + 1}`)
  const tally: Tally = {
    suffix,
    keys: ['text', ...orderBy.map(({ expression }) => sqlTypes[expression.type])],
    sums: [],
    more: [
      {
        name: 'long',
        type: 'bool',
        of: () => `octet_length(concat(${keys.join(', ')})) > ${indexedBytesMax}`,
        isFixed: true,
      },
    ],
    always: false,
    handsOn: false,
    indexes: [
      `(${terms
        .slice(0, orderedMax)
        .map(({ text, ending }) => `${text}${ending}`)
        .join(', ')}) WHERE NOT long`,
      `(hash) WHERE long`,
    ],
    occurrences: (mode, writing) => {
      const list = orderBy.map((_, at) => `item.c${width + at} AS k${at + 1}`)
      const columns = [`${rowText(query)} AS k0`, ...list, 'item.w AS n']
      return [`SELECT ${columns.join(', ')} FROM (${weighted(flow, mode, writing)}) AS item`]
    },
  }
  kept.tallies.push(tally)
  return (_mode, writing) => {
    const table = tableOf(tally, writing.place)
    const first = (test: string) =>
      `(SELECT one.* FROM ${table} AS one WHERE ${test} ORDER BY ${order} LIMIT ${most})`
    return `SELECT k0 AS body, row_number() OVER () AS leaf, 1 AS w
FROM (SELECT k0 FROM (${first('NOT long')} UNION ALL ${first('long')}) AS first
 CROSS JOIN LATERAL generate_series(1, least(n, ${most}))
 ORDER BY ${order} LIMIT ${limit} OFFSET ${offset}) AS top
UNION ALL ${rowsAsGone(writing)}`
  }
}
