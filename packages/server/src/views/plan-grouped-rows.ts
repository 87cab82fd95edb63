import { rowText } from '../query/compile/compile-query.ts'
import type { SelectQuery } from '../query/tree/query.ts'
import { once } from './group-state.ts'
import { type Kept, lowerGroups } from './lower-query.ts'

/**
 * Groups as the rows of a view, which are kept in the table of the groups itself, so that a group that changes is one
 * row that changes; those that HAVING leaves out are there as deleted.
 */
export function groupedRows(query: SelectQuery, kept: Kept): undefined {
  const { grouped, where, columns } = lowerGroups(query, kept, false)
  const { bags, tally, withValues } = grouped
  kept.tallies.push(...bags, {
    ...tally,
    suffix: '',
    handsOn: false,
    shown: (rows, names, { print }) => {
      const own = names.map((name) => `r${query.id}.${name}`)
      const made = columns.map((each, at) => `${print(each)} AS c${at}`)
      const test = where.length === 0 ? 'TRUE' : where.map(print).join(' AND ')
      const list = [...own, `(${test}) IS NOT TRUE AS deleted`, ...made].join(', ')
      return `SELECT item.*, ${rowText(query)} AS body
FROM (SELECT ${list} FROM (${withValues(rows)}) AS r${query.id}) AS item ${once}`
    },
  })
}
