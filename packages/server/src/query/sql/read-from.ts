import type { Alias, JoinExpr, Node, RangeSubselect, RangeVar } from 'libpg-query'
import { coerceTo } from '../tree/make-expression.ts'
import {
  type Expression,
  getOutput,
  listParts,
  listRelations,
  type Query,
  type Relation,
} from '../tree/query.ts'
import { describeConstruct } from './describe-construct.ts'
import { findLocation, readExpression } from './read-expression.ts'
import type { Scope, ScopeRelation } from './scope.ts'
import { isCatalog } from './source-text.ts'
import { enterLevel, refuse, runAt, type SqlPlace } from './sql-reader.ts'

export type From = {
  readonly relations: readonly Relation[]
  readonly scope: Scope
}

/** Reads the relations of a FROM list, and the names that they introduce. */
export function readFrom(nodes: readonly Node[], place: SqlPlace): From {
  let scope: Scope = { ...place.scope, relations: [], outer: place.scope }
  const relations = nodes.map((node) => {
    const read = readRelation(node, place)
    scope = withRelations(scope, read.named, place)
    return read.relation
  })
  return { relations: Object.freeze(relations), scope }
}

type ReadRelation = { readonly relation: Relation; readonly named: readonly ScopeRelation[] }

function readRelation(node: Node, outer: SqlPlace): ReadRelation {
  const place = enterLevel(outer, findLocation(node))
  if ('RangeVar' in node) return readTable(node.RangeVar, place)
  if ('RangeSubselect' in node) return readSubselect(node.RangeSubselect, place)
  if ('JoinExpr' in node) return readJoin(node.JoinExpr, place)
  const problem = 'RangeFunction' in node ? 'a function in FROM' : describeConstruct(node)
  throw refuse(place, findLocation(node), `${problem}, which is not possible`)
}

function readTable(node: RangeVar, place: SqlPlace): ReadRelation {
  const { relname = '', schemaname, catalogname, location } = node
  const id = place.reader.nextId()
  if (node.inh !== true) throw refuse(place, location, 'ONLY, which is not possible')
  const name = readAlias(node.alias, place, location) ?? relname
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
    if (view !== undefined) return subQuery(view, { id, name, app }, { place, location })
    const types = place.reader.typesOf(model)
    const relation: Relation = Object.freeze({ kind: 'collection', id, model })
    const named = { id, name, app, columns: [], hasRecord: true, model, types }
    return { relation, named: [named] }
  }
  const table = place.scope.tables.get(relname)
  if (table === undefined)
    throw refuse(place, location, `the table ${relname}; a collection is written app::${relname}`)
  const relation: Relation = Object.freeze({ kind: 'common', id, table: table.id })
  return { relation, named: [{ ...table, id, name, app: undefined, types: undefined }] }
}

function readSubselect(node: RangeSubselect, place: SqlPlace): ReadRelation {
  const location = node.subquery === undefined ? undefined : findLocation(node.subquery)
  if (node.lateral) throw refuse(place, location, 'LATERAL, which is not possible')
  if (node.subquery === undefined || !('SelectStmt' in node.subquery))
    throw refuse(place, location, 'a sub-query that is no SELECT')
  const id = place.reader.nextId()
  // A sub-query in FROM cannot use the relations beside it.
  const query = place.reader.readSelect(node.subquery.SelectStmt, place)
  const name = readAlias(node.alias, place, location) ?? `r${id}`
  return subQuery(query, { id, name, app: undefined }, { place, location })
}

function subQuery(
  query: Query,
  named: Pick<ScopeRelation, 'id' | 'name' | 'app'>,
  { place, location }: { readonly place: SqlPlace; readonly location: number | undefined },
): ReadRelation {
  const { columns, records } = getOutput(query)
  if (records.length > 1)
    throw refuse(place, location, 'a sub-query that gives records of several collections whole (*)')
  return {
    relation: Object.freeze({ kind: 'query', id: named.id, query }),
    named: [{ ...named, columns, hasRecord: records.length > 0, types: undefined }],
  }
}

function readJoin(node: JoinExpr, place: SqlPlace): ReadRelation {
  const left = node.larg === undefined ? undefined : readRelation(node.larg, place)
  const right = node.rarg === undefined ? undefined : readRelation(node.rarg, place)
  const location = node.rarg === undefined ? undefined : findLocation(node.rarg)
  if (left === undefined || right === undefined) throw refuse(place, location, 'a join of nothing')
  if (node.isNatural) throw refuse(place, location, 'NATURAL JOIN; write ON')
  if (node.usingClause !== undefined) throw refuse(place, location, 'JOIN … USING; write ON')
  if (node.alias !== undefined) throw refuse(place, location, 'an alias of a join')
  const kind = joinKinds.get(node.jointype ?? '')
  if (kind === undefined) throw refuse(place, location, `${node.jointype}, which is not possible`)
  const named = [...left.named, ...right.named]
  const scope = withRelations({ ...place.scope, relations: [], outer: place.scope }, named, place)
  const inside: SqlPlace = {
    ...place,
    scope,
    without: { aggregates: 'a join condition', windows: 'a join condition' },
  }
  const { quals } = node
  const on =
    quals === undefined
      ? undefined
      : runAt(place, location, () => coerceTo(readExpression(quals, inside), 'boolean'))
  if (kind === 'FULL' && (on === undefined || !joinsByEquality(on, left, right)))
    throw refuse(place, location, 'a FULL JOIN without an equality of its two sides')
  const join = on === undefined && kind === 'INNER' ? 'CROSS' : kind
  const relation: Relation = Object.freeze({
    kind: 'join',
    join,
    left: left.relation,
    right: right.relation,
    on,
  })
  return { relation, named }
}

const joinKinds: ReadonlyMap<string, 'INNER' | 'LEFT' | 'RIGHT' | 'FULL'> = new Map([
  ['JOIN_INNER', 'INNER'],
  ['JOIN_LEFT', 'LEFT'],
  ['JOIN_RIGHT', 'RIGHT'],
  ['JOIN_FULL', 'FULL'],
])

function readAlias(alias: Alias | undefined, place: SqlPlace, location: number | undefined) {
  if (alias?.colnames !== undefined)
    throw refuse(place, location, 'names of columns after an alias, which is not possible')
  return alias?.aliasname
}

function withRelations(scope: Scope, named: readonly ScopeRelation[], place: SqlPlace): Scope {
  const relations = [...scope.relations, ...named]
  const seen = new Set<string>()
  for (const { app, name } of relations) {
    const full = `${app ?? ''}::${name}`
    if (seen.has(full))
      throw refuse(place, undefined, `the name ${name} twice in FROM; give an alias`)
    seen.add(full)
  }
  return { ...scope, relations }
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
