import { parseFieldPath } from '../field-path.ts'
import { countSteps } from '../steps.ts'
import { makeConstant, markHeld, markWhole, markZone } from '../tree/make-expression.ts'
import type { Expression, OutputColumn, Typed, ValueType } from '../tree/query.ts'

/** A relation of FROM as names see it. */
export type ScopeRelation = {
  readonly id: number
  /** The alias, or the name of the collection or common table. */
  readonly name: string
  /** The application, if `app::collection` itself names the relation. */
  readonly app: string | undefined
  readonly columns: readonly OutputColumn[]
  /** True if names behind its alias, `t (a, b)`, are its columns'. */
  readonly isNamed?: boolean
  /** True if its name alone means the value of its one column, as that of a function does. */
  readonly isScalar?: boolean
  /** True if it has records, whose fields are not known beforehand. */
  readonly hasRecord: boolean
  /** The collection, if its rows are stored records. */
  readonly model?: string
  readonly types: ReadonlyMap<string, ValueType> | undefined
  /** False for a field that its records cannot have. */
  readonly mayHave?: (field: string) => boolean
}

export type CommonTableName = {
  readonly id: number
  readonly columns: readonly OutputColumn[]
  readonly hasRecord: boolean
  /** Inside of a table that names itself: collects the numbers of the relations by which it does. */
  readonly uses?: number[]
}

/** A column that USING or NATURAL makes of one column of each side; its name alone means it. */
export type MergedColumn = {
  readonly name: string
  readonly expression: Expression
  /** The relations on both sides, whose own columns of the name are not meant by the name alone. */
  readonly covers: ReadonlySet<number>
}

/** The names that can be used at a place; inner ones hide outer ones. */
export type Scope = {
  readonly relations: readonly ScopeRelation[]
  readonly merged?: readonly MergedColumn[]
  readonly tables: ReadonlyMap<string, CommonTableName>
  readonly outer: Scope | undefined
  /** The names of the innermost sub-query around that stands where a value does. */
  readonly subQuery?: SubQueryNames | undefined
}

/**
 * The names in a sub-query that is used as a value. Fields are not known beforehand, so an unqualified name belongs to
 * the sub-query. If it was meant to be the outer query's, it would be NULL without an error. The other names of the
 * sub-query show where that is likely.
 */
export type SubQueryNames = {
  readonly outside: Scope
  /** The unqualified fields that are not declared. */
  readonly unqualified: Map<Expression, UnqualifiedName>
  /** True if some of its own names say whose they are. */
  qualifiesOwn: boolean
  /** True if an unqualified name may well be of the query around it. */
  isUnclear: boolean
}

export type UnqualifiedName = {
  readonly name: string
  readonly relation: ScopeRelation
  readonly location: number | undefined
}

/** The reason why a name cannot be resolved, in words that follow "has". */
export class NameProblem extends Error {}

/** A name that several relations could have. */
export class UnclearName extends NameProblem {
  readonly relations: readonly ScopeRelation[]

  constructor(message: string, relations: readonly ScopeRelation[]) {
    super(message)
    this.relations = relations
  }
}

/**
 * Resolves a dotted name. A name that begins with a relation's name, even an outer query's, belongs to that
 * relation; any other is a field of the innermost relation.
 */
export function resolveName(names: readonly string[], scope: Scope): Expression {
  for (const resolve of [qualified, resolveUnqualified]) {
    for (let level: Scope | undefined = scope; level !== undefined; level = level.outer) {
      const found = resolve(names, level)
      if (found !== undefined) return found
    }
  }
  throw new NameProblem(`the name ${names.join('.')}, which nothing in FROM has`)
}

/** Resolves the name of a relation, even of an outer query's. */
export function resolveRelation(names: readonly string[], scope: Scope): ScopeRelation {
  for (let level: Scope | undefined = scope; level !== undefined; level = level.outer) {
    const found = namedBy(names, level)
    if (found !== undefined && found.rest.length === 0) return found.relation
  }
  throw new NameProblem(`${names.join('::')}, which nothing in FROM is called`)
}

/** Resolves the relations whose records or columns `*` or `name.*` stands for. */
export function resolveStar(names: readonly string[], scope: Scope): readonly ScopeRelation[] {
  if (names.length === 0) return scope.relations
  const found = namedBy(names, scope)
  if (found === undefined || found.rest.length > 0)
    throw new NameProblem(`${names.join('.')}.*, which nothing in FROM has`)
  return [found.relation]
}

function qualified(names: readonly string[], scope: Scope): Expression | undefined {
  if (names.length < 2) return undefined
  const found = namedBy(names, scope)
  if (found === undefined || found.rest.length === 0) return undefined
  const { relation, rest } = found
  const column = findColumn(relation, rest)
  if (column !== undefined) return column
  if (relation.hasRecord) return makeField(relation, rest)
  const way = relation.isScalar === true ? `; write ${relation.name} -> '${rest[0]}'` : ''
  throw new NameProblem(
    `the name ${names.join('.')}, but ${relation.name} has no column ${rest[0]}${way}`,
  )
}

