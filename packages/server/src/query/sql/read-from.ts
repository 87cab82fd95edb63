import type { Alias, JoinExpr, Node, RangeSubselect, RangeVar } from 'libpg-query'
import { coerceTo, makeConstant } from '../tree/make-expression.ts'
import { collectUsedInside } from '../tree/map-expression.ts'
import {
  type Expression,
  getOutput,
  listParts,
  listRelations,
  type OutputColumn,
  type Query,
  type Relation,
} from '../tree/query.ts'
import { renameTwins } from './column-name.ts'
import { describeImpossible } from './describe-construct.ts'
import { findLocation, readExpression } from './read-expression.ts'
import { enterSubQuery, refuseUnclearNames } from './read-name.ts'
import { readRowFunction } from './read-row-function.ts'
import { joinUsing, keepOthers, listShared } from './read-using.ts'
import type { MergedColumn, Scope, ScopeRelation } from './scope.ts'
import { isCatalog } from './source-text.ts'
import {
  enterLevel,
  findFirstLocation,
  listTexts,
  refuse,
  runAt,
  type SqlPlace,
} from './sql-reader.ts'

export type From = {
  readonly relations: readonly Relation[]
  readonly scope: Scope
}

/** Reads the relations of a FROM list, and the names that they introduce. */
export function readFrom(nodes: readonly Node[], place: SqlPlace): From {
  let scope: Scope = enterFrom(place)
  const relations = nodes.map((node) => {
    const read = readRelation(node, place, scope)
    scope = withRelations(scope, read, place)
    return read.relation
  })
  return { relations: Object.freeze(relations), scope }
}

/** The scope of a FROM list before its first relation. */
function enterFrom({ scope }: SqlPlace): Scope {
  return { ...scope, relations: [], merged: [], outer: scope }
}

type ReadRelation = {
  readonly relation: Relation
  readonly named: readonly ScopeRelation[]
  readonly merged?: readonly MergedColumn[]
}

/** Reads a relation; `beside` has the relations before it, which LATERAL and functions may use. */
function readRelation(node: Node, outer: SqlPlace, beside: Scope): ReadRelation {
  const place = enterLevel(outer, findLocation(node))
  if ('RangeVar' in node) return readTable(node.RangeVar, place)
  if ('RangeSubselect' in node) return readSubselect(node.RangeSubselect, place, beside)
  if ('JoinExpr' in node) return readJoin(node.JoinExpr, place, beside)
  if ('RangeFunction' in node) {
    const { alias } = node.RangeFunction
    const location = findFirstLocation(node)
    const { relation, named } = readRowFunction(node.RangeFunction, { ...place, scope: beside })
    return { relation, named: [renameColumns(named, alias, { place, location })] }
  }
  throw refuse(place, findLocation(node), describeImpossible(node))
}

function readTable(node: RangeVar, place: SqlPlace): ReadRelation {
  const { relname = '', schemaname, catalogname, location } = node
  const id = place.reader.nextId()
  if (node.inh !== true) throw refuse(place, location, 'ONLY, which is not possible')
  const name = node.alias?.aliasname ?? relname
  if (catalogname !== undefined)
    throw refuse(
      place,
      location,
      `the name ${catalogname}::${schemaname}::${relname} of three parts`,
    )
  if (schemaname !== undefined) {
    if (!/^[a-z][a-z0-9_-]{2,62}$/.test(schemaname) || !/^[A-Za-z0-9_-]{1,63}$/.test(relname))
      throw refuse(
        place,
        location,
        `the name ${schemaname}::${relname}, which is no app::collection`,
      )
    if (isCatalog(schemaname))
      throw refuse(place, location, `the catalog ${schemaname}, which cannot be read`)
    const model = `${schemaname}::${relname}`
    place.reader.spendSource(model, location)
    const app = node.alias === undefined ? schemaname : undefined
    const view = place.reader.readView(model, place.depth)
    if (view !== undefined)
      return subQuery(view, { id, name, app, alias: node.alias }, { place, location })
    if (node.alias?.colnames !== undefined)
      throw refuse(
        place,
        location,
        `names of columns for ${relname}, whose fields have no order; name them in a sub-query`,
      )
    const { typesOf, lacks } = place.reader
    const types = typesOf(model)
    const relation: Relation = Object.freeze({ kind: 'collection', id, model })
    const has = (field: string) => !lacks(model, field)
    const named = { id, name, app, columns: [], hasRecord: true, model, types, mayHave: has }
    return { relation, named: [named] }
  }
  const table = place.scope.tables.get(relname)
  if (table === undefined)
    throw refuse(place, location, `the table ${relname}; a collection is written app::${relname}`)
  const { uses, columns, hasRecord } = table
  uses?.push(id)
  const relation: Relation = Object.freeze({
    kind: 'common',
    id,
    table: table.id,
    ...(uses !== undefined && { isItself: true }),
  })
  const named = { id, name, columns, hasRecord, app: undefined, types: undefined }
  return { relation, named: [renameColumns(named, node.alias, { place, location })] }
}

