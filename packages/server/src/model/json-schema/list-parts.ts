import { isRecord } from '../../base/is-record.ts'
import { extendPointer } from '../../query/field-path.ts'
import { type KeywordKind, keywords } from './keywords.ts'

/** A schema that stands in another one, and its JSON pointer within that. */
export type Part = { readonly pointer: string; readonly part: unknown }

/** Lists the schemas that stand in the keywords of a schema, one level deep. */
export function listParts(schema: Readonly<Record<string, unknown>>): readonly Part[] {
  return Object.entries(schema).flatMap(([name, value]) => {
    const kind = keywords.get(name)
    return kind === undefined ? [] : listPartsOf(kind, `/${name}`, value)
  })
}

function listPartsOf(kind: KeywordKind, pointer: string, value: unknown): readonly Part[] {
  switch (kind) {
    case 'schema':
      return [{ pointer, part: value }]
    case 'schema or schemas':
      return Array.isArray(value) ? listItems(pointer, value) : [{ pointer, part: value }]
    case 'schemas':
      return Array.isArray(value) ? listItems(pointer, value) : []
    case 'schemas by name':
    case 'schemas by pattern':
      return listMembers(pointer, value)
    case 'schemas or names by name':
      return listMembers(pointer, value).filter(({ part }) => !Array.isArray(part))
    default:
      return []
  }
}

function listItems(pointer: string, list: readonly unknown[]): readonly Part[] {
  return list.map((part, at) => ({ pointer: `${pointer}/${at}`, part }))
}

function listMembers(pointer: string, map: unknown): readonly Part[] {
  return Object.entries(isRecord(map) ? map : {}).map(([name, part]) => ({
    pointer: extendPointer(pointer, name),
    part,
  }))
}
