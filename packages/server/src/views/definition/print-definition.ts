import type { Place } from './definition-place.ts'
import { written } from './marked-sql.ts'
import { readExpression } from './read-expression.ts'
import { readQuery } from './read-query.ts'
import type { ViewDefinition } from './view-definition.ts'

/** The SELECT that a canonical definition states; conditions of `find` stand in it as calls of `tollbase_find`. */
export function sqlOfDefinition(definition: ViewDefinition): string {
  return sqlAndModels(definition).text
}

/** The same with the collections and views that it names. */
export function sqlAndModels(definition: ViewDefinition): {
  readonly text: string
  readonly models: readonly string[]
} {
  // A canonical definition has no bare names of collections.
  const place = placeOf('')
  const { sql } = readQuery(definition, place)
  return { text: written(sql).text, models: [...place.models] }
}

/** The place of a whole definition; bare names of collections are the application's. */
export function placeOf(app: string): Place {
  return {
    pointer: '/query',
    isMade: false,
    app,
    tables: new Set(),
    relations: [],
    models: new Set(),
    expression: readExpression,
    query: readQuery,
  }
}
