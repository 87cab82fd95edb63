import { printRow } from '../query/compile/compile-query.ts'
import type { SelectQuery } from '../query/tree/query.ts'
import { computeOnce } from './group-state.ts'
import { lowerGroups, type PlannedTables } from './lower-query.ts'

/**
 * Plans groups as the rows of a view. They are stored in the table of the groups itself, so that a changed group is
 * one changed row; groups that HAVING leaves out are stored as deleted.
 */
export function planGroupedRows(query: SelectQuery, planned: PlannedTables): undefined {
  const { grouped, where, columns } = lowerGroups(query, planned, false)
  const { bags, state, withValues } = grouped
  planned.groupStates.push(...bags, {
    ...state,
    suffix: '',
    keepsChange: false,
    shown: (rows, names, { print }) => {
      const own = names.map((name) => `r${query.id}.${name}`)
      const made = columns.map((each, at) => `${print(each)} AS c${at}`)
      const test = where.length === 0 ? 'TRUE' : where.map(print).join(' AND ')
      const list = [...own, `(${test}) IS NOT TRUE AS deleted`, ...made].join(', ')
      return `SELECT item.*, ${printRow(query)} AS body
FROM (SELECT ${list} FROM (${withValues(rows)}) AS r${query.id}) AS item ${computeOnce}`
    },
  })
}
