import { parameterPlaces, upstreamMethods } from '@tollbase/contract/api-collections'
import { priceModelNames, pricePeriods, quotaUnits } from '@tollbase/contract/price-models'
import { MapOf, Nullable, StringEnum } from '@tollbase/contract/schemas'
import { type Static, Type } from 'typebox'
import { dataSetKinds } from '../query/data-set.ts'
import type { ViewDefinition } from '../views/definition/view-definition.ts'
import { Atomic, List, parameterMembers, Struct, Words } from './definition-parts.ts'
import type { StoredQuery } from './stored-query.ts'

// The stored definitions: each type and its check are one schema. A schema states the shape alone, and no bound of
// the contract: bounds may become narrower, and what was stored under older ones stays readable. For the same
// reason members that are not named here are let through.

export const ShardKey = Struct({
  field: Type.String(),
  type: StringEnum(['discrete', 'time_range', 'hash_distributed']),
  granularity: Type.Optional(StringEnum(['minute', 'hour', 'day', 'week', 'month'])),
  num_buckets: Type.Optional(Type.Integer()),
})
export type ShardKey = Static<typeof ShardKey>

/** The fields by which a collection is divided, as its owner said. */
export const Sharding = Struct({
  keys: List(ShardKey),
  /** Queries that state none of the keys are refused. */
  enforce_in_queries: Type.Boolean(),
  /** Bytes; kept for the clients that send it. */
  max_shard_size: Nullable(Type.Integer()),
})
export type Sharding = Static<typeof Sharding>

const ApiParameter = Type.Object({
  ...parameterMembers,
  in: Type.Optional(StringEnum(parameterPlaces)),
  as: Type.Optional(Type.String()),
})

/** The HTTP API behind a collection of type `api`, with the members of the contract's `ApiCollection`. */
export const ApiDefinition = Struct({
  url: Type.String(),
  method: StringEnum(upstreamMethods),
  /** By name in small letters; sealed, see services/api-collections/header-secrets.ts. */
  headers: Words,
  parameters: List(ApiParameter),
  cache_seconds: Type.Integer(),
  description: Nullable(Type.String()),
})
export type ApiDefinition = Static<typeof ApiDefinition>

/** The time for which the versions of records are kept. */
export const Retention = Struct({
  days: Type.Integer(),
  /** Nothing expires before this time: a mistake can be taken back. */
  effective_at: Type.String(),
})
export type Retention = Static<typeof Retention>

/** A collection as its newest definition entry says. */
export const CollectionDefinition = Struct({
  id: Type.String(),
  /** The collection's table is `c_<number>`. */
  number: Type.Integer(),
  name: Type.String(),
  namespace: Type.String(),
  primary_column: Type.String(),
  sort_column: Nullable(Type.String()),
  collection_type: StringEnum(['document', 'event', 'blob', 'api']),
  /** As sent. */
  access_policy: Type.Unknown(),
  schema_definition: Type.Unknown(),
  /** Absent where the collection is not sharded. */
  sharding: Type.Optional(Sharding),
  /** True where its records are sealed before they get into the log. */
  encrypted: Type.Optional(Type.Boolean()),
  /** True where a plaintext table stands beside the sealed one for queries, as long as it is encrypted. */
  queryable: Type.Optional(Type.Boolean()),
  /** Fields of an encrypted collection whose values have tokens, each in the records from a leaf on; see addTokenFields. */
  token_fields: Type.Optional(List(Struct({ field: Type.String(), from: Type.Integer() }))),
  /** Absent where its records are kept for ever. */
  retention: Type.Optional(Retention),
  /** Absent where the collection is of another type than `api`, or its upstream was not set yet. */
  api: Type.Optional(ApiDefinition),
  created_at: Type.String(),
  updated_at: Type.String(),
})
export type CollectionDefinition = Static<typeof CollectionDefinition>

/** Records of the child refer, by a field, to those of the parent. */
export const RelationDefinition = Struct({
  id: Type.String(),
  /** Collection ids. */
  parent: Type.String(),
  parent_field: Type.String(),
  child: Type.String(),
  child_field: Type.String(),
  created_at: Type.String(),
})
export type RelationDefinition = Static<typeof RelationDefinition>

