import { limits } from '@tollbase/contract/limits'
import type { CommonTableExpr, SelectStmt } from 'libpg-query'
import { castTo, coerceTo, makeConstant, TypeProblem } from '../tree/make-expression.ts'
import {
  type Column,
  type CommonTable,
  type Expression,
  getOutput,
  makeSelect,
  type OutputColumn,
  type Query,
  type Relation,
  type SelectQuery,
} from '../tree/query.ts'
import { renameTwins } from './column-name.ts'
import { makeCall } from './read-call.ts'
import { renameColumns } from './read-from.ts'
import type { CommonTableName } from './scope.ts'
import { findFirstLocation, refuse, runAt, type SqlPlace } from './sql-reader.ts'

/** Returns true if a common table of WITH RECURSIVE names itself. */
export function isRecursive({ ctename, ctequery }: CommonTableExpr): boolean {
  return namesTable(ctequery, ctename ?? '')
}

function namesTable(part: unknown, name: string): boolean {
  if (typeof part !== 'object' || part === null) return false
  if ('relname' in part && part.relname === name && !('schemaname' in part)) return true
  return Object.values(part).some((inner) => namesTable(inner, name))
}

/** The column that counts the steps that led to a row; no name in a statement can be this one. */
const depthName = ' depth'

/**
 * Reads a common table that names itself: a SELECT, then UNION or UNION ALL with one that reads the rows found last.
 * The first decides the types. Under UNION ALL a row counts its steps; under UNION each step finds rows that are new,
 * so that the bound of rows is one of steps too.
 */
export function readRecursive(
  node: CommonTableExpr,
  place: SqlPlace,
): { readonly table: CommonTable; readonly name: CommonTableName } {
  const { ctename = '', location, aliascolnames } = node
  const { first, next, all } = splitUnion(node, place)
  const { reader, scope } = place
  reader.spendRecursion(location)
  const left = reader.readSelect(renameTwins(first, aliascolnames?.length ?? 0), place)
  const { columns, records } = getOutput(left)
  if (records.length > 0)
    throw refuse(place, location, 'whole records (*) in WITH RECURSIVE; name the columns')
  const id = reader.nextId()
  const alias = aliascolnames === undefined ? undefined : { colnames: aliascolnames }
  const unnamed = { id, name: ctename, app: undefined, types: undefined, columns, hasRecord: false }
  const named = renameColumns(unnamed, alias, { place, location })
  const name: CommonTableName = { id, columns: named.columns, hasRecord: false }
  const uses: number[] = []
  const tables = new Map(scope.tables).set(ctename, { ...name, uses })
  const right = reader.readSelect(renameTwins(next, limits.sqlColumnsMax), {
    ...place,
    scope: { ...scope, tables },
  })
  const own = requireStep(right, uses, { ...place, location: findFirstLocation(next) })
  const fitting = runAt(place, findFirstLocation(next), () => fitColumns(own, columns))
  const outputs = columns.map((column) => ({ ...column, isWhole: false, held: undefined }))
  const sides = all
    ? {
        left: countFirst(left, columns, place),
        right: countNext(fitting, { use: uses[0] ?? 0, depth: columns.length, place }),
        columns: [...outputs, depthColumn],
      }
    : { left, right: fitting, columns: outputs }
  const query: Query = Object.freeze({
    kind: 'set',
    with: [],
    operator: 'UNION',
    all,
    ...sides,
    id: reader.nextId(),
    orderBy: [],
    limit: undefined,
    offset: 0,
  })
  return { table: Object.freeze({ id, query, isRecursive: true }), name }
}

