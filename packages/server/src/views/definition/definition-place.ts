import { member } from '../../query/field-path.ts'
import type { MarkedSql } from './marked-sql.ts'
import type { Json } from './view-definition.ts'

/** What a part of a definition is: its canonical JSON, and the SQL that says the same. */
export type Read = { readonly json: Json; readonly sql: MarkedSql }

/** Where in a definition we are. */
export type Place = {
  /** JSON pointer of the value, for errors. */
  readonly pointer: string
  /** Whether the value was made of a short form, so that its members have no pointers of their own. */
  readonly isMade: boolean
  /** The application that a bare name of a collection is of. */
  readonly app: string
  /** Names that `with` gave. */
  readonly tables: ReadonlySet<string>
  /** SQL of the names of the relations of this query, the first one's first. */
  readonly relations: readonly string[]
  /** Takes the collections and views that are read. */
  readonly models: Set<string>
  readonly expression: (value: unknown, place: Place) => Read
  readonly query: (value: unknown, place: Place) => Read
}

/** The place of a member of the value. */
export function inside(place: Place, key: string | number): Place {
  return place.isMade ? place : { ...place, pointer: member(place.pointer, key) }
}
