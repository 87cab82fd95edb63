import { extendPointer } from '../../query/field-path.ts'
import type { MarkedSql } from './marked-sql.ts'
import type { Json } from './view-definition.ts'

/** A part of a definition: its canonical JSON, and the SQL of the same meaning. */
export type ReadPart = { readonly json: Json; readonly sql: MarkedSql }

/** The place in a definition. */
export type DefinitionPlace = {
  /** The JSON pointer of the value, for errors. */
  readonly pointer: string
  /** True if the value was made from a short form, so that its members have no pointers of their own. */
  readonly isMade: boolean
  /** The application of bare names of collections. */
  readonly app: string
  /** The names that `with` introduced. */
  readonly tables: ReadonlySet<string>
  /** The SQL of the names of this query's relations, the first one's first. */
  readonly relations: readonly string[]
  /** Collects the collections and views that are read. */
  readonly models: Set<string>
  readonly expression: (value: unknown, place: DefinitionPlace) => ReadPart
  readonly query: (value: unknown, place: DefinitionPlace) => ReadPart
}

/** Returns the place of a member of the value. */
export function enterMember(place: DefinitionPlace, key: string | number): DefinitionPlace {
  return place.isMade ? place : { ...place, pointer: extendPointer(place.pointer, key) }
}
