import { isLetterAway } from '../../base/find-nearest.ts'
import { countSteps } from '../steps.ts'
import type { Expression } from '../tree/query.ts'
import {
  findColumn,
  resolveName,
  type Scope,
  type ScopeRelation,
  type SubQueryNames,
  UnclearName,
  type UnqualifiedName,
} from './scope.ts'
import { refuse, runAt, type SqlPlace } from './sql-reader.ts'

/** Reads a dotted name. */
export function readName(
  names: readonly string[],
  place: SqlPlace,
  location: number | undefined,
): Expression {
  const { scope, reader } = place
  countSteps(16)
  const found = runAt(place, location, () => resolve(names, scope, reader.leavesOpen))
  const relation = findRelation(getRelation(found), scope)
  if (relation === undefined) return found
  const name = names.join('.')
  const isField = found.kind === 'field' && found.path.join('.') === name
  if (!isField) noteQualified(found, scope)
  else {
    refuseWrongQualifier(names, relation, { place, location })
    if (!place.reader.isStored) refuseWholeRow(name, relation, { place, location })
    noteUnqualified(found, { name, relation, location }, scope)
  }
  return found
}

/** Where types are not known yet, a name that several relations could have is left open: all of each is used. */
function resolve(names: readonly string[], scope: Scope, leavesOpen: boolean): Expression {
  try {
    return resolveName(names, scope)
  } catch (error) {
    if (!(error instanceof UnclearName) || !leavesOpen) throw error
    const records = error.relations.map(({ id }): Expression => {
      return Object.freeze({ kind: 'record', type: 'json', relation: id })
    })
    return Object.freeze({ kind: 'call', type: 'json', name: 'coalesce', arguments: records })
  }
}

/** Makes the scope of a sub-query that stands where a value does. */
export function enterSubQuery(outside: Scope): Scope & { readonly subQuery: SubQueryNames } {
  const subQuery: SubQueryNames = {
    outside,
    unqualified: new Map(),
    qualifiesOwn: false,
    isUnclear: false,
  }
  return { ...outside, relations: [], merged: [], outer: outside, subQuery }
}

/** Notes a comparison: of two unqualified names one may well be of the query around. */
export function noteComparison(
  { scope: { subQuery } }: SqlPlace,
  sides: readonly Expression[],
): void {
  if (subQuery !== undefined && sides.every((each) => subQuery.unqualified.has(each)))
    subQuery.isUnclear = true
}

/** Refuses unqualified names of a sub-query that has been read, where nobody could tell whose they are. */
export function refuseUnclearNames(names: SubQueryNames, place: SqlPlace): void {
  const { unqualified, qualifiesOwn, isUnclear } = names
  const [first] = unqualified.values()
  if (first === undefined || !(qualifiesOwn || isUnclear)) return
  const ways = [first.relation, ...listRelations(names.outside)].slice(0, 2)
  const written = ways.map((relation) => `${printRelation(relation)}.${first.name}`)
  throw refuse(
    place,
    first.location,
    `the name ${first.name} in a sub-query without saying whose it is; write ${written.join(' or ')}`,
  )
}

function noteQualified(found: Expression, { subQuery }: Scope): void {
  const id = getRelation(found)
  const isOwn = !listRelations(subQuery?.outside).some((each) => each.id === id)
  if (subQuery !== undefined && isOwn && found.kind === 'field') subQuery.qualifiesOwn = true
}

function noteUnqualified(found: Expression, named: UnqualifiedName, { subQuery }: Scope): void {
  if (subQuery === undefined) return
  const around = listRelations(subQuery.outside)
  if (around.length === 0 || around.includes(named.relation)) return
  subQuery.unqualified.set(found, named)
  const path = named.name.split('.')
  const isDeclared = (each: ScopeRelation) =>
    each.types?.has(named.name) === true || findColumn(each, path) !== undefined
  // A collection that declares its fields, but not this one, hardly has it.
  const isOthers = (named.relation.types?.size ?? 0) > 0 && around.some(isDeclared)
  if (isOthers) subQuery.isUnclear = true
}

/** Refuses a first name that was meant to be a relation's: where relations have aliases, names begin with these. */
function refuseWrongQualifier(
  names: readonly string[],
  relation: ScopeRelation,
  { place, location }: { readonly place: SqlPlace; readonly location: number | undefined },
): void {
  const [first = ''] = names
  if (names.length < 2) return
  const isAlias = relation.app === undefined && relation.model !== undefined
  // A field `item` of the collection `items` is no mistake.
  const isPart = relation.name === `${first}s`
  const isNear = !isPart && first.length > 3 && isLetterAway(first, relation.name)
  if (!isAlias && !isNear) return
  const name = names.join('.')
  throw refuse(
    place,
    location,
    `the name ${name}, but nothing in FROM is called ${first}; a field is written ${printRelation(relation)}.${name}`,
  )
}

/** Refuses the alias of a relation where a value stands: PostgreSQL takes it for the whole row, unless it is a field. */
function refuseWholeRow(
  name: string,
  { types }: ScopeRelation,
  { place, location }: { readonly place: SqlPlace; readonly location: number | undefined },
): void {
  const named = listRelations(place.scope).find((each) => each.name === name)
  if (named === undefined || named.app !== undefined || types?.has(name) === true) return
  const way = named.hasRecord
    ? `; a field is written ${name}.${name}, an object of fields jsonb_build_object('b', ${name}.b)`
    : ''
  throw refuse(place, location, `${name}, which is a relation and no value${way}`)
}

function printRelation({ app, name }: ScopeRelation): string {
  return app === undefined ? name : `${app}::${name}`
}

function listRelations(scope: Scope | undefined): readonly ScopeRelation[] {
  return scope === undefined ? [] : [...scope.relations, ...listRelations(scope.outer)]
}

function findRelation(id: number | undefined, scope: Scope): ScopeRelation | undefined {
  return listRelations(scope).find((each) => each.id === id)
}

/** Returns the number of the relation that a name was found in. */
function getRelation(found: Expression): number | undefined {
  switch (found.kind) {
    case 'field':
    case 'column':
      return found.relation
    case 'convert':
      return getRelation(found.argument)
    case 'call':
      return found.arguments[0] && getRelation(found.arguments[0])
    default:
      return undefined
  }
}