/** The newest migration of a collection to another schema; its definition's id is the collection's. */
export const MigrationDefinition = Struct({
  /** The id of this migration. */
  id: Type.String(),
  collection: Type.String(),
  schema: Type.Unknown(),
  state: StringEnum(['running', 'completed', 'failed']),
  /** Records that got defaults. */
  migrated: Type.Integer(),
  /** Problems that name no record, or those of a migration from before these were noted apart. */
  errors: List(Type.String()),
  /** Problems of records, which their leaves name: a key would stay when its record is erased. */
  problems: Type.Optional(
    List(Struct({ leaf: Type.Integer({ minimum: 0 }), problem: Type.String() })),
  ),
  started_at: Type.String(),
  ended_at: Nullable(Type.String()),
})
export type MigrationDefinition = Static<typeof MigrationDefinition>

/** The shares of a price index's charge. */
export const FieldPrice = Struct({
  /** The least share of the platform. */
  platform_basis_points: Type.Integer({ minimum: 0, maximum: 10_000 }),
  /** The wallet whose balance gets the rest; null for the application's own. */
  owner: Nullable(Type.String({ pattern: '^0x[0-9a-f]{40}$' })),
})
export type FieldPrice = Static<typeof FieldPrice>

export const IndexDefinition = Struct({
  id: Type.String(),
  /** The index in the database is `i_<number>`. */
  number: Type.Integer(),
  name: Type.String(),
  /** Id of the collection or view. */
  collection: Type.String(),
  fields: List(Type.String()),
  /** As the creator named it: btree, hash, string, number ... */
  index_type: Type.String(),
  unique: Type.Boolean(),
  /** The condition of a partial index on its records, in the grammar of `find`. */
  where: Type.Optional(Type.Unknown()),
  /** Only records that have a value in the first field, which is not null. */
  sparse: Type.Optional(Type.Boolean()),
  /** Writing a record costs the value of the field. */
  price: Type.Optional(FieldPrice),
  /** The lists of an index of vectors: the number of their numbers, and the measure of their distance. */
  dimensions: Type.Optional(Type.Integer()),
  measure: Type.Optional(StringEnum(['cosine', 'l2', 'inner_product'])),
  created_at: Type.String(),
})
export type IndexDefinition = Static<typeof IndexDefinition>

/**
 * A named set that conditions look values up in. Its content is in the chain and in the table `d_<number>`; each
 * new version has a number of its own.
 */
export const DataSetDefinition = Struct({
  id: Type.String(),
  number: Type.Integer(),
  name: Type.String(),
  kind: StringEnum(dataSetKinds),
  /**
   * True if others may look into it where they may query; otherwise only those who may read the application's data.
   */
  public: Type.Boolean(),
  /** Values, or ranges of addresses. */
  count: Type.Integer(),
  created_at: Type.String(),
  updated_at: Type.String(),
})
export type DataSetDefinition = Static<typeof DataSetDefinition>

/** First and last address, and the country where the set knows one. */
export type DataSetRange = readonly [first: string, last: string, country: string | null]

/**
 * The body of the entry in the chain: the definition with the whole content of the set, checked and without
 * overlaps.
 */
export type DataSetBody = DataSetDefinition & {
  readonly entries: readonly (string | number | boolean)[] | readonly DataSetRange[]
}

export const PriceRule = Struct({
  /** `collection: <name>`, `api_collection: <name>`, `view: <name>`, `query: <name>`. */
  target: Words,
  operation: StringEnum(['read', 'write']),
  model: StringEnum(priceModelNames),
  /** None for `field_value`. */
  amount: Type.Optional(Atomic),
  /** For `field_value`: the field whose value, in whole tokens, is the price of writing the record. */
  field: Type.Optional(Type.String()),
  /** Units above these numbers in a period cost other amounts. */
  tiers: Type.Optional(List(Struct({ above: Type.Integer({ minimum: 0 }), amount: Atomic }))),
  period: Type.Optional(StringEnum(pricePeriods)),
  /** For `free_quota`. */
  unit: Type.Optional(StringEnum(quotaUnits)),
  quantity: Type.Optional(Type.Integer({ minimum: 0 })),
  /** For `time_pass`. */
  hours: Type.Optional(Type.Integer({ minimum: 0 })),
})
export type PriceRule = Static<typeof PriceRule>

export const PricingDefinition = Struct({
  rules: List(PriceRule),
  /** Targets for which a time pass was ever sold: those that run are honoured, whatever the rules are by now. */
  passes: Type.Optional(List(Words)),
})
export type PricingDefinition = Static<typeof PricingDefinition>

