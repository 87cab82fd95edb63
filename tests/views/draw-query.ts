import type { Chance } from './engine-chance.ts'
import { findColumns, makeScope } from './print-query.ts'
import { recordFields, type Scope, type Type } from './print-term.ts'
import type {
  Call,
  Column,
  CountedForm,
  Page,
  Query,
  Relation,
  Select,
  Term,
  Test,
} from './query-tree.ts'

/** The state with which queries are drawn; `next` names the next relation. */
export type Draw = {
  readonly chance: Chance
  /** The queries that others may read by name. */
  readonly named: ReadonlyMap<string, Query>
  next: number
}

/** Draws the query of a view. With nothing but its own joins, groups and limit it can be kept by changes. */
export function drawQuery(draw: Draw): Query {
  const kind = draw.chance.below(100)
  if (kind < 8) return drawWithCommon(draw)
  if (kind < 64) return drawAny(draw)
  if (kind < 76) return topGroups(draw)
  return kind < 88 ? topRows(draw) : wholeRecords(draw)
}

/** Draws a query in a form that cannot be kept by changes. */
export function drawCounted(draw: Draw): Query {
  const query = drawAny(draw)
  const columns = findColumns(query)
  const type = columns === 'records' ? undefined : columns.get('c0')
  // Equal numbers may be written in several ways, of which a group shows any.
  const forms: readonly CountedForm[] = [
    ...(['window', 'series', 'list', 'lateral'] as const),
    ...(type === 'text' || type === 'boolean' ? (['first of each', 'rollup'] as const) : []),
    ...(type === 'text' ? (['median', 'once'] as const) : []),
    ...(type === 'number' ? (['variance'] as const) : []),
  ]
  return { kind: 'counted', query, as: alias(draw), form: draw.chance.one(forms) }
}

/** Draws a query with a common table, which it may read more than once. */
function drawWithCommon(draw: Draw): Query {
  const common = drawAny(draw, 0)
  const own = { ...draw, named: new Map([...draw.named, [`t${draw.next}`, common]]) }
  const query = drawAny(own)
  draw.next = own.next
  return query
}

function drawAny(draw: Draw, depth = 2): Query {
  const kind = draw.chance.below(100)
  if (kind < 10 && depth > 0) return union(draw, depth)
  if (kind < 45) return grouped(draw, depth)
  if (kind < 55) return distinct(draw, depth)
  return rows(draw, depth)
}

const endings = ['', ' DESC', ' DESC NULLS LAST', ' NULLS FIRST']

/** The first groups. */
function topGroups(draw: Draw): Query {
  const { chance } = draw
  const select = chance.happens(50) ? grouped(draw, 1) : distinct(draw, 1)
  const names = select.columns.map(({ name }) => name)
  return { ...select, page: page(draw, chance.some(names, 1, 2)) }
}

/** The first of whole records or of rows that are joined out of records, where storing decides what is open. */
function topRows(draw: Draw): Query {
  const { chance } = draw
  if (chance.happens(50)) {
    const select = makeSelect(collection(draw), [])
    return { ...select, page: page(draw, chance.some(recordFields, 1, 2)) }
  }
  const select = rows(draw, 0)
  const names = select.columns.map(({ name }) => name)
  return { ...select, page: page(draw, chance.some(names, 1, 2)) }
}

function page({ chance }: Draw, names: readonly string[]): Page {
  return {
    order: names.map((by) => ({ by, ending: chance.one(endings) })),
    limit: chance.one([0, 1, 1, 2, 3, 5, 20]),
    offset: chance.one([0, 0, 1, 2]),
  }
}

/** Draws whole records that satisfy a condition. */
function wholeRecords(draw: Draw): Query {
  const from = collection(draw)
  return { ...makeSelect(from, []), where: [predicate(draw, listTerms(makeScope(from)))] }
}

function rows(draw: Draw, depth: number): Select {
  const { from, where, terms } = drawFrom(draw, depth)
  const count = 1 + draw.chance.below(4)
  const values = Array.from({ length: count }, () => scalar(draw, terms))
  return { ...makeSelect(from, values), where }
}

