import { invalid } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import { isScalar } from '../../query/operand.ts'
import type { NamedJoin, Sent } from './clauses.ts'
import { inside, type Place } from './definition-place.ts'
import { joined, type MarkedSql, marked } from './marked-sql.ts'
import { givenName, modelOf, relationSql } from './print-names.ts'
import type { Json } from './view-definition.ts'

/** A relation with its joins, and the SQL of the names that it gives. */
export type From = {
  readonly json: Json
  readonly sql: MarkedSql
  readonly relations: readonly string[]
}

/** What `from` says: a source, or a list of sources of which every combination counts. */
export function readFrom({ value, place }: Sent): From {
  if (!Array.isArray(value)) return readRelation(value, place)
  if (value.length === 0) throw invalid(place.pointer, 'is empty')
  const parts = value.map((item: unknown, index) => readRelation(item, inside(place, index)))
  return {
    json: parts.map((each) => each.json),
    sql: joined(
      parts.map((each) => each.sql),
      ', ',
    ),
    relations: parts.flatMap((each) => each.relations),
  }
}

/** A source: a name, {name: source or query}, {from, joins}, or a query without a name. */
function readRelation(value: unknown, place: Place): From {
  const { pointer } = place
  if (typeof value === 'string') return named(value, place)
  if (!isRecord(value))
    throw invalid(pointer, 'must be app::collection, {"name": source} or a query')
  const keys = Object.keys(value).sort().join()
  if (keys === 'from,joins') {
    const first = readRelation(value.from, inside(place, 'from'))
    const { sql, ...all } = withJoins(first, { value: value.joins, place: inside(place, 'joins') })
    return { ...all, json: { from: first.json, joins: all.json }, sql: ['(', sql, ')'] }
  }
  const [[name, of] = [], second] = Object.entries(value)
  // A query of one member only has a list in it.
  const isNamed = typeof of === 'string' || isRecord(of)
  if (name !== undefined && second === undefined && isNamed)
    return renamed(name, { value: of, place: inside(place, name) })
  const { json, sql } = place.query(value, place)
  return { json, sql: ['(', sql, ')'], relations: [] }
}

function named(name: string, place: Place): From {
  const { model, sql } = source(name, place)
  return { json: model, sql: marked(place.pointer, sql), relations: [sql] }
}

function renamed(name: string, { value, place }: Sent): From {
  const alias = givenName(name, place.pointer)
  if (typeof value === 'string') {
    const { model, sql } = source(value, place)
    return {
      json: { [name]: model },
      sql: marked(place.pointer, `${sql} AS ${alias}`),
      relations: [alias],
    }
  }
  const { json, sql } = place.query(value, place)
  return { json: { [name]: json }, sql: ['(', sql, `) AS ${alias}`], relations: [alias] }
}

/** A collection, or what `with` gave a name; a bare name of none of these is a collection of the application. */
function source(name: string, { app, tables, models, pointer }: Place) {
  if (tables.has(name)) return { model: name, sql: relationSql(name, pointer) }
  const model = modelOf(name, app, pointer)
  models.add(model)
  return { model, sql: relationSql(model, pointer) }
}

const words = new Map([
  ['inner', 'JOIN'],
  ['left', 'LEFT JOIN'],
  ['right', 'RIGHT JOIN'],
  ['full', 'FULL JOIN'],
  ['cross', 'CROSS JOIN'],
])

/** The relation with a list of {join, type, on} after it; the JSON is that of the list. */
export function withJoins(first: From, { value, place }: Sent): From {
  if (!Array.isArray(value)) throw invalid(place.pointer, 'must be a list of {join, type, on}')
  let { sql, relations } = first
  const json = value.map((item: unknown, index): Json => {
    const at = inside(place, index)
    if (!isRecord(item)) throw invalid(at.pointer, 'must be {join, type, on}')
    const foreign = Object.keys(item).find((key) => !['join', 'type', 'on'].includes(key))
    if (foreign !== undefined)
      throw invalid(inside(at, foreign).pointer, 'is not a part of a join: join, type, on')
    const { type = 'inner', on } = item
    const word = typeof type === 'string' ? words.get(type) : undefined
    if (word === undefined || typeof type !== 'string')
      throw invalid(inside(at, 'type').pointer, `must be one of ${[...words.keys()].join(', ')}`)
    if ((type === 'cross') !== (on === undefined))
      throw invalid(at.pointer, type === 'cross' ? 'has on, but is a cross join' : 'needs on')
    const right = readRelation(item.join, inside(at, 'join'))
    relations = [...relations, ...right.relations]
    const test =
      on === undefined ? undefined : at.expression(on, { ...inside(at, 'on'), relations })
    sql = [sql, ` ${word} `, right.sql, test === undefined ? '' : [' ON ', test.sql]]
    return { join: right.json, type, ...(test === undefined ? {} : { on: test.json }) }
  })
  return { json, sql, relations }
}

/** A join of a short form as one of the grammar; `parent` is the path of the record that it is joined to. */
export function grammarJoin(join: NamedJoin, names: { alias: string; parent: string }): Json {
  const { value: model, place } = join.model
  if (typeof model !== 'string') throw invalid(place.pointer, 'must be a collection')
  const isOwnName = model === names.alias || model === `${place.app}::${names.alias}`
  const type = join.type === undefined ? 'left' : join.type.value
  if (typeof type !== 'string' || type === 'cross' || !words.has(type))
    throw invalid(join.type?.place.pointer ?? '', 'must be inner, left, right or full')
  return { join: isOwnName ? model : { [names.alias]: model }, type, on: onOf(join.on, names) }
}

function onOf({ value, place }: Sent, { alias, parent }: { alias: string; parent: string }): Json {
  if (!isRecord(value) || Object.keys(value).length === 0)
    throw invalid(place.pointer, 'must say what belongs together: {"field": "$data.field"}')
  const entries = Object.entries(value)
  if (!entries.every(([key, item]) => isScalar(item) && !key.startsWith('$')))
    return { $find: jsonOf(value), of: alias, data: parent }
  const tests = entries.map(([field, item]): Json => {
    const path = `${alias}.${field}`
    if (typeof item !== 'string') return { $eq: [path, isScalar(item) ? item : null] }
    const other = /^\$(?:data|parent)\.(.+)$/s.exec(item)?.[1]
    return { $eq: [path, other === undefined ? { $literal: item } : `${parent}.${other}`] }
  })
  const [only = null] = tests
  return tests.length === 1 ? only : { $and: tests }
}

/** A value that came as JSON. */
function jsonOf(value: unknown): Json {
  return JSON.parse(JSON.stringify(value))
}
