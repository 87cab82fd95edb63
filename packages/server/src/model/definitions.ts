import type { QueryDefinition, QueryParameter } from '@tollbase/contract/queries'
import type { DataSetKind } from '../query/data-set.ts'
import type { ValueType } from '../query/tree/query.ts'
import type { ViewDefinition } from '../views/definition/view-definition.ts'
import type { AccessPolicy, ReadLevel } from './policy.ts'

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

/** The fields by which a collection is divided, as its owner said. */
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
  /** The id of this migration. */
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
  /** The condition of a partial index on its records, in the grammar of `find`. */
  readonly where?: unknown
  /** Only records that have a value in the first field, which is not null. */
  readonly sparse?: boolean
  /** Writing a record costs the value of the field. */
  readonly price?: FieldPrice
  readonly created_at: string
}

/** The shares of a price index's charge. */
export type FieldPrice = {
  /** The least share of the platform. */
  readonly platform_basis_points: number
  /** The wallet whose balance gets the rest; null for the application's own. */
  readonly owner: string | null
}

/**
 * A named set that conditions look values up in. Its content is in the chain and in the table `d_<number>`; each
 * new version has a number of its own.
 */
export type DataSetDefinition = {
  readonly id: string
  readonly number: number
  readonly name: string
  readonly kind: DataSetKind
  /**
   * True if others may look into it where they may query; otherwise only those who may read the application's data.
   */
  readonly public: boolean
  /** Values, or ranges of addresses. */
  readonly count: number
  readonly created_at: string
  readonly updated_at: string
}

export type RuleModel = 'per_access' | 'per_row' | 'per_kb' | 'per_record' | 'field_value'

export type PriceRule = {
  /** `collection: <name>`, `query: <name>`; other kinds of targets are kept for their areas. */
  readonly target: { readonly [kind: string]: string }
  readonly operation: 'read' | 'write'
  readonly model: RuleModel
  /** Atomic units; none for `field_value`. */
  readonly amount?: string
  /** For `field_value`: the field whose value, in whole tokens, is the price of writing the record. */
  readonly field?: string
}

/** One version of a predefined query; its definition's id is `<name>@<version>`. */
export type StoredQuery = Omit<QueryDefinition, 'parameters' | 'version'> & {
  readonly version: number
  readonly parameters: readonly QueryParameter[]
  /** The sources that it reads: plain names, or `app::name` for other applications. */
  readonly sources: readonly string[]
  readonly created_at: string
}

export type PricingDefinition = { readonly rules: readonly PriceRule[] }

/** A source of a view: a collection, or a view of another application. */
export type ViewSource = {
  /** `app::name`. */
  readonly model: string
  readonly app: string
  /** The id of the collection or view: another one of the same name is not meant. */
  readonly id: string
}

/** Positions of other applications' chains: by application, the entries of its chain that count. */
export type ForeignPositions = Readonly<Record<string, number>>

/**
 * A materialized view as its entry says. It holds all that its meaning depends on, so the same entry gives the same
 * rows at any later time.
 */
export type StoredView = {
  readonly id: string
  /** Application id. */
  readonly app: string
  /** The rows are in `v_<number>`. */
  readonly number: number
  readonly name: string
  readonly refresh_mode: 'live' | 'lazy'
  readonly query: ViewDefinition
  /** As the seller named them. */
  readonly source_collections: readonly string[]
  /** The sources that `query` names. */
  readonly sources: readonly ViewSource[]
  /** The collections behind them that are really read. */
  readonly reads: readonly ViewSource[]
  /** Definitions of the views that it is made of, by `app::name`. */
  readonly inner: Readonly<Record<string, ViewDefinition>>
  /** The declared types of the sources' fields, by source. */
  readonly types: Readonly<Record<string, Readonly<Record<string, ValueType>>>>
  /** The positions of other applications' chains that counted when it was created. */
  readonly positions: ForeignPositions
  readonly variables: Readonly<Record<string, string>> | null
  readonly description: string | null
  /** As sent, with the price that was sent beside it. */
  readonly access_policy: unknown
  /** The least level of readers where the policy sets none; the view is also as strict as its sources are now. */
  readonly least_read: ReadLevel | null
  /** The view whose place this one takes once it is whole. */
  readonly replaces?: string
  readonly created_at: string
}

/** Another application may build views on a collection or view. */
export type GrantDefinition = {
  readonly id: string
  /** Application id. */
  readonly grantee: string
  /** Id of the collection or view. */
  readonly source: string
  /** Atomic units for each read; null is the source's own derive price. */
  readonly per_access: string | null
  readonly created_at: string
}

/** A collection with what is derived from its definition once. */
export type CollectionState = CollectionDefinition & {
  readonly table: string
  readonly policy: AccessPolicy
  readonly indexes: readonly IndexDefinition[]
  /** Set for a view, which is read as a collection is. */
  readonly view?: StoredView
}

export type DefinitionKind =
  | 'collection'
  | 'index'
  | 'pricing'
  | 'relation'
  | 'migration'
  | 'view'
  | 'grant'
  | 'data_set'
  | 'query'
