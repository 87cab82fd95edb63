import { makeInvalidFault } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import { isScalar } from '../../query/operand.ts'
import type { NamedJoin, SentValue } from './clauses.ts'
import { type DefinitionPlace, enterMember, type ReadPart } from './definition-place.ts'
import { joinSql, type MarkedSql, markSql } from './marked-sql.ts'
import { printGivenName, printRelation, toModel } from './print-names.ts'
import { isRowSource, readRowSource } from './read-row-source.ts'
import type { Json } from './view-definition.ts'

/** A relation with its joins, and the SQL of the names that it introduces. */
export type From = {
  readonly json: Json
  readonly sql: MarkedSql
  readonly relations: readonly string[]
}

/** Reads `from`: a source, or a list of sources of which every combination counts. */
export function readFrom({ value, place }: SentValue): From {
  if (!Array.isArray(value)) return readRelation(value, place)
  if (value.length === 0) throw makeInvalidFault(place.pointer, 'is empty')
  const parts = value.map((item: unknown, index) => readRelation(item, enterMember(place, index)))
  return {
    json: parts.map((each) => each.json),
    sql: joinSql(
      parts.map((each) => each.sql),
      ', ',
    ),
    relations: parts.flatMap((each) => each.relations),
  }
}

/** Reads a source: a name, {name: source or query}, {from, joins}, or a query without a name. */
function readRelation(value: unknown, place: DefinitionPlace): From {
  const { pointer } = place
  if (typeof value === 'string') return named(value, place)
  if (!isRecord(value))
    throw makeInvalidFault(pointer, 'must be app::collection, {"name": source} or a query')
  const keys = Object.keys(value).sort().join()
  if (keys === 'from,joins') {
    const first = readRelation(value.from, enterMember(place, 'from'))
    const { sql, ...all } = addJoins(first, {
      value: value.joins,
      place: enterMember(place, 'joins'),
    })
    return { ...all, json: { from: first.json, joins: all.json }, sql: ['(', sql, ')'] }
  }
  const { source: only, columns } = splitColumns(value, place)
  const [[name, of] = [], second] = Object.entries(only)
  if (isRowSource(value)) {
    const { json, sql } = readRowSource(value, place)
    return { json, sql, relations: [] }
  }
  // A query of one member only has a list in it.
  const isNamed = typeof of === 'string' || isRecord(of)
  if (name !== undefined && second === undefined && isNamed)
    return renamed(name, { value: of, place: enterMember(place, name) }, columns)
  const { json, sql } = place.query(value, place)
  return { json, sql: ['(', sql, ')'], relations: [] }
}

function named(name: string, place: DefinitionPlace): From {
  const { model, sql } = source(name, place)
  return { json: model, sql: markSql(place.pointer, sql), relations: [sql] }
}

function renamed(name: string, { value, place }: SentValue, columns: NamedColumns): From {
  const alias = printGivenName(name, place.pointer)
  if (typeof value === 'string') {
    const { model, sql } = source(value, place)
    return {
      json: { [name]: model, ...columns.json },
      sql: [markSql(place.pointer, `${sql} AS ${alias}`), columns.sql],
      relations: [alias],
    }
  }
  const { json, sql } = readNamed(value, place)
  return {
    json: { [name]: json, ...columns.json },
    sql: [sql, ` AS ${alias}`, columns.sql],
    relations: [alias],
  }
}

/** Reads a query, {"lateral": query} or a function that gives rows. */
function readNamed(value: unknown, place: DefinitionPlace): ReadPart {
  if (isRowSource(value)) return readRowSource(value, place)
  const isLateral = isRecord(value) && Object.keys(value).join() === 'lateral'
  const { json, sql } = isLateral
    ? place.query(value.lateral, enterMember(place, 'lateral'))
    : place.query(value, place)
  return {
    json: isLateral ? { lateral: json } : json,
    sql: [isLateral ? 'LATERAL (' : '(', sql, ')'],
  }
}

/** The names of columns behind an alias. */
export type NamedColumns = {
  readonly json: { readonly columns?: readonly string[] }
  readonly sql: MarkedSql
}

/** Takes the names of columns, `columns`, from an object that names a source. */
export function splitColumns(
  value: Readonly<Record<string, unknown>>,
  place: DefinitionPlace,
): { readonly source: Readonly<Record<string, unknown>>; readonly columns: NamedColumns } {
  const { columns: sent, ...source } = value
  if (!Array.isArray(sent) || Object.keys(source).length !== 1)
    return { source: value, columns: { json: {}, sql: '' } }
  const { json, list } = readNames(sent, enterMember(place, 'columns'))
  return { source, columns: { json: { columns: json }, sql: [' (', list, ')'] } }
}

/** Returns a collection or a table that `with` named; any other bare name is a collection of the application. */
function source(name: string, { app, tables, models, pointer }: DefinitionPlace) {
  if (tables.has(name)) return { model: name, sql: printRelation(name, pointer) }
  const model = toModel(name, app, pointer)
  models.add(model)
  return { model, sql: printRelation(model, pointer) }
}

