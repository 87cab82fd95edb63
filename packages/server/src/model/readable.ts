import { isRecord } from '../base/is-record.ts'
import type { RowSizes } from '../query/tree/estimate-sizes.ts'
import type { ValueType } from '../query/tree/query.ts'
import { getRowsName } from '../views/view-rows.ts'
import { getDeclaredTypes } from './declared-types.ts'
import type { CollectionDefinition, IndexDefinition, Sharding } from './definitions.ts'
import { type AccessPolicy, parsePolicy } from './policy.ts'
import type { PlannedView } from './view-plan.ts'

/** A source that queries can name: a collection or a view. */
export type Readable = Collection | View

type ReadableOf<K extends 'collection' | 'view'> = {
  readonly kind: K
  readonly id: string
  readonly number: number
  readonly name: string
  /** As sent. */
  readonly access_policy: unknown
  readonly policy: AccessPolicy
  /** The table of its rows. */
  readonly table: string
  /** By number, which is the order of creation. */
  readonly indexes: readonly IndexDefinition[]
}

/** A collection with what is derived from its definition once. */
export type Collection = ReadableOf<'collection'> & CollectionDefinition

/** A view as it is read: rows without keys, and without old versions. */
export type View = ReadableOf<'view'> & PlannedView

export function makeCollection(
  definition: CollectionDefinition,
  indexes: readonly IndexDefinition[],
): Collection {
  return {
    ...definition,
    kind: 'collection',
    policy: parsePolicy(definition.access_policy),
    table: `c_${definition.number}`,
    indexes: sortIndexes(indexes),
  }
}

export function makeView({ view, plan }: PlannedView, indexes: readonly IndexDefinition[]): View {
  const { id, number, name, access_policy } = view
  return {
    kind: 'view',
    id,
    number,
    name,
    access_policy,
    policy: parsePolicy(access_policy),
    table: getRowsName(view.number),
    indexes: sortIndexes(indexes),
    view,
    plan,
  }
}

function sortIndexes(indexes: readonly IndexDefinition[]): readonly IndexDefinition[] {
  return [...indexes].sort((a, b) => a.number - b.number)
}

/** Finds the field that names the records; the rows of a view have no names. */
export function findPrimaryColumn(readable: Readable): string | undefined {
  return readable.kind === 'collection' ? readable.primary_column : undefined
}

/** Finds how a collection is divided; a view never is. */
export function findSharding(readable: Readable): Sharding | undefined {
  return readable.kind === 'collection' ? readable.sharding : undefined
}

/** Returns the types of fields, by dotted name: as the schema declares them, or as far as a view's definition says. */
export function getFieldTypes(readable: Readable): ReadonlyMap<string, ValueType> {
  if (readable.kind === 'collection') return getDeclaredTypes(readable.schema_definition)
  const columns = readable.plan?.program.columns ?? []
  return new Map(
    columns.flatMap(({ path, type }) => {
      const [name] = path
      const isKnown = name !== undefined && path.length === 1 && knownTypes.has(type)
      return isKnown ? [[name, type] as const] : []
    }),
  )
}

/** Returns the sizes of a view's rows; undefined for a collection, whose records are bounded. */
export function getRowSizes(readable: Readable): RowSizes | undefined {
  return readable.kind === 'view' ? readable.plan?.rowSizes : undefined
}

/**
 * Returns true if no record of its schema can have a field of the name: the schema allows only others, and it names no
 * records. Those from before the schema may have one.
 */
export function hasNoField(readable: Readable, name: string): boolean {
  if (readable.kind !== 'collection' || readable.primary_column === name) return false
  const { schema_definition: schema } = readable
  if (!isRecord(schema) || isRecord(schema.fields) || schema.additionalProperties !== false)
    return false
  const isDeclared = isRecord(schema.properties) && Object.hasOwn(schema.properties, name)
  return !isDeclared && schema.patternProperties === undefined
}

/** The types that the values of a view's column surely have as JSON. */
const knownTypes: ReadonlySet<ValueType> = new Set(['number', 'boolean', 'text'])