function distinct(draw: Draw, depth: number): Select {
  const { from, where, terms } = drawFrom(draw, depth)
  const count = 1 + draw.chance.below(2)
  const values = Array.from({ length: count }, () => scalar(draw, terms))
  return { ...makeSelect(from, values), where, distinct: true }
}

function grouped(draw: Draw, depth: number): Select {
  const { chance } = draw
  const { from, where, terms } = drawFrom(draw, depth)
  const count = chance.happens(15) ? 0 : chance.one([1, 1, 2])
  const keys = Array.from({ length: count }, () => scalar(draw, terms))
  const calls = Array.from({ length: 1 + chance.below(3) }, () => aggregate(draw, terms))
  const select = { ...makeSelect(from, [...keys, ...calls]), where, distinct: chance.happens(5) }
  if (!chance.happens(30)) return select
  return { ...select, having: [predicate(draw, listTerms(new Map([['', findColumns(select)]])))] }
}

function union(draw: Draw, depth: number): Query {
  const all = draw.chance.happens(50)
  return { kind: 'union', all, left: rows(draw, depth - 1), right: grouped(draw, depth - 1) }
}

function makeSelect(from: Relation, values: readonly (Term | Call)[]): Select {
  const columns = values.map((value, at): Column => ({ name: `c${at}`, value }))
  return { kind: 'select', columns, distinct: false, from, where: [], having: [] }
}

type TypedTerm = { readonly term: Term; readonly type: Type }

function listTerms(scope: Scope): TypedTerm[] {
  return [...scope].flatMap(([of, columns]) => {
    const named: Iterable<readonly [string, Type]> =
      columns === 'records' ? recordFields.map((name) => [name, 'json'] as const) : columns
    return [...named].map(([name, type]) => ({ term: { kind: 'field' as const, of, name }, type }))
  })
}

function drawFrom(draw: Draw, depth: number) {
  const from = relations(draw, depth)
  const terms = listTerms(makeScope(from))
  const { chance } = draw
  const where = chance.happens(40) ? [predicate(draw, terms)] : []
  if (from.kind === 'join' && from.word === 'CROSS JOIN' && chance.happens(70)) {
    const [left, right] = [listTerms(makeScope(from.left)), listTerms(makeScope(from.right))]
    return { from, where: [...where, matched(draw, chance.one(listPairs(left, right)))], terms }
  }
  return { from, where, terms }
}

function alias(draw: Draw): string {
  draw.next += 1
  return `x${draw.next}`
}

function collection(draw: Draw): Relation {
  return { kind: 'collection', name: draw.chance.one(['a', 'b', 'c']), as: alias(draw) }
}

function source(draw: Draw, depth: number): Relation {
  const { chance, named } = draw
  if (depth > 0 && named.size > 0 && chance.happens(30)) {
    const [name, query] = chance.one([...named].slice(-4))
    return { kind: 'named', name, query, as: alias(draw) }
  }
  if (depth > 0 && chance.happens(30))
    return { kind: 'query', query: drawAny(draw, depth - 1), as: alias(draw) }
  return collection(draw)
}

/** Draws one relation, or two or three that are joined. */
function relations(draw: Draw, depth: number): Relation {
  const { chance } = draw
  let left = source(draw, depth)
  const joins = chance.one([0, 0, 0, 1, 1, 1, 2])
  for (let made = 0; made < joins; made += 1) {
    const right = source(draw, depth - 1)
    const [own, other] = [listTerms(makeScope(left)), listTerms(makeScope(right))]
    const pairs = listPairs(own, other)
    if (pairs.length === 0) continue
    if (chance.happens(5) && left.kind === 'collection' && right.kind === 'collection') {
      left = { kind: 'join', word: 'CROSS JOIN', left, right, on: [] }
      continue
    }
    const word = chance.one(['JOIN', 'LEFT JOIN', 'LEFT JOIN', 'RIGHT JOIN', 'FULL JOIN'] as const)
    const on = [
      matched(draw, chance.one(pairs)),
      ...(chance.happens(25) ? [predicate(draw, own)] : []),
      ...(chance.happens(25) ? [predicate(draw, other)] : []),
      ...(chance.happens(15) && word !== 'FULL JOIN' ? apart(draw, own, other) : []),
    ]
    left = { kind: 'join', word, left, right, on }
  }
  return left
}