const words = new Map([
  ['inner', 'JOIN'],
  ['left', 'LEFT JOIN'],
  ['right', 'RIGHT JOIN'],
  ['full', 'FULL JOIN'],
  ['cross', 'CROSS JOIN'],
])

/** Adds a list of {join, type, on} to the relation; the JSON is that of the list. */
export function addJoins(first: From, { value, place }: SentValue): From {
  if (!Array.isArray(value))
    throw makeInvalidFault(place.pointer, 'must be a list of {join, type, on}')
  let { sql, relations } = first
  const json = value.map((item: unknown, index): Json => {
    const at = enterMember(place, index)
    if (!isRecord(item)) throw makeInvalidFault(at.pointer, 'must be {join, type, on}')
    const foreign = Object.keys(item).find((key) => !joinMembers.includes(key))
    if (foreign !== undefined)
      throw makeInvalidFault(
        enterMember(at, foreign).pointer,
        `is not a part of a join: ${joinMembers.join(', ')}`,
      )
    const { type = 'inner', on, using } = item
    const word = typeof type === 'string' ? words.get(type) : undefined
    if (word === undefined || typeof type !== 'string')
      throw makeInvalidFault(
        enterMember(at, 'type').pointer,
        `must be one of ${[...words.keys()].join(', ')}`,
      )
    const tests = [on, using].filter((each) => each !== undefined)
    if (tests.length !== (type === 'cross' ? 0 : 1))
      throw makeInvalidFault(
        at.pointer,
        type === 'cross' ? 'has on or using, but is a cross join' : 'needs on, or using',
      )
    const right = readRelation(item.join, enterMember(at, 'join'))
    relations = [...relations, ...right.relations]
    const test =
      on === undefined ? undefined : at.expression(on, { ...enterMember(at, 'on'), relations })
    const shared = using === undefined ? undefined : readNames(using, enterMember(at, 'using'))
    const behind =
      test !== undefined ? [' ON ', test.sql] : shared ? [' USING (', shared.list, ')'] : ''
    sql = [sql, ` ${word} `, right.sql, behind]
    return {
      join: right.json,
      type,
      ...(test === undefined ? {} : { on: test.json }),
      ...(shared === undefined ? {} : { using: shared.json }),
    }
  })
  return { json, sql, relations }
}

const joinMembers: readonly string[] = ['join', 'type', 'on', 'using']

function readNames(value: unknown, place: DefinitionPlace) {
  if (!Array.isArray(value) || value.length === 0)
    throw makeInvalidFault(place.pointer, 'must be a list of names')
  const names = value.map((name: unknown, index) => {
    const { pointer } = enterMember(place, index)
    if (typeof name !== 'string') throw makeInvalidFault(pointer, 'must be a name')
    return { json: name, sql: printGivenName(name, pointer) }
  })
  const list = markSql(place.pointer, names.map(({ sql }) => sql).join(', '))
  return { json: names.map(({ json }) => json), list }
}

/** Turns a join of a short form into one of the grammar; `parent` is the path of the record that it is joined to. */
export function toGrammarJoin(join: NamedJoin, names: { alias: string; parent: string }): Json {
  const { value: model, place } = join.model
  if (typeof model !== 'string') throw makeInvalidFault(place.pointer, 'must be a collection')
  const isOwnName = model === names.alias || model === `${place.app}::${names.alias}`
  const type = join.type === undefined ? 'left' : join.type.value
  if (typeof type !== 'string' || type === 'cross' || !words.has(type))
    throw makeInvalidFault(join.type?.place.pointer ?? '', 'must be inner, left, right or full')
  return {
    join: isOwnName ? model : { [names.alias]: model },
    type,
    on: toGrammarOn(join.on, names),
  }
}

function toGrammarOn(
  { value, place }: SentValue,
  { alias, parent }: { alias: string; parent: string },
): Json {
  if (!isRecord(value) || Object.keys(value).length === 0)
    throw makeInvalidFault(
      place.pointer,
      'must say which fields are equal: {"field": "$data.field"}',
    )
  const entries = Object.entries(value)
  if (!entries.every(([key, item]) => isScalar(item) && !key.startsWith('$')))
    return { $find: copyJson(value), of: alias, data: parent }
  const tests = entries.map(([field, item]): Json => {
    const path = `${alias}.${field}`
    if (typeof item !== 'string') return { $eq: [path, isScalar(item) ? item : null] }
    const other = /^\$(?:data|parent)\.(.+)$/s.exec(item)?.[1]
    return { $eq: [path, other === undefined ? { $literal: item } : `${parent}.${other}`] }
  })
  const [only = null] = tests
  return tests.length === 1 ? only : { $and: tests }
}

/** Copies a value that came as JSON. */
function copyJson(value: unknown): Json {
  return JSON.parse(JSON.stringify(value))
}
