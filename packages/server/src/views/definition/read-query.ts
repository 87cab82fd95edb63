import { limits } from '@tollbase/contract/limits'
import { makeInvalidFault } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import { type Clauses, readClauses, type SentValue } from './clauses.ts'
import { type DefinitionPlace, enterMember } from './definition-place.ts'
import { readFind } from './find-operator.ts'
import { joinSql, type MarkedSql, markSql } from './marked-sql.ts'
import { printGivenName } from './print-names.ts'
import { readColumns } from './read-columns.ts'
import { splitColumns } from './read-from.ts'
import { readGroups } from './read-groups.ts'
import { readOrder } from './read-order.ts'
import { readSources } from './read-sources.ts'
import { expandOrder, isEmptyFind, isExpression, type PathOwner } from './short-forms.ts'
import type { Json, ViewDefinition } from './view-definition.ts'

export type ReadQuery = { readonly json: ViewDefinition; readonly sql: MarkedSql }

/** Reads the query of a definition, or of a part of one. */
export function readQuery(value: unknown, place: DefinitionPlace): ReadQuery {
  return readQueryParts([{ value, place: { ...place, relations: [] } }], undefined)
}

/**
 * Reads the query that several objects state together, at the place of the first. `source` is read if none of them
 * names one.
 */
export function readQueryParts(
  parts: readonly [SentValue, ...SentValue[]],
  source: SentValue | undefined,
): ReadQuery {
  const [{ value, place }] = parts
  if (!isRecord(value))
    throw makeInvalidFault(place.pointer, 'must be an object: the query of a view')
  const set = Object.keys(value).find((key) => setOperations.has(key))
  if (set === undefined) {
    const { json, sql } = readSelect(readClauses(parts), place, source)
    return { json, sql: markSql(place.pointer, sql) }
  }
  const { value: others, place: at } = parts[1] ?? {}
  const [beside] = isRecord(others) ? Object.keys(others) : []
  if (at !== undefined && beside !== undefined)
    throw makeInvalidFault(enterMember(at, beside).pointer, `cannot stand beside ${set}`)
  const { json, sql } = readSet(set, value, place)
  return { json, sql: markSql(place.pointer, sql) }
}

/** The set operations of two queries or more, by name. */
export const setOperations: ReadonlyMap<string, string> = new Map([
  ['union', 'UNION'],
  ['union_all', 'UNION ALL'],
  ['intersect', 'INTERSECT'],
  ['intersect_all', 'INTERSECT ALL'],
  ['except', 'EXCEPT'],
  ['except_all', 'EXCEPT ALL'],
])

function readSet(
  name: string,
  value: Readonly<Record<string, unknown>>,
  outer: DefinitionPlace,
): ReadQuery {
  const { [name]: queries, ...others } = value
  const foreign = Object.keys(others).find((key) => setOperations.has(key))
  if (foreign !== undefined)
    throw makeInvalidFault(outer.pointer, `has both ${name} and ${foreign}`)
  const clauses = readClauses([{ value: others, place: outer }])
  const place = { ...outer, relations: [] }
  const common = readWith(clauses.find('with'), place)
  const at = enterMember(common.place, name)
  if (!Array.isArray(queries) || queries.length < 2)
    throw makeInvalidFault(at.pointer, 'must be a list of two queries or more')
  const [join] = clauses.joins
  if (join !== undefined)
    throw makeInvalidFault(join.on.place.pointer, `cannot stand beside ${name}`)
  const [clause] = alone.flatMap((each) => clauses.find(each) ?? [])
  if (clause !== undefined)
    throw makeInvalidFault(
      clause.place.pointer,
      `cannot stand beside ${name}; it belongs into its queries`,
    )
  const reads = queries.map((query: unknown, index) => at.query(query, enterMember(at, index)))
  const page = readPage(clauses, { owner: undefined, names: new Set(), place: common.place })
  return {
    json: { ...common.json, [name]: reads.map((each) => each.json), ...page.json },
    sql: [
      common.sql,
      joinSql(
        reads.map((each) => ['(', each.sql, ')']),
        ` ${setOperations.get(name)} `,
      ),
      page.sql,
    ],
  }
}

/** The clauses of one SELECT that a set operation cannot have. */
const alone = [
  'select',
  'distinct',
  'distinct_on',
  'from',
  'joins',
  'join',
  'find',
  'where',
  'group_by',
  'aggregate',
  'having',
] as const

