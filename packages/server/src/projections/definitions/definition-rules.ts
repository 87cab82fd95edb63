import type { Static, TSchema } from 'typebox'
import { Compile } from 'typebox/compile'
import type { AppliedEntry } from '../../chain/applier.ts'
import type { Queryable } from '../../database/database.ts'
import type { Catalog, Definitions, Draft } from '../../model/catalog.ts'
import type { DefinitionBodies, DefinitionKind } from '../../model/definitions.ts'
import type { StoredColumns } from '../field-columns.ts'

/** The rules of one kind of definition: its stored body, its change of the catalog, and its tables if it has any. */
export type DefinitionRules<K extends DefinitionKind> = {
  /** Parses a stored body; throws where it is damaged. */
  readonly parse: (id: string, text: string) => DefinitionBodies[K]
  readonly set: (draft: Draft, id: string, body: DefinitionBodies[K]) => void | Promise<void>
  readonly remove: (draft: Draft, id: string) => void
  /** Finds the id of the collection or view whose lookups follow from the definition. */
  readonly findReadable?: (definitions: Definitions, id: string) => string | undefined
  /** Splits the body of an entry, where it has more than the catalog keeps. */
  readonly split?: (id: string, text: string) => SplitBody
  /** Drops tables before a definition is replaced or removed. */
  readonly drop?: (tx: Queryable, change: DefinitionDrop) => Promise<void>
  /** Creates tables for a definition that is in the catalog now. */
  readonly create?: (tx: Queryable, change: DefinitionCreation) => Promise<void>
}

/** The body that the catalog keeps, and the values that only a table has. */
export type SplitBody = { readonly body: string; readonly values: readonly unknown[] }

export type DefinitionDrop = {
  readonly schema: string
  readonly catalog: Catalog
  readonly id: string
  /** True if nothing takes the definition's place. */
  readonly isRemoval: boolean
}

export type DefinitionCreation = {
  readonly schema: string
  readonly before: Catalog
  readonly after: Catalog
  readonly id: string
  readonly entry: AppliedEntry
  /** See SplitBody. */
  readonly values: readonly unknown[]
  /** Takes the numbers of the indexes that are made here. */
  readonly built: Set<number>
  /** True where a seller's indexes are made when all entries are applied, which is faster. */
  readonly hasIndexesLater: boolean
  /** Takes the field columns of the tables that are made or changed here. */
  readonly fieldColumns: Map<string, StoredColumns>
}

/** Compiles the parser of a kind's stored bodies. */
export function compileBodyParser<T extends TSchema>(
  kind: DefinitionKind,
  schema: T,
): (id: string, text: string) => Static<T> {
  const checker = Compile(schema)
  return (id, text) => {
    const body: unknown = parseJson(`${kind} ${id}`, text)
    if (checker.Check(body)) return body
    const [problem] = checker.Errors(body)
    throw makeDamage(`${kind} ${id}`, `${problem?.instancePath} ${problem?.message}`)
  }
}

function parseJson(name: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw makeDamage(name, 'it is no JSON', cause)
  }
}

function makeDamage(name: string, problem: string, cause?: unknown): Error {
  return new Error(`the stored definition of ${name} is damaged: ${problem}`, { cause })
}
