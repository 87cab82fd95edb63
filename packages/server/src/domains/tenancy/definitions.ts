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
  /** Absent where the collection is not sharded. */
  readonly sharding?: Sharding
  readonly created_at: string
  readonly updated_at: string
}

/** By which fields a collection is divided, as its owner said. */
export type Sharding = {
  readonly keys: readonly ShardKey[]
  /** Queries that state none of the keys are refused. */
  readonly enforce_in_queries: boolean
  /** Bytes; kept for the clients that send it. */
  readonly max_shard_size: number | null
}

export type ShardKey = {
  readonly field: string
  readonly type: 'discrete' | 'time_range' | 'hash_distributed'
  readonly granularity?: 'minute' | 'hour' | 'day' | 'week' | 'month'
  readonly num_buckets?: number
}

/** Records of the child refer, by a field, to those of the parent. */
export type RelationDefinition = {
  readonly id: string
  /** Collection ids. */
  readonly parent: string
  readonly parent_field: string
  readonly child: string
  readonly child_field: string
  readonly created_at: string
}

/** The newest migration of a collection to another schema; its id is the collection's. */
export type MigrationDefinition = {
  /** Of this migration. */
  readonly id: string
  readonly collection: string
  readonly schema: unknown
  readonly state: 'running' | 'completed' | 'failed'
  /** Records that got defaults. */
  readonly migrated: number
  readonly errors: readonly string[]
  readonly started_at: string
  readonly ended_at: string | null
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
  /** Of a partial index: which records it has, in the grammar of `find`. */
  readonly where?: unknown
  /** Only records that have a value in the first field, which is not null. */
  readonly sparse?: boolean
  /** Writing a record costs the value of the field. */
  readonly price?: FieldPrice
  readonly created_at: string
}

/** How what a price index takes is shared out. */
export type FieldPrice = {
  /** At least so much is the platform's. */
  readonly platform_basis_points: number
  /** Whose balance gets the rest; null is the application's own. */
  readonly owner: string | null
}

export type RuleModel = 'per_access' | 'per_row' | 'per_kb' | 'per_record' | 'field_value'

export type PriceRule = {
  /** `collection:<name>`; other kinds of targets are kept for their areas. */
  readonly target: { readonly [kind: string]: string }
  readonly operation: 'read' | 'write'
  readonly model: RuleModel
  /** Atomic units; of `field_value` none. */
  readonly amount?: string
  /** Of `field_value`: the field that says in whole tokens what writing the record costs. */
  readonly field?: string
}

export type PricingDefinition = { readonly rules: readonly PriceRule[] }

/** A collection with what is derived from its definition once. */
export type CollectionState = CollectionDefinition & {
  readonly table: string
  readonly policy: AccessPolicy
  readonly indexes: readonly IndexDefinition[]
}

export type DefinitionKind = 'collection' | 'index' | 'pricing' | 'relation' | 'migration'
