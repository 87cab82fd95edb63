import { limits } from '@tollbase/contract/limits'
import type { Node } from 'libpg-query'
import { makeConstant } from '../tree/make-expression.ts'
import type { Column, Expression } from '../tree/query.ts'
import { getColumnName, isStar } from './column-name.ts'
import { readExpression } from './read-expression.ts'
import {
  type MergedColumn,
  makeColumn,
  resolveStar,
  type Scope,
  type ScopeRelation,
} from './scope.ts'
import { listTexts, refuse, runAt, type SqlPlace } from './sql-reader.ts'

/** Columns with their names, and the relations whose records are given whole. */
export function readColumns(targets: readonly Node[], place: SqlPlace) {
  const columns: Column[] = []
  const records: number[] = []
  const names = new Set<string>()
  for (const node of targets) {
    if (!('ResTarget' in node)) continue
    const { val, name, location } = node.ResTarget
    if (val !== undefined && isStar(val)) {
      const parts = listTexts('ColumnRef' in val ? val.ColumnRef.fields : [])
      const relations = runAt(place, location, () => resolveStar(parts, place.scope))
      const merged = parts.length === 0 ? listMerged(relations, place.scope) : []
      for (const { name: called, expression } of merged) add({ name: called, expression }, location)
      for (const relation of relations) {
        if (relation.hasRecord) records.push(relation.id)
        relation.columns.forEach((column, index) => {
          if (merged.some((each) => each.name === column.name && each.covers.has(relation.id)))
            return
          add({ name: column.name, expression: makeColumn(relation, index, column) }, location)
        })
      }
      continue
    }
    const expression = readExpression(val, place)
    add(
      { name: name ?? getColumnName(val, columns.length), expression: toTyped(expression) },
      location,
    )
  }
  if (columns.length === 0 && records.length === 0) throw refuse(place, undefined, 'no columns')
  return { columns: Object.freeze(columns), records: Object.freeze(records) }

  function add(column: Column, location: number | undefined): void {
    if (names.has(column.name))
      throw refuse(place, location, `two columns called ${column.name}; name one with AS`)
    if (names.size >= limits.sqlColumnsMax)
      throw refuse(place, location, `more than ${limits.sqlColumnsMax} columns`)
    place.reader.spendColumn(location)
    names.add(column.name)
    columns.push(Object.freeze(column))
  }
}

/** Gives a NULL of no type the type text, as PostgreSQL does. */
export function toTyped(expression: Expression): Expression {
  return expression.type === 'null' ? makeConstant('text', null) : expression
}

/** Lists the columns that USING merges, but for those of records alone, which are merged as wholes anyway. */
function listMerged(relations: readonly ScopeRelation[], scope: Scope): readonly MergedColumn[] {
  return (scope.merged ?? []).filter(({ name, covers }) =>
    relations.some(
      ({ id, columns }) => covers.has(id) && columns.some((column) => column.name === name),
    ),
  )
}
