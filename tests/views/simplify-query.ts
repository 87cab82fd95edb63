import {
  type Call,
  type Column,
  isCall,
  isView,
  namedIn,
  type Query,
  type Relation,
  type Select,
  type Term,
  type Test,
} from './query-tree.ts'
import { eachSimpler, fewer } from './shrink.ts'

/** Definitions that are a little simpler. What they name may be gone: then they have no SQL. */
export function* simplerDefinition(query: Query): Generator<Query> {
  yield* simplerQuery(query)
  const common = new Map(
    namedIn(query).flatMap((one) => (isView(one) ? [] : [[one.name, one.query]])),
  )
  for (const [name, inner] of common)
    for (const simple of simplerQuery(inner))
      yield JSON.parse(JSON.stringify(query), (_key, part) =>
        part?.kind === 'named' && part.name === name ? { ...part, query: simple } : part,
      )
}

function* simplerQuery(query: Query): Generator<Query> {
  switch (query.kind) {
    case 'select':
      yield* simplerSelect(query)
      return
    case 'union':
      yield query.left
      yield query.right
      for (const left of simplerQuery(query.left)) yield { ...query, left }
      for (const right of simplerQuery(query.right)) yield { ...query, right }
      if (!query.all) yield { ...query, all: true }
      return
    case 'counted':
      yield query.query
      for (const inner of simplerQuery(query.query)) yield { ...query, query: inner }
  }
}

function* simplerSelect(select: Select): Generator<Query> {
  for (const { query } of innerOf(select.from)) yield query
  const { page, ...all } = select
  if (page !== undefined) {
    yield all
    for (const order of fewer(page.order, 1)) yield { ...select, page: { ...page, order } }
    if (page.offset > 0) yield { ...select, page: { ...page, offset: 0 } }
    if (page.limit > 1) yield { ...select, page: { ...page, limit: 1 } }
    for (const { by } of page.order.filter(({ ending }) => ending !== ''))
      yield { ...select, page: { ...page, order: [{ by, ending: '' }] } }
  }
  if (select.distinct) yield { ...select, distinct: false }
  for (const having of fewer(select.having)) yield { ...select, having }
  for (const where of fewer(select.where)) yield { ...select, where }
  if (select.columns.length > 0)
    for (const columns of fewer(select.columns, 1)) yield { ...select, columns }
  yield* flatter(select)
  for (const from of simplerRelation(select.from)) yield { ...select, from }
  for (const columns of eachSimpler(select.columns, simplerColumn)) yield { ...select, columns }
  for (const where of eachSimpler(select.where, simplerTest)) yield { ...select, where }
  for (const having of eachSimpler(select.having, simplerTest)) yield { ...select, having }
}

type Inner = Exclude<Relation, { kind: 'collection' | 'join' }>

function innerOf(relation: Relation): readonly Inner[] {
  if (relation.kind === 'join') return [...innerOf(relation.left), ...innerOf(relation.right)]
  return relation.kind === 'collection' ? [] : [relation]
}

/** Sub-queries that only give names to columns put into the query around them, their conditions aside. */
function* flatter(select: Select): Generator<Query> {
  for (const { as, query } of innerOf(select.from)) {
    if (query.kind !== 'select' || query.columns.some(({ value }) => isCall(value))) continue
    const values = new Map(query.columns.map(({ name, value }) => [name, value]))
    const { from } = query
    const whole = from.kind === 'join' ? '' : from.as
    yield JSON.parse(JSON.stringify(select), (_key, part) => {
      if (part?.kind === 'field' && part.of === as)
        return values.get(part.name) ?? { ...part, of: whole }
      return (part?.kind === 'query' || part?.kind === 'named') && part.as === as ? from : part
    })
  }
}

function* simplerRelation(relation: Relation): Generator<Relation> {
  switch (relation.kind) {
    case 'collection':
      return
    case 'named':
      yield { ...relation, kind: 'query' }
      return
    case 'query':
      for (const query of simplerQuery(relation.query)) yield { ...relation, query }
      return
    case 'join': {
      const { left, right, on, word } = relation
      yield left
      yield right
      for (const some of fewer(on, 1)) yield { ...relation, on: some }
      for (const one of ['JOIN', 'LEFT JOIN'] as const)
        if (weights[one] < weights[word]) yield { ...relation, word: one }
      for (const one of simplerRelation(left)) yield { ...relation, left: one }
      for (const one of simplerRelation(right)) yield { ...relation, right: one }
      for (const tests of eachSimpler(on, simplerTest)) yield { ...relation, on: tests }
    }
  }
}

const weights = { 'CROSS JOIN': 0, JOIN: 0, 'LEFT JOIN': 1, 'RIGHT JOIN': 2, 'FULL JOIN': 3 }

function* simplerColumn(column: Column): Generator<Column> {
  const { value } = column
  if (isCall(value)) for (const call of simplerCall(value)) yield { ...column, value: call }
  else for (const term of simplerTerm(value)) yield { ...column, value: term }
}

function* simplerCall(call: Call): Generator<Call> {
  if (call.kind !== 'rows') yield { kind: 'rows', filter: call.filter }
  for (const filter of fewer(call.filter)) yield { ...call, filter }
  for (const filter of eachSimpler(call.filter, simplerTest)) yield { ...call, filter }
  if (call.kind === 'truth') for (const of of simplerTest(call.of)) yield { ...call, of }
  if (call.kind === 'call') for (const of of simplerTerm(call.of)) yield { ...call, of }
}

function* simplerTest(test: Test): Generator<Test> {
  switch (test.kind) {
    case 'known':
      for (const term of simplerTerm(test.term)) yield { ...test, term }
      return
    case 'compare':
      yield { kind: 'known', term: test.term }
      for (const term of simplerTerm(test.term)) yield { ...test, term }
      return
    case 'all':
    case 'any':
      yield test.one
      yield test.other
      for (const one of simplerTest(test.one)) yield { ...test, one }
      for (const other of simplerTest(test.other)) yield { ...test, other }
      return
    case 'not':
      yield test.test
      for (const inner of simplerTest(test.test)) yield { ...test, test: inner }
      return
    case 'equal':
    case 'apart':
      for (const one of simplerTerm(test.one)) yield { ...test, one }
      for (const other of simplerTerm(test.other)) yield { ...test, other }
  }
}

function* simplerTerm(term: Term): Generator<Term> {
  switch (term.kind) {
    case 'field':
      return
    case 'either':
      yield term.one
      yield term.other
      return
    case 'number':
    case 'text':
    case 'twice':
      yield term.of
      for (const of of simplerTerm(term.of)) yield { ...term, of }
  }
}
