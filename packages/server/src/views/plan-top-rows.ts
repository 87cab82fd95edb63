import { printRow } from '../query/compile/compile-query.ts'
import { printOrderEnding, printSortKey, sqlTypes } from '../query/compile/print-expression.ts'
import type { SelectQuery } from '../query/tree/query.ts'
import { printWeightedRows } from './delta-relation.ts'
import { type GroupState, getStateTable, indexedBytesMax } from './group-state.ts'
import { lowerSelect, type PlannedTables } from './lower-query.ts'
import { NotIncremental } from './not-incremental.ts'
import { printRemovals, type RowChanges } from './view-rows.ts'

/** The most rows up to the end of a page that can be maintained. */
const topRowsMax = 10_000
/**
 * The most ordered columns in the index (PostgreSQL's limit is 32); rows that are equal in all of them are sorted.
 */
const orderedMax = 8

/**
 * Plans the first rows by an order: a table stores all rows by their texts and the values that they are sorted by,
 * with an index in that order, and the view becomes its first rows.
 */
export function planTopRows(query: SelectQuery, planned: PlannedTables): RowChanges {
  const { limit, offset, orderBy } = query
  if (limit === undefined) throw new NotIncremental('an OFFSET without a LIMIT')
  const most = limit + offset
  if (most > topRowsMax) throw new NotIncremental(`a LIMIT and OFFSET past ${topRowsMax} rows`)
  const width = query.columns.length
  const sorted = orderBy.map(({ expression }, at) => ({ name: `sort ${at}`, expression }))
  const relation = lowerSelect({ ...query, columns: [...query.columns, ...sorted] }, planned)
  const suffix = planned.nextSuffix()
  const terms = orderBy.map((order, at) => {
    const text = printSortKey(`k${at + 1}`, order.expression.type)
    return { text: `(${text})`, ending: printOrderEnding(order) }
  })
  const order = terms.map(({ text, ending }) => `${text}${ending}`).join(', ')
  const keys = orderBy.map((_, at) => `fresh.k${at + 1}`)
  const state: GroupState = {
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
    keepsChange: false,
    indexes: [
      `(${terms
        .slice(0, orderedMax)
        .map(({ text, ending }) => `${text}${ending}`)
        .join(', ')}) WHERE NOT long`,
      `(hash) WHERE long`,
    ],
    occurrences: (mode, writing) => {
      const list = orderBy.map((_, at) => `item.c${width + at} AS k${at + 1}`)
      const columns = [`${printRow(query)} AS k0`, ...list, 'item.w AS n']
      return [
        `SELECT ${columns.join(', ')} FROM (${printWeightedRows(relation, mode, writing)}) AS item`,
      ]
    },
  }
  planned.groupStates.push(state)
  return (_mode, writing) => {
    const table = getStateTable(state, writing.place)
    const first = (test: string) =>
      `(SELECT one.* FROM ${table} AS one WHERE ${test} ORDER BY ${order} LIMIT ${most})`
    return `SELECT k0 AS body, row_number() OVER () AS leaf, 1 AS w
FROM (SELECT k0 FROM (${first('NOT long')} UNION ALL ${first('long')}) AS first
 CROSS JOIN LATERAL generate_series(1, least(n, ${most}))
 ORDER BY ${order} LIMIT ${limit} OFFSET ${offset}) AS top
UNION ALL ${printRemovals(writing)}`
  }
}
