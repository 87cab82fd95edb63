import { Type } from 'typebox'
import { limits } from './limits.ts'
import { confirm_free } from './price-targets.ts'
import { Relation } from './relations.ts'
import { defineContract } from './route.ts'
import { AnySchema } from './schema-definition.ts'
import {
  AppParams,
  Atomic,
  AtomicInput,
  CollectionParams,
  Name,
  Nullable,
  QuoteKind,
  StringEnum,
  Success,
  Time,
} from './schemas.ts'

export const Price = Type.Object(
  {
    per_access: Type.Optional(Nullable(AtomicInput)),
    per_row: Type.Optional(Nullable(AtomicInput)),
    per_kb: Type.Optional(Nullable(AtomicInput)),
  },
  {
    $id: 'Price',
    additionalProperties: false,
    description: 'Atomic units per access, per row returned, per 1,024 bytes returned',
  },
)

const FieldList = Type.Array(Type.String({ minLength: 1, maxLength: limits.fieldPathCharsMax }), {
  maxItems: 500,
})

/** The form of a policy that the service enforces. */
export const AccessPolicy = Type.Object(
  {
    read: Type.Optional(
      Type.Unsafe<'public' | 'key' | 'private'>({
        ...StringEnum(['public', 'key', 'private']),
        description:
          'public: anyone, for the price where there is one; key: the keys of the application; private: these, and others do not learn that it is there. Not given: the keys of the application, and buyers as soon as reading has a price',
      }),
    ),
    price: Type.Optional(Nullable(Price)),
    preview: Type.Optional(
      Nullable(
        Type.Object(
          {
            rows: Type.Integer({
              minimum: 0,
              maximum: limits.previewRowsMax,
              description: 'the first records; 3 of what is free and 0 of what is sold by default',
            }),
            fields: Type.Optional(FieldList),
          },
          { additionalProperties: false, description: 'what GET .../preview shows of the records' },
        ),
      ),
    ),
    derive: Type.Optional(
      Type.Union(
        [
          Type.Literal('deny'),
          Type.Object({ per_access: AtomicInput }, { additionalProperties: false }),
        ],
        {
          description:
            'what joining, aggregating or combining its records costs others for each request; deny is the default where reading has a price',
        },
      ),
    ),
    offered: Type.Optional(
      Nullable(
        Type.Object(
          {
            select: Type.Optional(FieldList),
            filter: Type.Optional(FieldList),
            sort: Type.Optional(FieldList),
          },
          {
            additionalProperties: false,
            description: 'the fields that others may use for each; all where nothing is said',
          },
        ),
      ),
    ),
    empty_answer: Type.Optional(
      Type.Unsafe<'per_access' | 'free'>({
        ...StringEnum(['per_access', 'free']),
        description: 'what an answer without records costs; per_access by default',
      }),
    ),
    quote: Type.Optional(QuoteKind),
  },
  { $id: 'AccessPolicy', additionalProperties: false },
)

/** A policy as callers send it: a word, the form above, or an object of a foreign form. */
export const AnyPolicy = Type.Unsafe<unknown>(
  Type.Union([
    Type.Literal('public'),
    Type.Literal('key'),
    Type.Literal('private'),
    AccessPolicy,
    Type.Object(
      {},
      {
        additionalProperties: true,
        description:
          'with no member of AccessPolicy, nor one a letter or two from it: kept as sent, enforced as private, answered with `_warning`',
      },
    ),
  ]),
)

export const collectionTypes = ['document', 'event', 'blob', 'api'] as const

const shardTypes = ['discrete', 'time_range', 'hash_distributed'] as const
const granularities = ['minute', 'hour', 'day', 'week', 'month'] as const

export const Sharding = Type.Object(
  {
    keys: Type.Array(
      Type.Object({
        field: Type.String(),
        type: StringEnum(shardTypes),
        granularity: Type.Optional(StringEnum(granularities)),
        num_buckets: Type.Optional(Type.Integer()),
      }),
    ),
    enforce_in_queries: Type.Boolean(),
    max_shard_size: Nullable(Type.Integer({ description: 'bytes; kept as sent' })),
  },
  { $id: 'Sharding' },
)

