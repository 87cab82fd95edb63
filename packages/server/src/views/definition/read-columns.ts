import { makeInvalidFault } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import type { Clauses, SentValue } from './clauses.ts'
import { type DefinitionPlace, enterMember, type ReadPart } from './definition-place.ts'
import { joinSql, type MarkedSql, markSql } from './marked-sql.ts'
import { printGivenName, printRelation } from './print-names.ts'
import type { ReadSources } from './read-sources.ts'
import { expandCounted, type PathOwner, qualifyPath } from './short-forms.ts'
import type { Json } from './view-definition.ts'

type Column = {
  readonly json: Json
  readonly sql: MarkedSql
  /** The name; undefined for `*`. */
  readonly name: string | undefined
}

/** Reads the columns of a query: those of `select`, else those grouped by; with the aggregates. */
export function readColumns(
  clauses: Clauses,
  {
    sources,
    place,
  }: { readonly sources: ReadSources | undefined; readonly place: DefinitionPlace },
): {
  readonly json: readonly Json[]
  readonly sql: MarkedSql
  readonly names: ReadonlySet<string>
} {
  const owner = sources?.owner
  const aggregates = aggregateColumns(clauses.find('aggregate'), sources)
  const selected = selectedItems(clauses.find('select'))
  const items = selected ?? groupItems(clauses.find('group_by'), aggregates.length > 0)
  const listed = items.flatMap(({ value, place: at }) => {
    const aggregate = aggregates.find((each) => each.name === value)
    return aggregate === undefined ? readItem(value, owner, at) : [aggregate]
  })
  const columns = [...listed, ...aggregates.filter((each) => !listed.includes(each))]
  if (columns.length === 0) {
    if (owner !== undefined)
      throw makeInvalidFault(
        place.pointer,
        'joins records of which it gives nothing; name fields in select',
      )
    columns.push({ json: '*', sql: '*', name: undefined })
  }
  return {
    json: columns.map((each) => each.json),
    sql: joinSql(
      columns.map((each) => each.sql),
      ', ',
    ),
    names: new Set(columns.flatMap(({ name }) => (name === undefined ? [] : [name]))),
  }
}

/** Lists the items of `select`; undefined if it says nothing. */
function selectedItems(select: SentValue | undefined): readonly SentValue[] | undefined {
  if (select === undefined) return undefined
  const { value, place } = select
  if (typeof value === 'string') return [select]
  if (Array.isArray(value)) return value.length === 0 ? undefined : toItems(value, place)
  if (!isRecord(value))
    throw makeInvalidFault(place.pointer, 'must be a list of fields and {"name": expression}')
  const entries = Object.entries(value)
  if (entries.length === 0) return undefined
  return entries.map(([name, item]) => {
    const at = enterMember(place, name)
    if (item === false)
      throw makeInvalidFault(at.pointer, 'leaves a field out; name those that are given')
    return item === true
      ? { value: name, place: at }
      : { value: { [name]: item }, place: { ...at, isMade: true } }
  })
}

function groupItems(groups: SentValue | undefined, hasAggregates: boolean): readonly SentValue[] {
  if (groups === undefined) return []
  const { value, place } = groups
  const items = Array.isArray(value) ? toItems(value, place) : [groups]
  const other = items.find((item) => typeof item.value !== 'string')
  if (other !== undefined)
    throw makeInvalidFault(
      other.place.pointer,
      'has no name; give it one in select: {"name": expression}',
    )
  if (items.length === 0 && !hasAggregates) throw makeInvalidFault(place.pointer, 'is empty')
  return items
}

function toItems(values: readonly unknown[], place: DefinitionPlace): readonly SentValue[] {
  return values.map((value, index) => ({ value, place: enterMember(place, index) }))
}

function readItem(
  item: unknown,
  owner: PathOwner | undefined,
  place: DefinitionPlace,
): readonly Column[] {
  const { pointer } = place
  if (item === '*') return [{ json: item, sql: markSql(pointer, '*'), name: undefined }]
  if (typeof item === 'string' && item.endsWith('.*')) {
    const sql = markSql(pointer, `${printRelation(item.slice(0, -2), pointer)}.*`)
    return [{ json: item, sql, name: undefined }]
  }
  if (typeof item === 'string') {
    const { json, sql } = place.expression(qualifyPath(item, owner, place), place)
    return [{ json, sql, name: item.split('.').at(-1) }]
  }
  if (!isRecord(item) || Object.keys(item).length === 0)
    throw makeInvalidFault(pointer, 'must be the path of a field, *, or {"name": expression}')
  return Object.entries(item).map(([name, value]) => {
    const at = enterMember(place, name)
    const alias = printGivenName(name, at.pointer)
    const of = typeof value === 'string' ? qualifyPath(value, owner, at) : value
    return column(name, alias, at.expression(of, at))
  })
}

function column(name: string, alias: string, { json, sql }: ReadPart): Column {
  return { json: { [name]: json }, sql: [sql, ` AS ${alias}`], name }
}

/** Reads aggregates by name, as in requests: {"total": {"$sum": "volume"}}. */
function aggregateColumns(
  aggregate: SentValue | undefined,
  sources: ReadSources | undefined,
): readonly Column[] {
  if (aggregate === undefined) return []
  const { value, place } = aggregate
  if (!isRecord(value))
    throw makeInvalidFault(place.pointer, 'must be an object of aggregates by name')
  return Object.entries(value).map(([name, call]) => {
    const at = enterMember(place, name)
    return column(name, printGivenName(name, at.pointer), requestAggregate(call, sources, at))
  })
}

/** The sum of no number is 0 here, as in requests. */
function requestAggregate(
  call: unknown,
  sources: ReadSources | undefined,
  place: DefinitionPlace,
): ReadPart {
  const [[name, of] = [], second] = isRecord(call) ? Object.entries(call) : []
  if (name === undefined || second !== undefined) return place.expression(call, place)
  const at = enterMember(place, name)
  const owner = sources?.owner
  const path =
    typeof of !== 'string'
      ? of
      : name === '$count'
        ? expandCounted(of, { owner, root: sources?.root }, at)
        : qualifyPath(of, owner, at)
  const read = place.expression({ [name]: path }, place)
  if (name !== '$sum') return read
  return {
    json: { $coalesce: [read.json, 0] },
    sql: ['pg_catalog."coalesce"(', read.sql, ', 0)'],
  }
}
