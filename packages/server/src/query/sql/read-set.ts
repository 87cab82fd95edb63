import { limits } from '@tollbase/contract/limits'
import type { Node, SelectStmt } from 'libpg-query'
import { parseFieldPath } from '../field-path.ts'
import { countSteps } from '../steps.ts'
import { makeExactKey } from '../tree/expression-key.ts'
import { findCommonType, findSideType, isNullConstant } from '../tree/make-expression.ts'
import {
  type Expression,
  getOutput,
  type Order,
  type OutputColumn,
  type Query,
} from '../tree/query.ts'
import { renameTwins } from './column-name.ts'
import { findLocation, readExpression } from './read-expression.ts'
import { makeOrder } from './read-order.ts'
import { readLiteralsBeside } from './read-set-literals.ts'
import {
  enterChain,
  listTexts,
  readWholeNumber,
  refuse,
  runAt,
  type SqlPlace,
} from './sql-reader.ts'

/** Reads a UNION, an INTERSECT or an EXCEPT of two queries. */
export function readSet(select: SelectStmt, place: SqlPlace): Query {
  const isChain = select.larg?.op !== undefined && select.larg.op !== 'SETOP_NONE'
  const { links: _, ...own } = place
  const { readSelect } = place.reader
  const first = readSelect(select.larg ?? {}, isChain ? enterChain(place) : own)
  const second = readSelect(renameTwins(select.rarg ?? {}, limits.sqlColumnsMax), own)
  const [left, right] = runAt(place, undefined, () => [
    readLiteralsBeside(first, second),
    readLiteralsBeside(second, first),
  ])
  const operator = { SETOP_UNION: 'UNION', SETOP_INTERSECT: 'INTERSECT', SETOP_EXCEPT: 'EXCEPT' }
  const word = operator[select.op as keyof typeof operator]
  const [a, b] = [getOutput(left), getOutput(right)]
  const [record, ...more] = [a, b].map(({ records }) => records.length)
  if (more.some((count) => count !== record) || (record ?? 0) > 1)
    throw refuse(
      place,
      undefined,
      `${word} of whole records (*) with columns, or with those of several collections; name the columns`,
    )
  if (a.columns.length !== b.columns.length)
    throw refuse(
      place,
      undefined,
      `${word} of ${a.columns.length} with ${b.columns.length} columns`,
    )
  const columns = a.columns.map((column, index): OutputColumn => {
    countSteps(8)
    const types = [findSideType(left, index), findSideType(right, index)]
    const type = runAt(place, undefined, () => findCommonType(types))
    if (type === 'interval' && types.some((each) => each !== type && each !== 'null'))
      throw refuse(place, undefined, `${word} of intervals with other values`)
    const isWhole = column.isWhole === true && b.columns[index]?.isWhole === true
    const held = isSameHeld(column, b.columns[index]) ? column.held : undefined
    return { ...column, type, isWhole, held }
  })
  const id = place.reader.nextId()
  const isOfRecords = record === 1
  const orderBy = readOutputOrder(select, columns, { id, place, isOfRecords })
  return {
    kind: 'set',
    with: [],
    operator: word === 'UNION' || word === 'INTERSECT' ? word : 'EXCEPT',
    all: select.all ?? false,
    left,
    right,
    columns,
    ...(isOfRecords && { isOfRecords }),
    id,
    orderBy,
    ...readPage(select, place),
  }
}

function isSameHeld(left: OutputColumn, right: OutputColumn | undefined): boolean {
  return JSON.stringify(left.held) === JSON.stringify(right?.held)
}

/** Reads LIMIT and OFFSET. */
export function readPage(select: SelectStmt, place: SqlPlace) {
  const count = (node: Node | undefined, clause: string, most: number) => {
    if (node === undefined) return undefined
    const expression = readExpression(node, place)
    if (isNullConstant(expression)) return undefined
    if (expression.kind === 'parameter' && expression.type === 'number') return expression.parameter
    const number = readWholeNumber(expression, most)
    if (number === undefined)
      throw refuse(place, findLocation(node), `${clause} that is no whole number up to ${most}`)
    return number
  }
  const limit = count(select.limitCount, 'a LIMIT', limits.rowsMax)
  const offset = count(select.limitOffset, 'an OFFSET', limits.offsetMax)
  return {
    ...(typeof limit === 'object' ? { limit: undefined, limitBy: limit } : { limit }),
    ...(typeof offset === 'object' ? { offset: 0, offsetBy: offset } : { offset: offset ?? 0 }),
  }
}

/**
 * Reads the ORDER BY of a DISTINCT or a set operation: only output columns, by name or place, and fields of its
 * records.
 */
export function readOutputOrder(
  select: SelectStmt,
  columns: readonly (OutputColumn & { readonly expression?: Expression })[],
  { id, place, read, isOfRecords = false }: OutputOrder,
): readonly Order[] {
  const sorts = (select.sortClause ?? []).flatMap((node) => ('SortBy' in node ? [node.SortBy] : []))
  return Object.freeze(
    sorts.map((sort) => {
      const { node } = sort
      const named = node === undefined ? undefined : findOutput(node, columns, place)
      const wanted = node === undefined || named !== undefined ? undefined : read?.(node)
      const wantedKey = wanted && makeExactKey(wanted)
      const isWanted = (column: { readonly expression?: Expression }) =>
        column.expression !== undefined && makeExactKey(column.expression) === wantedKey
      const found = named ?? columns.findIndex(isWanted)
      const column = columns[found]
      const field = isOfRecords && node !== undefined ? fieldAt(node, id) : undefined
      if (column === undefined && field !== undefined) return makeOrder(sort, field, place)
      if (column === undefined) {
        throw refuse(
          place,
          node === undefined ? undefined : findLocation(node),
          'an ORDER BY of something that DISTINCT or the set operation does not give',
        )
      }
      return makeOrder(
        sort,
        { kind: 'column', type: column.type, held: column.held, relation: id, column: found },
        place,
      )
    }),
  )
}

type OutputOrder = {
  readonly id: number
  readonly place: SqlPlace
  readonly read?: (node: Node) => Expression
  readonly isOfRecords?: boolean
}

/** Returns the field of the records of a set operation that a node names. */
function fieldAt(node: Node, relation: number): Expression | undefined {
  const names = 'ColumnRef' in node ? listTexts(node.ColumnRef.fields) : []
  if (names.length === 0) return undefined
  const path = parseFieldPath(names.join('.'), '/sql')
  return Object.freeze({ kind: 'field', type: 'json', relation, path })
}

/** Returns the place of the column that a node names: by its name, or by its number. */
export function findOutput(
  node: Node,
  columns: readonly { readonly name: string }[],
  place: SqlPlace,
): number | undefined {
  if ('A_Const' in node && node.A_Const.ival !== undefined) {
    const number = node.A_Const.ival.ival ?? 0
    if (number >= 1 && number <= columns.length) return number - 1
    throw refuse(place, node.A_Const.location, `the column number ${number}, which there is not`)
  }
  if (!('ColumnRef' in node)) return undefined
  const names = listTexts(node.ColumnRef.fields)
  const found = columns.findIndex((column) => names.length === 1 && column.name === names[0])
  return found < 0 ? undefined : found
}