export const Collection = Type.Object(
  {
    collection_id: Type.String(),
    name: Type.String(),
    namespace: Type.String(),
    primary_column: Type.String(),
    sort_column: Nullable(Type.String()),
    collection_type: Type.String(),
    access_policy: Type.Unknown(),
    schema_definition: Type.Unknown(),
    indexes: Type.Array(Type.Unknown()),
    relations: Type.Array(Relation),
    sharding: Nullable(Sharding),
    encrypted: Type.Optional(
      Type.Boolean({
        description: 'present and true where its records are sealed; see docs/encryption.md',
      }),
    ),
    created_at: Time,
    updated_at: Time,
    metadata: Type.Object({
      document_count: Type.Integer(),
      storage_size: Type.Integer({ description: 'bytes of the records as stored' }),
      avg_document_size: Type.Number(),
    }),
    _warning: Type.Optional(Type.String()),
  },
  { $id: 'Collection' },
)

const Column = Type.String({ minLength: 1, maxLength: limits.fieldPathCharsMax })
const settings = {
  namespace: Type.Optional(Nullable(Type.String({ minLength: 1, maxLength: limits.nameCharsMax }))),
  primary_column: Type.Optional(Nullable(Column)),
  sort_column: Type.Optional(Nullable(Column)),
  collection_type: Type.Optional(Nullable(StringEnum(collectionTypes))),
  access_policy: Type.Optional(Nullable(AnyPolicy)),
  schema_definition: Type.Optional(Nullable(AnySchema)),
}

const StatsQuery = Type.Object({ include_stats: Type.Optional(Type.Boolean()) })