function readSubselect(node: RangeSubselect, place: SqlPlace, beside: Scope): ReadRelation {
  const location = node.subquery === undefined ? undefined : findLocation(node.subquery)
  if (node.subquery === undefined || !('SelectStmt' in node.subquery))
    throw refuse(place, location, 'a sub-query that is no SELECT')
  const id = place.reader.nextId()
  const name = node.alias?.aliasname ?? `r${id}`
  const called = { id, name, app: undefined, alias: node.alias }
  const select = renameTwins(node.subquery.SelectStmt, node.alias?.colnames?.length ?? 0)
  if (node.lateral !== true) {
    const query = place.reader.readSelect(select, place)
    return subQuery(query, called, { place, location })
  }
  const scope = enterSubQuery(beside)
  const query = place.reader.readSelect(select, { ...place, scope })
  refuseUnclearNames(scope.subQuery, place)
  const { relation, ...read } = subQuery(query, called, { place, location })
  return { ...read, relation: Object.freeze({ ...relation, isLateral: true }) }
}

type At = { readonly place: SqlPlace; readonly location: number | undefined }

function subQuery(
  query: Query,
  { alias, ...named }: Pick<ScopeRelation, 'id' | 'name' | 'app'> & { alias: Alias | undefined },
  at: At,
): ReadRelation & { readonly relation: Extract<Relation, { kind: 'query' }> } {
  const { columns, records } = getOutput(query)
  if (records.length > 1)
    throw refuse(
      at.place,
      at.location,
      'a sub-query that gives records of several collections whole (*)',
    )
  const relation = { ...named, columns, hasRecord: records.length > 0, types: undefined }
  return {
    relation: Object.freeze({ kind: 'query', id: named.id, query }),
    named: [renameColumns(relation, alias, at)],
  }
}

/** Gives columns the names behind an alias, `t (a, b)`; those left over keep theirs. */
export function renameColumns(
  relation: ScopeRelation,
  alias: Pick<Alias, 'colnames'> | undefined,
  { place, location }: At,
): ScopeRelation {
  const names = listTexts(alias?.colnames)
  if (names.length === 0) return relation
  const { columns, hasRecord, name } = relation
  if (hasRecord)
    throw refuse(place, location, `names of columns for ${name}, which gives whole records (*)`)
  if (names.length > columns.length)
    throw refuse(
      place,
      location,
      `${names.length} names for the ${columns.length} columns of ${name}`,
    )
  const renamed = columns.map((column, at): OutputColumn => {
    const given = names[at]
    return given === undefined ? column : { ...column, name: given, path: [given] }
  })
  const all = renamed.map((column) => column.name)
  const twice = all.find((each, at) => all.indexOf(each) !== at)
  if (twice !== undefined) throw refuse(place, location, `two columns called ${twice} in ${name}`)
  return { ...relation, columns: renamed, isNamed: true }
}

