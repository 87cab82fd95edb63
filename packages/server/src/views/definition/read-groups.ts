import { makeInvalidFault } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import type { SentValue } from './clauses.ts'
import { type DefinitionPlace, enterMember, type ReadPart } from './definition-place.ts'
import { joinSql } from './marked-sql.ts'
import { type PathOwner, qualifyPath } from './short-forms.ts'

/** Ways to group by several sets of expressions in turn, with their SQL. */
export const groupingForms: ReadonlyMap<string, string> = new Map([
  ['$rollup', 'ROLLUP'],
  ['$cube', 'CUBE'],
  ['$grouping_sets', 'GROUPING SETS'],
])

/** Reads `group_by`: a list of expressions and grouping forms, or a single one. */
export function readGroups(sent: SentValue | undefined, owner: PathOwner | undefined) {
  if (sent === undefined) return undefined
  const { value, place } = sent
  const items: readonly unknown[] = Array.isArray(value) ? value : [value]
  if (items.length === 0) return undefined
  const groups = items.map((item, index) =>
    readGroup(item, owner, Array.isArray(value) ? enterMember(place, index) : place),
  )
  return {
    json: groups.map((each) => each.json),
    sql: joinSql(
      groups.map((each) => each.sql),
      ', ',
    ),
  }
}

function readGroup(item: unknown, owner: PathOwner | undefined, at: DefinitionPlace): ReadPart {
  const [[name = '', content] = []] = isRecord(item) ? Object.entries(item) : []
  const form = groupingForms.get(name)
  if (form === undefined)
    return at.expression(typeof item === 'string' ? qualifyPath(item, owner, at) : item, at)
  const inside = enterMember(at, name)
  if (!Array.isArray(content))
    throw makeInvalidFault(inside.pointer, 'must be a list of expressions, or of lists of them')
  const parts = content.map((each: unknown, index) => {
    const own = enterMember(inside, index)
    return Array.isArray(each) ? readList(each, owner, own) : readGroup(each, owner, own)
  })
  return listed(parts, { json: (json) => ({ [name]: json }), word: form })
}

/** Reads expressions that are grouped by together; none of them for one group of all rows. */
function readList(
  items: readonly unknown[],
  owner: PathOwner | undefined,
  at: DefinitionPlace,
): ReadPart {
  const parts = items.map((item, index) => {
    const own = enterMember(at, index)
    return own.expression(typeof item === 'string' ? qualifyPath(item, owner, own) : item, own)
  })
  return listed(parts, { json: (json) => json, word: '' })
}

function listed(
  parts: readonly ReadPart[],
  {
    json,
    word,
  }: {
    readonly json: (list: readonly ReadPart['json'][]) => ReadPart['json']
    readonly word: string
  },
): ReadPart {
  const list = joinSql(
    parts.map((each) => each.sql),
    ', ',
  )
  return { json: json(parts.map((each) => each.json)), sql: [`${word} (`, list, ')'] }
}