function readSelect(
  clauses: Clauses,
  outer: DefinitionPlace,
  source: SentValue | undefined,
): ReadQuery {
  const common = readWith(clauses.find('with'), outer)
  const sources = readSources(clauses, { source, place: common.place })
  const place = { ...common.place, relations: sources?.relations ?? [] }
  const owner = sources?.owner
  const at = (sent: SentValue): DefinitionPlace => ({
    ...sent.place,
    relations: place.relations,
    tables: place.tables,
  })
  const scoped: Clauses = {
    ...clauses,
    find: (name) => {
      const sent = clauses.find(name)
      return sent === undefined ? undefined : { value: sent.value, place: at(sent) }
    },
  }
  const columns = readColumns(scoped, { sources, place })
  const distinct = readFlag(scoped.find('distinct'))
  const on = readGroups(scoped.find('distinct_on'), owner)
  if (distinct && on !== undefined)
    throw makeInvalidFault(place.pointer, 'has both distinct and distinct_on')
  const filter = readFilter(scoped)
  const groups = readGroups(scoped.find('group_by'), owner)
  const havingSent = scoped.find('having')
  const having = havingSent?.place.expression(havingSent.value, havingSent.place)
  const page = readPage(scoped, { owner, names: columns.names, place })
  return {
    json: {
      ...common.json,
      select: columns.json,
      ...(distinct ? { distinct } : {}),
      ...(on === undefined ? {} : { distinct_on: on.json }),
      ...sources?.json,
      ...filter.json,
      ...(groups === undefined ? {} : { group_by: groups.json }),
      ...(having === undefined ? {} : { having: having.json }),
      ...page.json,
    },
    sql: [
      common.sql,
      distinct ? 'SELECT DISTINCT ' : 'SELECT ',
      on === undefined ? '' : ['DISTINCT ON (', on.sql, ') '],
      columns.sql,
      sources === undefined ? '' : ['\nFROM ', sources.sql],
      filter.sql,
      groups === undefined ? '' : ['\nGROUP BY ', groups.sql],
      having === undefined ? '' : ['\nHAVING ', having.sql],
      page.sql,
    ],
  }
}

function readWith(sent: SentValue | undefined, place: DefinitionPlace) {
  if (sent === undefined) return { json: {}, sql: '', place }
  const { value, place: at } = sent
  if (!Array.isArray(value) || value.length === 0)
    throw makeInvalidFault(at.pointer, 'must be a list of {"name": query}')
  // One set that grows: each of them may read those before it.
  const names = new Set(place.tables)
  const tables = value.map((item: unknown, index) => {
    const own = enterMember(at, index)
    const { source, columns } = splitColumns(isRecord(item) ? item : {}, own)
    const [[name, query] = [], second] = Object.entries(source)
    if (name === undefined || second !== undefined)
      throw makeInvalidFault(own.pointer, 'must be {"name": query}')
    const named = enterMember(own, name)
    const alias = printGivenName(name, named.pointer)
    const read = named.query(query, { ...named, tables: names })
    names.add(name)
    return {
      json: { [name]: read.json, ...columns.json },
      sql: [alias, columns.sql, ' AS (', read.sql, ')'],
    }
  })
  const sql = joinSql(
    tables.map((each) => each.sql),
    ',\n',
  )
  const json: Json = tables.map((each) => each.json)
  return { json: { with: json }, sql: ['WITH ', sql, '\n'], place: { ...place, tables: names } }
}

function readFlag(sent: SentValue | undefined): boolean {
  if (sent === undefined) return false
  if (typeof sent.value !== 'boolean')
    throw makeInvalidFault(sent.place.pointer, 'must be true or false')
  return sent.value
}

/** Reads `find`, and `where`, which may be an expression or conditions like those of find. */
function readFilter(clauses: Clauses): { readonly json: ViewDefinition; readonly sql: MarkedSql } {
  const [find, where] = [clauses.find('find'), clauses.find('where')]
  const isTest = where !== undefined && isExpression(where.value)
  const finds = [find, isTest ? undefined : where].flatMap((sent) =>
    sent === undefined || isEmptyFind(sent.value) ? [] : [readFind(sent.value, sent.place)],
  )
  const test = isTest ? where.place.expression(where.value, where.place) : undefined
  const tests = [...finds, ...(test === undefined ? [] : [test])].map((each) => each.sql)
  const [only, second] = finds.map((each) => each.json)
  return {
    json: {
      ...(only === undefined
        ? {}
        : { find: second === undefined ? only : { and: [only, second] } }),
      ...(test === undefined ? {} : { where: test.json }),
    },
    sql: tests.length === 0 ? '' : ['\nWHERE ', joinSql(tests, ' AND ')],
  }
}

function readPage(
  clauses: Clauses,
  options: { owner: PathOwner | undefined; names: ReadonlySet<string>; place: DefinitionPlace },
): { readonly json: ViewDefinition; readonly sql: MarkedSql } {
  const sent = clauses.find('order_by')
  const list = sent === undefined ? undefined : expandOrder(sent, options)
  const order = list === undefined ? undefined : readOrder(list.value, list.place)
  const isOrdered = order !== undefined && order.json.length > 0
  const limit = readCount(clauses.find('limit'), limits.rowsMax)
  const offset = readCount(clauses.find('offset'), limits.offsetMax) ?? 0
  return {
    json: {
      ...(isOrdered ? { order_by: order.json } : {}),
      ...(limit === undefined ? {} : { limit }),
      ...(offset === 0 ? {} : { offset }),
    },
    sql: [
      isOrdered ? ['\nORDER BY ', order.sql] : '',
      limit === undefined ? '' : `\nLIMIT ${limit}`,
      offset === 0 ? '' : ` OFFSET ${offset}`,
    ],
  }
}

function readCount(sent: SentValue | undefined, most: number): number | undefined {
  if (sent === undefined) return undefined
  const { value, place } = sent
  const isCount = typeof value === 'number' && Number.isInteger(value) && value >= 0
  if (!isCount || value > most)
    throw makeInvalidFault(place.pointer, `must be a whole number from 0 to ${most}`)
  return value
}