function readJoin(node: JoinExpr, place: SqlPlace, beside: Scope): ReadRelation {
  const { quals, larg, rarg } = node
  const left = larg === undefined ? undefined : readRelation(larg, place, beside)
  const behind = left === undefined ? beside : withRelations(beside, left, place)
  const right = rarg === undefined ? undefined : readRelation(rarg, place, behind)
  const location = rarg === undefined ? undefined : findLocation(rarg)
  if (left === undefined || right === undefined) throw refuse(place, location, 'a join of nothing')
  if (node.alias !== undefined || node.join_using_alias !== undefined)
    throw refuse(place, location, 'an alias of a join')
  const kind = joinKinds.get(node.jointype ?? '')
  if (kind === undefined) throw refuse(place, location, `${node.jointype}, which is not possible`)
  const isKept = kind === 'RIGHT' || kind === 'FULL'
  if (isKept && areUsed(left, right))
    throw refuse(place, location, `LATERAL behind ${kind} JOIN; write INNER or LEFT JOIN`)
  const sides = { left: makeSide(left, place), right: makeSide(right, place), kind }
  const scope = withRelations(sides.left, right, place)
  const inside: SqlPlace = {
    ...place,
    scope,
    without: { aggregates: 'a join condition', windows: 'a join condition' },
  }
  const shared = node.isNatural
    ? runAt(place, location, () => listShared(sides, place.reader.leavesOpen))
    : listTexts(node.usingClause)
  const using = runAt(place, location, () => joinUsing(shared, sides, { place: inside, location }))
  const on =
    quals === undefined
      ? using.on
      : runAt(place, location, () => coerceTo(readExpression(quals, inside), 'boolean'))
  const isOpen = quals === undefined && place.reader.leavesOpen
  if (kind === 'FULL' && !isOpen && (on === undefined || !joinsByEquality(on, left, right)))
    throw refuse(place, location, 'a FULL JOIN without an equality of its two sides')
  const join = on === undefined && kind === 'INNER' ? 'CROSS' : kind
  const relation: Relation = Object.freeze({
    kind: 'join',
    join,
    left: left.relation,
    right: right.relation,
    // An outer join without a common column keeps every pair.
    on: on === undefined && kind !== 'INNER' ? makeConstant('boolean', true) : on,
  })
  const merged = keepOthers([...(left.merged ?? []), ...(right.merged ?? [])], using.merged)
  return { relation, named: [...left.named, ...right.named], merged }
}

function areUsed(left: ReadRelation, right: ReadRelation): boolean {
  const used = collectUsedInside(right.relation)
  return [...collectIds(left)].some((id) => used.has(id))
}

function makeSide(read: ReadRelation, place: SqlPlace): Scope {
  return withRelations(enterFrom(place), read, place)
}

const joinKinds: ReadonlyMap<string, 'INNER' | 'LEFT' | 'RIGHT' | 'FULL'> = new Map([
  ['JOIN_INNER', 'INNER'],
  ['JOIN_LEFT', 'LEFT'],
  ['JOIN_RIGHT', 'RIGHT'],
  ['JOIN_FULL', 'FULL'],
])

function withRelations(scope: Scope, read: ReadRelation, place: SqlPlace): Scope {
  const relations = [...scope.relations, ...read.named]
  const seen = new Set<string>()
  for (const { app, name } of relations) {
    const full = `${app ?? ''}::${name}`
    if (seen.has(full))
      throw refuse(place, undefined, `the name ${name} twice in FROM; give an alias`)
    seen.add(full)
  }
  return { ...scope, relations, merged: [...(scope.merged ?? []), ...(read.merged ?? [])] }
}

/** PostgreSQL runs a full join by hashing or merging, which needs an equality between the two sides. */
function joinsByEquality(on: Expression, left: ReadRelation, right: ReadRelation): boolean {
  if (on.kind === 'and') return on.arguments.some((each) => joinsByEquality(each, left, right))
  if (on.kind !== 'compare' || on.operator !== '=') return false
  const sides = [collectIds(left), collectIds(right)] as const
  const isAbout = (expression: Expression, ids: ReadonlySet<number>) => {
    const used = usedBy(expression)
    return used.length > 0 && used.every((each) => ids.has(each))
  }
  const [a, b] = sides
  return (
    (isAbout(on.left, a) && isAbout(on.right, b)) || (isAbout(on.left, b) && isAbout(on.right, a))
  )
}

function collectIds(read: ReadRelation): ReadonlySet<number> {
  return new Set(listRelations([read.relation]).map((relation) => relation.id))
}

function usedBy(expression: Expression): readonly number[] {
  const own =
    expression.kind === 'field' || expression.kind === 'column' ? [expression.relation] : []
  return [...own, ...listParts(expression).flatMap(usedBy)]
}