function splitUnion(
  { ctename = '', ctequery, location, search_clause: search, cycle_clause: cycle }: CommonTableExpr,
  place: SqlPlace,
): { readonly first: SelectStmt; readonly next: SelectStmt; readonly all: boolean } {
  if (search !== undefined || cycle !== undefined)
    throw refuse(place, location, 'SEARCH or CYCLE, which is not possible; UNION ends circles')
  const select = ctequery !== undefined && 'SelectStmt' in ctequery ? ctequery.SelectStmt : {}
  const { op, larg, rarg, all = false, sortClause, limitCount, limitOffset, withClause } = select
  if (op !== 'SETOP_UNION' || larg === undefined || rarg === undefined)
    throw refuse(place, location, `${ctename}, which names itself, without UNION or UNION ALL`)
  if (sortClause !== undefined || limitCount !== undefined || limitOffset !== undefined)
    throw refuse(place, location, `ORDER BY or LIMIT inside ${ctename}; write it behind WITH`)
  if (withClause !== undefined) throw refuse(place, location, `WITH inside ${ctename}`)
  if (namesTable(larg, ctename))
    throw refuse(place, location, `${ctename}, which names itself before UNION`)
  return { first: larg, next: rarg, all }
}

/** Returns the step of a recursion, as far as PostgreSQL takes it. */
function requireStep(right: Query, uses: readonly number[], place: SqlPlace): SelectQuery {
  const no = (problem: string) =>
    refuse(place, undefined, `${problem} in the recursive part of WITH RECURSIVE`)
  if (right.kind === 'set') throw no('a set operation')
  if (right.grouped) throw no('groups or an aggregate')
  if (right.records.length > 0) throw no('whole records (*)')
  const { orderBy, limit, limitBy, offset, offsetBy } = right
  if (orderBy.length > 0 || limit !== undefined || limitBy !== undefined)
    throw no('ORDER BY or LIMIT')
  if (offset > 0 || offsetBy !== undefined) throw no('OFFSET')
  const [use, second] = uses
  if (second !== undefined) throw no('a second use of its own name')
  if (use === undefined || !right.from.some((relation) => isWithin(relation, use)))
    throw no('its own name in a sub-query or on the side of an outer join that may be missing')
  return right
}

/** Returns true if the relation stands in FROM where each of its rows counts by itself. */
function isWithin(relation: Relation, id: number): boolean {
  if (relation.kind !== 'join') return relation.id === id
  const { join, left, right } = relation
  const isLeft = join !== 'RIGHT' && join !== 'FULL' && isWithin(left, id)
  return isLeft || (join !== 'LEFT' && join !== 'FULL' && isWithin(right, id))
}

/** Gives the columns of the step the types of the first SELECT. */
function fitColumns(step: SelectQuery, columns: readonly OutputColumn[]): SelectQuery {
  if (step.columns.length !== columns.length)
    throw new TypeProblem(
      `UNION of ${columns.length} with ${step.columns.length} columns in WITH RECURSIVE`,
    )
  const fitting = step.columns.map((column, at): Column => {
    const type = columns[at]?.type ?? 'text'
    const { expression } = column
    return {
      ...column,
      expression: type === 'json' ? castTo(expression, type) : coerceTo(expression, type),
    }
  })
  return { ...step, columns: fitting }
}

const depthColumn: OutputColumn = { name: depthName, path: [depthName], type: 'number' }

function countFirst(
  left: Query,
  columns: readonly OutputColumn[],
  { reader }: SqlPlace,
): SelectQuery {
  const relation = reader.nextId()
  const given = columns.map((column, at): Column => {
    const { name, type } = column
    return { name, expression: Object.freeze({ kind: 'column', type, relation, column: at }) }
  })
  return makeSelect({
    columns: [...given, { name: depthName, expression: makeConstant('number', '1') }],
    from: [{ kind: 'query', id: relation, query: left }],
    id: reader.nextId(),
  })
}

function countNext(
  step: SelectQuery,
  { use, depth, place }: { readonly use: number; readonly depth: number; readonly place: SqlPlace },
): SelectQuery {
  const before: Expression = Object.freeze({
    kind: 'column',
    type: 'number',
    relation: use,
    column: depth,
  })
  const expression = makeCall('next step', [before], { place })
  return { ...step, columns: [...step.columns, { name: depthName, expression }] }
}
