import { invalid } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import type { Clauses, Sent } from './clauses.ts'
import { inside, type Place, type Read } from './definition-place.ts'
import { joined, type MarkedSql, marked } from './marked-sql.ts'
import { givenName, relationSql } from './print-names.ts'
import type { Sources } from './read-sources.ts'
import { counted, type Owner, owned } from './short-forms.ts'
import type { Json } from './view-definition.ts'

type Column = {
  readonly json: Json
  readonly sql: MarkedSql
  /** Undefined of `*`. */
  readonly name: string | undefined
}

/** The columns of a query: those of `select`, else what is grouped by; with the aggregates. */
export function readColumns(
  clauses: Clauses,
  { sources, place }: { readonly sources: Sources | undefined; readonly place: Place },
): {
  readonly json: readonly Json[]
  readonly sql: MarkedSql
  readonly names: ReadonlySet<string>
} {
  const owner = sources?.owner
  const aggregates = aggregateColumns(clauses.of('aggregate'), sources)
  const selected = selectedItems(clauses.of('select'))
  const items = selected ?? groupItems(clauses.of('group_by'), aggregates.length > 0)
  const listed = items.flatMap(({ value, place: at }) => {
    const aggregate = aggregates.find((each) => each.name === value)
    return aggregate === undefined ? columnsOf(value, owner, at) : [aggregate]
  })
  const columns = [...listed, ...aggregates.filter((each) => !listed.includes(each))]
  if (columns.length === 0) {
    if (owner !== undefined)
      throw invalid(place.pointer, 'joins records of which it gives nothing; name fields in select')
    columns.push({ json: '*', sql: '*', name: undefined })
  }
  return {
    json: columns.map((each) => each.json),
    sql: joined(
      columns.map((each) => each.sql),
      ', ',
    ),
    names: new Set(columns.flatMap(({ name }) => (name === undefined ? [] : [name]))),
  }
}

/** The items of `select`; undefined where it says nothing. */
function selectedItems(select: Sent | undefined): readonly Sent[] | undefined {
  if (select === undefined) return undefined
  const { value, place } = select
  if (typeof value === 'string') return [select]
  if (Array.isArray(value)) return value.length === 0 ? undefined : itemsOf(value, place)
  if (!isRecord(value))
    throw invalid(place.pointer, 'must be a list of fields and {"name": expression}')
  const entries = Object.entries(value)
  if (entries.length === 0) return undefined
  return entries.map(([name, item]) => {
    const at = inside(place, name)
    if (item === false) throw invalid(at.pointer, 'leaves a field out; name those that are given')
    return item === true
      ? { value: name, place: at }
      : { value: { [name]: item }, place: { ...at, isMade: true } }
  })
}

function groupItems(groups: Sent | undefined, hasAggregates: boolean): readonly Sent[] {
  if (groups === undefined) return []
  const { value, place } = groups
  const items = Array.isArray(value) ? itemsOf(value, place) : [groups]
  const other = items.find((item) => typeof item.value !== 'string')
  if (other !== undefined)
    throw invalid(other.place.pointer, 'has no name; give it one in select: {"name": expression}')
  if (items.length === 0 && !hasAggregates) throw invalid(place.pointer, 'is empty')
  return items
}

function itemsOf(values: readonly unknown[], place: Place): readonly Sent[] {
  return values.map((value, index) => ({ value, place: inside(place, index) }))
}

function columnsOf(item: unknown, owner: Owner | undefined, place: Place): readonly Column[] {
  const { pointer } = place
  if (item === '*') return [{ json: item, sql: marked(pointer, '*'), name: undefined }]
  if (typeof item === 'string' && item.endsWith('.*')) {
    const sql = marked(pointer, `${relationSql(item.slice(0, -2), pointer)}.*`)
    return [{ json: item, sql, name: undefined }]
  }
  if (typeof item === 'string') {
    const { json, sql } = place.expression(owned(item, owner, place), place)
    return [{ json, sql, name: item.split('.').at(-1) }]
  }
  if (!isRecord(item) || Object.keys(item).length === 0)
    throw invalid(pointer, 'must be the path of a field, *, or {"name": expression}')
  return Object.entries(item).map(([name, value]) => {
    const at = inside(place, name)
    const alias = givenName(name, at.pointer)
    const of = typeof value === 'string' ? owned(value, owner, at) : value
    return column(name, alias, at.expression(of, at))
  })
}

function column(name: string, alias: string, { json, sql }: Read): Column {
  return { json: { [name]: json }, sql: [sql, ` AS ${alias}`], name }
}

/** Aggregates by name, as requests have them: {"total": {"$sum": "volume"}}. */
function aggregateColumns(
  aggregate: Sent | undefined,
  sources: Sources | undefined,
): readonly Column[] {
  if (aggregate === undefined) return []
  const { value, place } = aggregate
  if (!isRecord(value)) throw invalid(place.pointer, 'must be an object of aggregates by name')
  return Object.entries(value).map(([name, call]) => {
    const at = inside(place, name)
    return column(name, givenName(name, at.pointer), requestAggregate(call, sources, at))
  })
}

/** The sum of no number is 0 here, as in requests. */
function requestAggregate(call: unknown, sources: Sources | undefined, place: Place): Read {
  const [[name, of] = [], second] = isRecord(call) ? Object.entries(call) : []
  if (name === undefined || second !== undefined) return place.expression(call, place)
  const at = inside(place, name)
  const owner = sources?.owner
  const path =
    typeof of !== 'string'
      ? of
      : name === '$count'
        ? counted(of, { owner, root: sources?.root }, at)
        : owned(of, owner, at)
  const read = place.expression({ [name]: path }, place)
  if (name !== '$sum') return read
  return {
    json: { $coalesce: [read.json, 0] },
    sql: ['pg_catalog."coalesce"(', read.sql, ', 0)'],
  }
}