/** Finds the relation that the name begins with, `app.collection` or an alias, and the rest of the name. */
function namedBy(names: readonly string[], scope: Scope) {
  const [first = '', second] = names
  const byRoot = scope.relations.find(
    (each) => each.app === first && each.name === second && each.app !== undefined,
  )
  if (byRoot !== undefined) return { relation: byRoot, rest: names.slice(2) }
  const exact = scope.relations.find((each) => each.name === first)
  const relation = exact ?? onlyOne(scope, (name) => name.toLowerCase() === first.toLowerCase())
  return relation === undefined ? undefined : { relation, rest: names.slice(1) }
}

function onlyOne(scope: Scope, fits: (name: string) => boolean): ScopeRelation | undefined {
  const found = scope.relations.filter((each) => fits(each.name))
  return found.length === 1 ? found[0] : undefined
}

/** Resolves a name that does not begin with a relation's at one level of queries. */
export function resolveUnqualified(names: readonly string[], scope: Scope): Expression | undefined {
  countSteps(2 * (scope.relations.length + (scope.merged?.length ?? 0)))
  const merged = (scope.merged ?? []).filter((each) => each.name === names[0])
  const others = scope.relations.filter(({ id }) => !merged.some(({ covers }) => covers.has(id)))
  const closed = others.flatMap((relation) => findNamed(relation, names) ?? [])
  const known = [...merged.map((each) => enterMembers(each.expression, names)), ...closed]
  const open = others.filter(
    (relation) => relation.hasRecord && findColumn(relation, names) === undefined,
  )
  const given = others
    .filter(({ isNamed }) => isNamed)
    .flatMap((each) => findNamed(each, names) ?? [])
  const declaring = open.filter(({ types }) => types?.has(names.join('.')) === true)
  // A column that is named beside a collection is meant, if that does not declare it too.
  if (given.length === 1 && known.length === 1 && declaring.length === 0) return given[0]
  const [column] = known
  if (known.length + open.length <= 1)
    return column ?? (open[0] === undefined ? undefined : makeField(open[0], names))
  const [declared] = declaring
  // A collection that declares its fields, but not this one, hardly has it.
  const areOthersClear = open.every(({ types }) => types !== undefined && types.size > 0)
  if (known.length + declaring.length === 1 && areOthersClear)
    return column ?? (declared === undefined ? undefined : makeField(declared, names))
  const possible = open.filter(({ mayHave }) => mayHave?.(names[0] ?? '') !== false)
  if (known.length + possible.length === 1)
    return column ?? (possible[0] === undefined ? undefined : makeField(possible[0], names))
  const name = names.join('.')
  throw new UnclearName(
    `the name ${name} without saying whose it is; write ${open[0]?.name ?? scope.relations[0]?.name}.${name}`,
    open,
  )
}

/** Makes the value of a relation's column at its place. */
export function makeColumn(
  { id }: ScopeRelation,
  at: number,
  { type, isWhole, zone, held }: Typed,
): Expression {
  const column: Expression = Object.freeze({ kind: 'column', type, relation: id, column: at })
  return markHeld(markZone(markWhole(column, isWhole === true), zone), held)
}

/** Finds a column, or a member of a JSON column. */
export function findColumn(
  relation: ScopeRelation,
  names: readonly string[],
): Expression | undefined {
  const [first] = names
  countSteps(Math.ceil(relation.columns.length / 16))
  const at = relation.columns.findIndex((column) => column.name === first)
  const column = relation.columns[at]
  return column === undefined ? undefined : enterMembers(makeColumn(relation, at, column), names)
}

/** Finds a column by its name, or the only one by the name of its relation. */
function findNamed(relation: ScopeRelation, names: readonly string[]): Expression | undefined {
  const [column] = relation.columns
  const isWhole = relation.isScalar === true && relation.name === names[0] && column !== undefined
  return (
    findColumn(relation, names) ??
    (isWhole ? enterMembers(makeColumn(relation, 0, column), names) : undefined)
  )
}

/** Makes the member of a column's value that the names behind the column's own lead to. */
function enterMembers(column: Expression, [first, ...rest]: readonly string[]): Expression {
  if (rest.length > 0 && column.type !== 'json')
    throw new NameProblem(`the name ${[first, ...rest].join('.')}, but ${first} is no object`)
  return rest.reduce<Expression>((object, name) => {
    const parts = Object.freeze([object, makeConstant('text', name)])
    return Object.freeze({ kind: 'call', type: 'json', name: '->', arguments: parts })
  }, column)
}

function makeField(relation: ScopeRelation, names: readonly string[]): Expression {
  const path = parseFieldPath(names.join('.'), '/sql')
  const field: Expression = Object.freeze({
    kind: 'field',
    type: 'json',
    relation: relation.id,
    path,
  })
  const type = relation.types?.get(path.join('.'))
  return type === undefined ? field : Object.freeze({ kind: 'convert', type, argument: field })
}
