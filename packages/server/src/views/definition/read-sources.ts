import { makeInvalidFault } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import type { Clauses, NamedJoin, SentValue } from './clauses.ts'
import type { DefinitionPlace } from './definition-place.ts'
import type { MarkedSql } from './marked-sql.ts'
import { addJoins, type From, readFrom, toGrammarJoin } from './read-from.ts'
import type { PathOwner } from './short-forms.ts'
import type { Json, ViewDefinition } from './view-definition.ts'

export type ReadSources = {
  /** The members `from` and `joins`. */
  readonly json: ViewDefinition
  readonly sql: MarkedSql
  readonly relations: readonly string[]
  /** The name of the first source in paths, if it has one. */
  readonly root: string | undefined
  /** The owner of bare paths, if a short form joins records. */
  readonly owner: PathOwner | undefined
}

/** Reads the sources of a query; `source` is used if the query names none. */
export function readSources(
  clauses: Clauses,
  { source, place }: { readonly source: SentValue | undefined; readonly place: DefinitionPlace },
): ReadSources | undefined {
  const root = clauses.find('from') ?? source
  const [named] = clauses.joins
  const listed = clauses.find('joins')
  if (root === undefined) {
    const sent = named?.on ?? listed
    if (sent !== undefined) throw makeInvalidFault(sent.place.pointer, 'joins to nothing; say from')
    return undefined
  }
  const at = (sent: SentValue): SentValue => ({
    value: sent.value,
    place: { ...sent.place, tables: place.tables },
  })
  const first = readFrom(at(root))
  const withListed = listed === undefined ? undefined : addJoins(single(root, first), at(listed))
  const joinedOnes =
    named === undefined ? undefined : byName(clauses.joins, root, withListed ?? first)
  const last = joinedOnes?.from ?? withListed ?? first
  const joins: readonly Json[] = [...listFrom(withListed), ...listFrom(joinedOnes?.from)]
  return {
    json: { from: first.json, ...(joins.length === 0 ? {} : { joins }) },
    sql: last.sql,
    relations: last.relations,
    root: rootName(root.value),
    owner: joinedOnes?.owner,
  }
}

function listFrom(from: From | undefined): readonly Json[] {
  return from !== undefined && Array.isArray(from.json) ? from.json : []
}

function single(root: SentValue, first: From): From {
  if (!Array.isArray(root.value)) return first
  throw makeInvalidFault(
    root.place.pointer,
    'is a list; in it write {"from": source, "joins": […]}',
  )
}

/** Reads joins of a short form, whose paths go by aliases. */
function byName(joins: readonly NamedJoin[], root: SentValue, first: From) {
  const name = rootName(root.value)
  if (name === undefined)
    throw makeInvalidFault(root.place.pointer, 'must have a name where others are joined by name')
  const aliases = new Map<string, string>()
  let from: From = { ...single(root, first), json: [] }
  for (const join of joins) {
    const dotted = join.parent === undefined ? join.alias : `${join.parent}.${join.alias}`
    const alias = dotted.replaceAll('.', '_')
    const parent = join.parent === undefined ? name : (aliases.get(join.parent) ?? name)
    const { place } = join.on
    if (aliases.has(dotted)) throw makeInvalidFault(place.pointer, `joins ${dotted} a second time`)
    aliases.set(dotted, alias)
    const value = [toGrammarJoin(join, { alias, parent })]
    const made = { ...place, tables: root.place.tables, isMade: true }
    const next = addJoins(from, { value, place: made })
    from = { ...next, json: [...listFrom(from), ...listFrom(next)] }
  }
  return { from, owner: { root: name, aliases } }
}

function rootName(value: unknown): string | undefined {
  if (typeof value === 'string') return value.split('::').at(-1)
  const [[name] = [], second] = isRecord(value) ? Object.entries(value) : []
  return second === undefined ? name : undefined
}
