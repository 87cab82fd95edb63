import type { Draft } from '../../model/catalog.ts'
import { StoredQuery, toKeptQuery } from '../../model/stored-query.ts'
import { compileBodyParser, type DefinitionRules } from './definition-rules.ts'

/** The id is `<name>@<version>`. */
export const query: DefinitionRules<'query'> = {
  parse: compileBodyParser('query', StoredQuery),
  set(draft, id, body) {
    const { name, others } = splitVersions(draft, id)
    draft.queries.set(
      name,
      [...others, toKeptQuery(body)].toSorted((a, b) => a.version - b.version),
    )
  },
  remove(draft, id) {
    const { name, others } = splitVersions(draft, id)
    if (others.length === 0) draft.queries.delete(name)
    else draft.queries.set(name, others)
  },
}

/** Splits an id into the name of its query and the other versions of that. */
function splitVersions({ queries }: Draft, id: string) {
  const [name = '', version] = id.split('@')
  const others = (queries.get(name) ?? []).filter((one) => one.version !== Number(version))
  return { name, others }
}