/** Draws equalities by which something is found now and then. */
function listPairs(own: readonly TypedTerm[], others: readonly TypedTerm[]): Equality[] {
  const keys = (terms: readonly TypedTerm[]) =>
    terms.filter(({ term, type }) =>
      type === 'json' ? term.kind === 'field' && !['n', 'm', 't', 'v'].includes(term.name) : true,
    )
  return keys(own).flatMap((one) =>
    keys(others)
      .filter(({ type }) => type === one.type && type !== 'boolean')
      .map((other) => ({
        kind: 'equal' as const,
        one: one.term,
        other: other.term,
        type: one.type,
      })),
  )
}

/** Draws two terms that may be compared without an equality. */
function apart({ chance }: Draw, own: readonly TypedTerm[], others: readonly TypedTerm[]): Test[] {
  const one = chance.one(own)
  const fitting = others.filter(
    ({ type }) => [type, one.type].includes('json') || type === one.type,
  )
  if (fitting.length === 0) return []
  return [{ kind: 'apart', one: one.term, other: chance.one(fitting).term }]
}

type Equality = { kind: 'equal'; one: Term; other: Term; type: Type }

/** Compares the values themselves, or the numbers that they are. */
function matched({ chance }: Draw, { kind, one, other, type }: Equality): Test {
  if (type !== 'json' || chance.happens(90)) return { kind, one, other }
  return { kind, one: { kind: 'number', of: one }, other: { kind: 'number', of: other } }
}

function scalar({ chance }: Draw, terms: readonly TypedTerm[]): Term {
  const { term, type } = chance.one(terms)
  const kind = chance.below(10)
  const others = terms.filter((each) => each.type === type)
  if (kind === 0) return { kind: 'either', one: term, other: chance.one(others).term }
  if (type === 'boolean' || kind > 3) return term
  if (kind === 1 && type !== 'text') return { kind: 'number', of: term }
  if (kind === 2 && type !== 'number') return { kind: 'text', of: term }
  return type === 'text' ? term : { kind: 'twice', of: term }
}

function predicate(draw: Draw, terms: readonly TypedTerm[]): Test {
  const { chance } = draw
  const { term, type } = chance.one(terms)
  const kind = chance.below(6)
  if (kind === 0) return { kind: 'known', term }
  if (kind === 1) {
    const [one, other] = [predicate(draw, terms), predicate(draw, terms)]
    return { kind: chance.one(['all', 'any'] as const), one, other }
  }
  if (kind === 2) return { kind: 'not', test: predicate(draw, terms) }
  const numbers = ['0', '1', '2.5', '-1']
  const texts = ['"b"', '"x"', '"7"']
  const limits = type === 'number' ? numbers : type === 'text' ? texts : [...numbers, ...texts]
  const sign = chance.one(['<', '>=', '<>', '='])
  return { kind: 'compare', term, sign, limit: chance.one(limits) }
}

function aggregate(draw: Draw, terms: readonly TypedTerm[]): Call {
  const { chance } = draw
  const filter = chance.happens(20) ? [predicate(draw, terms)] : []
  const { term, type } = chance.one(terms)
  const kind = chance.below(10)
  if (kind === 0) return { kind: 'rows', filter }
  if (kind === 1) {
    const name = chance.one(['bool_and', 'bool_or'] as const)
    return { kind: 'truth', name, of: predicate(draw, terms), filter }
  }
  const call = (name: (Call & { kind: 'call' })['name']): Call => {
    return { kind: 'call', name, of: term, filter }
  }
  if (kind === 2) return call('count')
  if (kind === 3) return call('count distinct')
  if (kind < 7 && (type === 'json' || type === 'number'))
    return call(chance.one(['sum', 'avg'] as const))
  return call(chance.one(['min', 'max'] as const))
}
