import type { DefinitionPlace } from './definition-place.ts'
import { locateSql } from './marked-sql.ts'
import { readExpression } from './read-expression.ts'
import { readQuery } from './read-query.ts'
import type { ViewDefinition } from './view-definition.ts'

/** Prints the SELECT that a canonical definition states; conditions of `find` become calls of `tollbase_find`. */
export function printDefinition(definition: ViewDefinition): string {
  return printWithModels(definition).text
}

/** Prints the same, with the collections and views that it names. */
export function printWithModels(definition: ViewDefinition): {
  readonly text: string
  readonly models: readonly string[]
} {
  // A canonical definition has no bare names of collections.
  const place = makePlace('')
  const { sql } = readQuery(definition, place)
  return { text: locateSql(sql).text, models: [...place.models] }
}

/** Returns the place of a whole definition; bare names of collections are the application's. */
export function makePlace(app: string): DefinitionPlace {
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