export const collections = defineContract({
  createCollection: {
    method: 'POST',
    path: '/api/apps/:app/collections',
    area: 'Collections',
    summary: 'Create a collection',
    access: 'Write',
    shows: 'outcome',
    status: 201,
    params: AppParams,
    body: Type.Object({ name: Name, ...settings }),
    reply: Collection,
    errors: [
      'APPLICATION_NOT_FOUND',
      'COLLECTION_EXISTS',
      'VIEW_EXISTS',
      'CONFLICT',
      'NOT_ON_PRIVATE',
    ],
  },
  listCollections: {
    method: 'GET',
    path: '/api/apps/:app/collections',
    area: 'Collections',
    summary: 'List collections: all with a key of the application, the public ones without',
    access: 'public',
    shows: 'definitions',
    params: AppParams,
    query: StatsQuery,
    reply: Type.Array(Collection),
    errors: ['APPLICATION_NOT_FOUND'],
  },
  getCollection: {
    method: 'GET',
    path: '/api/apps/:app/collections/:collection',
    area: 'Collections',
    summary: 'Get a collection by name or collection_id',
    access: 'by-policy',
    shows: 'definitions',
    params: CollectionParams,
    query: StatsQuery,
    reply: Collection,
    errors: ['COLLECTION_NOT_FOUND'],
  },
  updateCollection: {
    method: 'PUT',
    path: '/api/apps/:app/collections/:collection',
    area: 'Collections',
    summary: 'Change a collection',
    access: 'Admin',
    shows: 'definitions',
    params: CollectionParams,
    body: Type.Object({ name: Type.Optional(Name), ...settings, confirm_free }),
    reply: Collection,
    errors: ['COLLECTION_NOT_FOUND', 'CONFLICT', 'PRICE_REMOVED'],
  },
  deleteCollection: {
    method: 'DELETE',
    path: '/api/apps/:app/collections/:collection',
    area: 'Collections',
    summary: 'Delete a collection; its entries stay in the chain',
    description:
      'With `cascade` the views that are made of it and the versions of predefined queries that read it or them go too; without, they forbid it.',
    access: 'Admin',
    shows: 'outcome',
    params: CollectionParams,
    body: Type.Object({ cascade: Type.Optional(Type.Boolean()) }),
    bodyOptional: true,
    reply: Success,
    errors: ['COLLECTION_NOT_FOUND', 'CONFLICT'],
  },
  validateRecord: {
    method: 'POST',
    isRead: true,
    path: '/api/apps/:app/collections/:collection/validate',
    area: 'Collections',
    summary: 'Check a record, or a list of them, against the schema, without storing it',
    access: 'Write',
    shows: 'outcome',
    params: CollectionParams,
    takesRecords: true,
    body: Type.Object({ data: Type.Unknown() }),
    reply: Type.Object({ valid: Type.Boolean(), errors: Type.Optional(Type.Array(Type.String())) }),
    errors: ['COLLECTION_NOT_FOUND'],
  },
  getCollectionStats: {
    method: 'GET',
    path: '/api/apps/:app/collections/:collection/stats',
    area: 'Collections',
    summary: 'Counts and sizes of a collection',
    access: 'Read',
    shows: 'definitions',
    params: CollectionParams,
    reply: Type.Object({
      created_at: Time,
      updated_at: Time,
      document_count: Type.Integer(),
      storage_size: Type.Integer(),
      avg_document_size: Type.Number(),
    }),
    errors: ['COLLECTION_NOT_FOUND'],
  },
  previewCollection: {
    method: 'GET',
    path: '/api/apps/:app/collections/:collection/preview',
    area: 'Collections',
    summary: 'A free, fixed sample of a collection, its schema and its size in bands',
    access: 'by-policy',
    shows: 'definitions',
    params: CollectionParams,
    reply: Type.Object({
      collection: Type.String(),
      schema: Type.Unknown(),
      row_count_band: Type.String(),
      updated_at: Time,
      sample: Type.Array(Type.Unknown()),
      price: Type.Optional(Type.Object({ per_access: Atomic, per_row: Atomic, per_kb: Atomic })),
    }),
    errors: ['COLLECTION_NOT_FOUND', 'QUERY_TOO_EXPENSIVE', 'QUERY_TIMEOUT', 'UNAVAILABLE'],
  },
  setSharding: {
    method: 'PATCH',
    path: '/api/apps/:app/collections/:collection/sharding',
    area: 'Collections',
    summary: 'Say by which fields a collection is divided',
    description:
      'Each key field gets an index that begins with it; tables are not split. With `enforce_in_queries`, a /list that states no key is refused. A query states a key by an equality or a list of values; for a key that is not hashed, a range or a prefix also counts. An empty list of keys ends sharding.',
    access: 'Admin',
    shows: 'definitions',
    params: CollectionParams,
    body: Type.Object({
      keys: Type.Array(
        Type.Object({
          field: Column,
          type: StringEnum([...shardTypes, 'hashed', 'time_series']),
          granularity: Type.Optional(Nullable(StringEnum(granularities))),
          num_buckets: Type.Optional(
            Nullable(Type.Integer({ minimum: 1, maximum: limits.shardBucketsMax })),
          ),
        }),
        { maxItems: limits.shardKeysMax },
      ),
      enforce_in_queries: Type.Optional(Nullable(Type.Boolean())),
      max_shard_size: Type.Optional(
        Nullable(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
      ),
    }),
    reply: Collection,
    errors: ['COLLECTION_NOT_FOUND', 'CONFLICT'],
  },
  migrateCollection: {
    method: 'POST',
    path: '/api/apps/:app/collections/:collection/migrate',
    area: 'Collections',
    summary: 'Put a new schema in force, and bring the existing records to it',
    description:
      'Records that lack a field with a default get it, as new versions; nothing else of them is changed. Then the schema is in force, in the block of the last of them. A record that breaks the new schema stops the migration: the old schema stays, and `errors` names the records. The reply waits 10 seconds for the end; GET /task/{task_id} tells how far a longer one is. One that was interrupted by a restart is repeated by the same call. With `dryRun`, nothing is written.',
    access: 'Admin',
    shows: 'definitions',
    params: CollectionParams,
    body: Type.Object({
      schema: AnySchema,
      dryRun: Type.Optional(Nullable(Type.Boolean())),
      batchSize: Type.Optional(
        Nullable(Type.Integer({ minimum: 1, maximum: limits.migrationBatchMax })),
      ),
    }),
    reply: Type.Object({
      success: Type.Boolean({ description: 'false where records break the new schema' }),
      status: StringEnum(['dry run', 'running', 'completed', 'failed']),
      migrated: Type.Integer({ description: 'records that got defaults, or would get them' }),
      checked: Type.Integer(),
      failed: Type.Integer({ description: 'records that break the new schema' }),
      errors: Type.Optional(
        Type.Array(Type.String(), {
          description: `of the first ${limits.migrationErrorsMax}: key, place and problem`,
        }),
      ),
      task_id: Type.Optional(Type.String()),
    }),
    errors: ['COLLECTION_NOT_FOUND', 'CONFLICT', 'UNAVAILABLE'],
  },
})
