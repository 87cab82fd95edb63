import type { AccessPolicy } from './policy.ts'

/** A collection as its newest definition entry says. */
export type CollectionDefinition = {
  readonly id: string
  /** The collection's table is `c_<number>`. */
  readonly number: number
  readonly name: string
  readonly namespace: string
  readonly primary_column: string
  readonly sort_column: string | null
  readonly collection_type: 'document' | 'event' | 'blob' | 'api'
  /** As sent. */
  readonly access_policy: unknown
  readonly schema_definition: unknown
  readonly created_at: string
  readonly updated_at: string
}

export type IndexDefinition = {
  readonly id: string
  /** The index in the database is `i_<number>`. */
  readonly number: number
  readonly name: string
  /** Collection id. */
  readonly collection: string
  readonly fields: readonly string[]
  /** As the creator named it: btree, hash, string, number ... */
  readonly index_type: string
  readonly unique: boolean
  readonly created_at: string
}

export type RuleModel = 'per_access' | 'per_row' | 'per_kb' | 'per_record' | 'field_value'

export type PriceRule = {
  /** `collection:<name>`; other kinds of targets are kept for their areas. */
  readonly target: { readonly [kind: string]: string }
  readonly operation: 'read' | 'write'
  readonly model: RuleModel
  readonly amount: string
  readonly field?: string
}

export type PricingDefinition = { readonly rules: readonly PriceRule[] }

/** A collection with what is derived from its definition once. */
export type CollectionState = CollectionDefinition & {
  readonly table: string
  readonly policy: AccessPolicy
  readonly indexes: readonly IndexDefinition[]
}

export type DefinitionKind = 'collection' | 'index' | 'pricing'
