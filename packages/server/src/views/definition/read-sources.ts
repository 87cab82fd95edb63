import { invalid } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import type { Clauses, NamedJoin, Sent } from './clauses.ts'
import type { Place } from './definition-place.ts'
import type { MarkedSql } from './marked-sql.ts'
import { type From, grammarJoin, readFrom, withJoins } from './read-from.ts'
import type { Owner } from './short-forms.ts'
import type { Json, ViewDefinition } from './view-definition.ts'

export type Sources = {
  /** `from` and `joins`. */
  readonly json: ViewDefinition
  readonly sql: MarkedSql
  readonly relations: readonly string[]
  /** The name of the first source in paths, where it has one. */
  readonly root: string | undefined
  /** Where records are joined by a short form. */
  readonly owner: Owner | undefined
}

/** What a query reads; `source` where it does not say so itself. */
export function readSources(
  clauses: Clauses,
  { source, place }: { readonly source: Sent | undefined; readonly place: Place },
): Sources | undefined {
  const root = clauses.of('from') ?? source
  const [named] = clauses.joins
  const listed = clauses.of('joins')
  if (root === undefined) {
    const sent = named?.on ?? listed
    if (sent !== undefined) throw invalid(sent.place.pointer, 'joins to nothing; say from')
    return undefined
  }
  const at = (sent: Sent): Sent => ({
    value: sent.value,
    place: { ...sent.place, tables: place.tables },
  })
  const first = readFrom(at(root))
  const withListed = listed === undefined ? undefined : withJoins(single(root, first), at(listed))
  const joinedOnes =
    named === undefined ? undefined : byName(clauses.joins, root, withListed ?? first)
  const last = joinedOnes?.from ?? withListed ?? first
  const joins: readonly Json[] = [...listOf(withListed), ...listOf(joinedOnes?.from)]
  return {
    json: { from: first.json, ...(joins.length === 0 ? {} : { joins }) },
    sql: last.sql,
    relations: last.relations,
    root: rootName(root.value),
    owner: joinedOnes?.owner,
  }
}

function listOf(from: From | undefined): readonly Json[] {
  return from !== undefined && Array.isArray(from.json) ? from.json : []
}

function single(root: Sent, first: From): From {
  if (!Array.isArray(root.value)) return first
  throw invalid(root.place.pointer, 'is a list; in it write {"from": source, "joins": […]}')
}

/** Joins of a short form, whose paths go by aliases. */
function byName(joins: readonly NamedJoin[], root: Sent, first: From) {
  const name = rootName(root.value)
  if (name === undefined)
    throw invalid(root.place.pointer, 'must have a name where others are joined by name')
  const aliases = new Map<string, string>()
  let from: From = { ...single(root, first), json: [] }
  for (const join of joins) {
    const dotted = join.parent === undefined ? join.alias : `${join.parent}.${join.alias}`
    const alias = dotted.replaceAll('.', '_')
    const parent = join.parent === undefined ? name : (aliases.get(join.parent) ?? name)
    const { place } = join.on
    if (aliases.has(dotted)) throw invalid(place.pointer, `joins ${dotted} a second time`)
    aliases.set(dotted, alias)
    const value = [grammarJoin(join, { alias, parent })]
    const made = { ...place, tables: root.place.tables, isMade: true }
    const next = withJoins(from, { value, place: made })
    from = { ...next, json: [...listOf(from), ...listOf(next)] }
  }
  return { from, owner: { root: name, aliases } }
}

function rootName(value: unknown): string | undefined {
  if (typeof value === 'string') return value.split('::').at(-1)
  const [[name] = [], second] = isRecord(value) ? Object.entries(value) : []
  return second === undefined ? name : undefined
}