/** A source of a view: a collection, or a view of another application. */
export const ViewSource = Struct({
  /** `app::name`. */
  model: Type.String(),
  app: Type.String(),
  /** The id of the collection or view: another one of the same name is not meant. */
  id: Type.String(),
})
export type ViewSource = Static<typeof ViewSource>

/** Positions of other applications' chains: by application, the entries of its chain that count. */
export const ForeignPositions = MapOf(Type.Integer())
export type ForeignPositions = Readonly<Static<typeof ForeignPositions>>

/** Its grammar is checked where it is planned (view-plan.ts). */
const CanonicalQuery = Type.Unsafe<ViewDefinition>(Type.Object({}))

const valueTypes = [
  'json',
  'number',
  'text',
  'boolean',
  'timestamp',
  'date',
  'interval',
  'null',
] as const

/**
 * A materialized view as its entry says. It holds all that its meaning depends on, so the same entry gives the same
 * rows at any later time.
 */
export const StoredView = Struct({
  id: Type.String(),
  /** Application id. */
  app: Type.String(),
  /** The rows are in `v_<number>`. */
  number: Type.Integer(),
  name: Type.String(),
  refresh_mode: StringEnum(['live', 'lazy']),
  query: CanonicalQuery,
  /** As the seller named them. */
  source_collections: List(Type.String()),
  /** The sources that `query` names. */
  sources: List(ViewSource),
  /** The collections behind them that are really read. */
  reads: List(ViewSource),
  /** Definitions of the views that it is made of, by `app::name`. */
  inner: MapOf(CanonicalQuery),
  /** The declared types of the sources' fields, by source. */
  types: MapOf(MapOf(StringEnum(valueTypes))),
  /** The positions of other applications' chains that counted when it was created. */
  positions: ForeignPositions,
  variables: Nullable(Words),
  description: Nullable(Type.String()),
  /** As sent, with the price that was sent beside it. */
  access_policy: Type.Unknown(),
  /**
   * The least level of readers where the policy sets none; the view is also as strict as its sources are now. The
   * first views had the level in their policy, and no such member.
   */
  least_read: Type.Optional(Nullable(StringEnum(['public', 'key', 'private']))),
  /** The view whose place this one takes once it is whole. */
  replaces: Type.Optional(Type.String()),
  created_at: Type.String(),
})
export type StoredView = Static<typeof StoredView>

/** Another application may build views on a collection or view. */
export const GrantDefinition = Struct({
  id: Type.String(),
  /** Application id. */
  grantee: Type.String(),
  /** Id of the collection or view. */
  source: Type.String(),
  /** For each read; null is the source's own derive price. */
  per_access: Nullable(Atomic),
  created_at: Type.String(),
})
export type GrantDefinition = Static<typeof GrantDefinition>

/** The encryption of an application as a whole; which collections are encrypted, these say themselves. */
export const EncryptionDefinition = Struct({
  /** New collections are encrypted. */
  private_app: Type.Boolean(),
  /** When the settings were last changed; null before. */
  updated_at: Nullable(Type.String()),
})
export type EncryptionDefinition = Static<typeof EncryptionDefinition>

/** The newest change of a filled collection's encryption; its definition's id is the collection's. */
export const ResealingDefinition = Struct({
  /** The id of this change. */
  id: Type.String(),
  collection: Type.String(),
  action: StringEnum(['add', 'remove']),
  /** The records get into the table `c_<number>`, which is the collection's own once all are in it. */
  number: Type.Integer(),
  /** Erasing: the records are sealed, and their plaintext leaves the log. */
  state: StringEnum(['copying', 'erasing', 'completed']),
  /** The leaf of the entry that began it, known from the next state on. */
  from: Type.Optional(Type.Integer()),
  started_at: Type.String(),
  ended_at: Nullable(Type.String()),
})
export type ResealingDefinition = Static<typeof ResealingDefinition>

/** The stored body of each kind of definition. */
export type DefinitionBodies = {
  readonly collection: CollectionDefinition
  readonly index: IndexDefinition
  readonly pricing: PricingDefinition
  readonly relation: RelationDefinition
  readonly migration: MigrationDefinition
  readonly view: StoredView
  readonly grant: GrantDefinition
  readonly data_set: DataSetDefinition
  readonly query: StoredQuery
  readonly encryption: EncryptionDefinition
  readonly resealing: ResealingDefinition
}

export type DefinitionKind = keyof DefinitionBodies
