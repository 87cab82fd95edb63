import { limits } from '@tollbase/contract/limits'
import type { Node, SelectStmt } from 'libpg-query'
import { TypeProblem } from '../tree/make-expression.ts'

/**
 * Writes VALUES as SELECTs without FROM that are put together by UNION ALL, which means the same; undefined for any
 * other statement. The reader and the JSON of views both go by it.
 */
export function expandValues(select: SelectStmt): SelectStmt | undefined {
  const { valuesLists, ...others } = select
  if (valuesLists === undefined) return undefined
  if (valuesLists.length > limits.sqlValuesRowsMax)
    throw new TypeProblem(`VALUES of more than ${limits.sqlValuesRowsMax} rows`)
  const rows = valuesLists.map((node) => ('List' in node ? (node.List.items ?? []) : []))
  const [first] = rows
  if (rows.some((row) => row.length !== first?.length))
    throw new TypeProblem('VALUES whose rows are not of one length')
  if (rows.flat().some((node) => 'SetToDefault' in node))
    throw new TypeProblem('DEFAULT in VALUES, which is not possible')
  return { ...others, ...unite(rows.map(toSelect)) }
}

function toSelect(row: readonly Node[]): SelectStmt {
  const targetList = row.map((val, at): Node => ({ ResTarget: { name: `column${at + 1}`, val } }))
  return { targetList, op: 'SETOP_NONE', limitOption: 'LIMIT_OPTION_DEFAULT' }
}

/** Halves the rows, so that no nesting becomes deep. */
function unite(rows: readonly SelectStmt[]): SelectStmt {
  const [only = {}] = rows
  if (rows.length <= 1) return only
  const half = Math.ceil(rows.length / 2)
  return {
    op: 'SETOP_UNION',
    all: true,
    larg: unite(rows.slice(0, half)),
    rarg: unite(rows.slice(half)),
    limitOption: 'LIMIT_OPTION_DEFAULT',
  }
}
