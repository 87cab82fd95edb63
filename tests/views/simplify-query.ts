import {
  type Call,
  type Column,
  isCall,
  isView,
  listNamed,
  type Query,
  type Relation,
  type Select,
  type Term,
  type Test,
} from './query-tree.ts'
import { iterateFewer, simplifyEach } from './shrink.ts'

/** Definitions that are a little simpler. The names in them may be gone: then they have no SQL. */
export function* simplifyDefinition(query: Query): Generator<Query> {
  yield* simplifyQuery(query)
  const common = new Map(
    listNamed(query).flatMap((one) => (isView(one) ? [] : [[one.name, one.query]])),
  )
  for (const [name, inner] of common)
    for (const simple of simplifyQuery(inner))
      yield JSON.parse(JSON.stringify(query), (_key, part) =>
        part?.kind === 'named' && part.name === name ? { ...part, query: simple } : part,
      )
}

function* simplifyQuery(query: Query): Generator<Query> {
  switch (query.kind) {
    case 'select':
      yield* simplifySelect(query)
      return
    case 'union':
      yield query.left
      yield query.right
      for (const left of simplifyQuery(query.left)) yield { ...query, left }
      for (const right of simplifyQuery(query.right)) yield { ...query, right }
      if (!query.all) yield { ...query, all: true }
      return
    case 'counted':
      yield query.query
      for (const inner of simplifyQuery(query.query)) yield { ...query, query: inner }
  }
}

function* simplifySelect(select: Select): Generator<Query> {
  for (const { query } of listInner(select.from)) yield query
  const { page, ...all } = select
  if (page !== undefined) {
    yield all
    for (const order of iterateFewer(page.order, 1)) yield { ...select, page: { ...page, order } }
    if (page.offset > 0) yield { ...select, page: { ...page, offset: 0 } }
    if (page.limit > 1) yield { ...select, page: { ...page, limit: 1 } }
    for (const { by } of page.order.filter(({ ending }) => ending !== ''))
      yield { ...select, page: { ...page, order: [{ by, ending: '' }] } }
  }
  if (select.distinct) yield { ...select, distinct: false }
  for (const having of iterateFewer(select.having)) yield { ...select, having }
  for (const where of iterateFewer(select.where)) yield { ...select, where }
  if (select.columns.length > 0)
    for (const columns of iterateFewer(select.columns, 1)) yield { ...select, columns }
  yield* flatter(select)
  for (const from of simplifyRelation(select.from)) yield { ...select, from }
  for (const columns of simplifyEach(select.columns, simplifyColumn)) yield { ...select, columns }
  for (const where of simplifyEach(select.where, simplifyTest)) yield { ...select, where }
  for (const having of simplifyEach(select.having, simplifyTest)) yield { ...select, having }
}

type Inner = Exclude<Relation, { kind: 'collection' | 'join' }>

function listInner(relation: Relation): readonly Inner[] {
  if (relation.kind === 'join') return [...listInner(relation.left), ...listInner(relation.right)]
  return relation.kind === 'collection' ? [] : [relation]
}

/** Moves sub-queries that only name columns into the query around them, without their conditions. */
function* flatter(select: Select): Generator<Query> {
  for (const { as, query } of listInner(select.from)) {
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

function* simplifyRelation(relation: Relation): Generator<Relation> {
  switch (relation.kind) {
    case 'collection':
      return
    case 'named':
      yield { ...relation, kind: 'query' }
      return
    case 'query':
      for (const query of simplifyQuery(relation.query)) yield { ...relation, query }
      return
    case 'join': {
      const { left, right, on, word } = relation
      yield left
      yield right
      for (const some of iterateFewer(on, 1)) yield { ...relation, on: some }
      for (const one of ['JOIN', 'LEFT JOIN'] as const)
        if (weights[one] < weights[word]) yield { ...relation, word: one }
      for (const one of simplifyRelation(left)) yield { ...relation, left: one }
      for (const one of simplifyRelation(right)) yield { ...relation, right: one }
      for (const tests of simplifyEach(on, simplifyTest)) yield { ...relation, on: tests }
    }
  }
}

const weights = { 'CROSS JOIN': 0, JOIN: 0, 'LEFT JOIN': 1, 'RIGHT JOIN': 2, 'FULL JOIN': 3 }

function* simplifyColumn(column: Column): Generator<Column> {
  const { value } = column
  if (isCall(value)) for (const call of simplifyCall(value)) yield { ...column, value: call }
  else for (const term of simplifyTerm(value)) yield { ...column, value: term }
}

function* simplifyCall(call: Call): Generator<Call> {
  if (call.kind !== 'rows') yield { kind: 'rows', filter: call.filter }
  for (const filter of iterateFewer(call.filter)) yield { ...call, filter }
  for (const filter of simplifyEach(call.filter, simplifyTest)) yield { ...call, filter }
  if (call.kind === 'truth') for (const of of simplifyTest(call.of)) yield { ...call, of }
  if (call.kind === 'call') for (const of of simplifyTerm(call.of)) yield { ...call, of }
}

function* simplifyTest(test: Test): Generator<Test> {
  switch (test.kind) {
    case 'known':
      for (const term of simplifyTerm(test.term)) yield { ...test, term }
      return
    case 'compare':
      yield { kind: 'known', term: test.term }
      for (const term of simplifyTerm(test.term)) yield { ...test, term }
      return
    case 'all':
    case 'any':
      yield test.one
      yield test.other
      for (const one of simplifyTest(test.one)) yield { ...test, one }
      for (const other of simplifyTest(test.other)) yield { ...test, other }
      return
    case 'not':
      yield test.test
      for (const inner of simplifyTest(test.test)) yield { ...test, test: inner }
      return
    case 'equal':
    case 'apart':
      for (const one of simplifyTerm(test.one)) yield { ...test, one }
      for (const other of simplifyTerm(test.other)) yield { ...test, other }
  }
}

function* simplifyTerm(term: Term): Generator<Term> {
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
      for (const of of simplifyTerm(term.of)) yield { ...term, of }
  }
}
