import { Type } from 'typebox'
import { AnyPolicy } from './access-policy.ts'
import { limits } from './limits.ts'
import { confirm_free } from './price-targets.ts'
import { Relation } from './relations.ts'
import { defineContract } from './route.ts'
import { AnySchema } from './schema-definition.ts'
import {
  AppParams,
  Atomic,
  CollectionParams,
  Described,
  Name,
  Nullable,
  StringEnum,
  Success,
  Time,
} from './schemas.ts'
import { Sharding, ShardingRequest } from './sharding.ts'

export const collectionTypes = ['document', 'event', 'blob', 'api'] as const

const DocumentCount = Type.Integer({
  description: 'records, each in its newest version; 0 for those who may not count them',
})
const StorageSize = Type.Integer({ description: 'bytes of the records as stored' })
const AverageSize = Type.Number({ description: 'bytes of a record in the mean' })

export const Collection = Type.Object(
  {
    collection_id: Type.String({ description: 'an id that stays when the name changes' }),
    name: Type.String(),
    namespace: Type.String({ description: 'a label that stored records come with' }),
    primary_column: Type.String({ description: 'the field that has the key of a record' }),
    sort_column: Nullable(Type.String({ description: 'kept as sent; it has no effect' })),
    collection_type: Type.String({ description: 'document, event, blob or api' }),
    access_policy: Type.Unknown({ description: 'as it was sent; null: for keys alone' }),
    schema_definition: Type.Unknown({
      description: 'as it was sent; null: records may be anything',
    }),
    indexes: Type.Array(Type.Unknown(), {
      description: 'its indexes, as GET .../indexes has them',
    }),
    relations: Type.Array(Relation, { description: 'those that the caller may see' }),
    sharding: Nullable(Sharding),
    encrypted: Type.Optional(
      Type.Boolean({
        description: 'present and true where its records are sealed; see docs/encryption.md',
      }),
    ),
    created_at: Time,
    updated_at: Time,
    metadata: Type.Object({
      document_count: DocumentCount,
      storage_size: StorageSize,
      avg_document_size: AverageSize,
    }),
    _warning: Type.Optional(
      Type.String({ description: 'its policy has a form that is not understood' }),
    ),
  },
  { $id: 'Collection' },
)

const defineColumn = (description: string) =>
  Type.String({ minLength: 1, maxLength: limits.fieldPathCharsMax, description })

const CollectionName = Described(Name, 'the name in paths, roots and SQL: 1-63 of a-z A-Z 0-9 _ -')

const settings = {
  namespace: Type.Optional(
    Nullable(
      Type.String({
        minLength: 1,
        maxLength: limits.nameCharsMax,
        description: 'a label that stored records come with; `{app}_{name}` by default',
      }),
    ),
  ),
  primary_column: Type.Optional(
    Nullable(
      defineColumn(
        'the field that has the key of a record, of which each store makes a new version; `id` by default',
      ),
    ),
  ),
  sort_column: Type.Optional(Nullable(defineColumn('kept and shown; it has no effect'))),
  collection_type: Type.Optional(
    Nullable(
      StringEnum(collectionTypes, {
        description:
          'document (the default); event: records are never replaced; blob: files; api: made by createApiCollection alone',
      }),
    ),
  ),
  access_policy: Type.Optional(Nullable(AnyPolicy)),
  schema_definition: Type.Optional(Nullable(AnySchema)),
}

/** Views and queries may need what is deleted. */
export const Cascade = Type.Optional(
  Type.Boolean({
    description:
      'true: what needs it is deleted, too; by default views and queries that need it forbid it (409)',
  }),
)

const StatsQuery = Type.Object({
  include_stats: Type.Optional(
    Type.Boolean({ description: 'has no effect: `metadata` always has the counts' }),
  ),
})

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
    body: Type.Object(
      { name: CollectionName, ...settings },
      {
        examples: [
          {
            name: 'stations',
            access_policy: { read: 'public', price: { per_row: '1000' } },
            schema_definition: {
              fields: {
                name: { type: 'string', required: true },
                country: { type: 'string', index: true },
                rating: { type: 'number' },
              },
            },
          },
        ],
      },
    ),
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
    description: 'Settings that are not given, or null, stay as they are.',
    access: 'Admin',
    shows: 'definitions',
    params: CollectionParams,
    body: Type.Object({
      name: Type.Optional(Described(Name, 'a new name: 1-63 of a-z A-Z 0-9 _ -')),
      ...settings,
      confirm_free,
    }),
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
    body: Type.Object({ cascade: Cascade }),
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
    body: Type.Object(
      { data: Type.Unknown({ description: 'a record, or a list of records: `{"id": "st_1"}`' }) },
      { examples: [{ data: [{ id: 'st_1', name: 'Graz', rating: 5 }] }] },
    ),
    reply: Type.Object({
      valid: Type.Boolean(),
      errors: Type.Optional(
        Type.Array(Type.String(), { description: 'the problems, by record and field' }),
      ),
    }),
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
      document_count: DocumentCount,
      storage_size: StorageSize,
      avg_document_size: AverageSize,
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
      schema: Type.Unknown({ description: 'its `schema_definition`; null where it has none' }),
      row_count_band: Type.String({ description: 'its size by powers of ten, such as `100-999`' }),
      updated_at: Time,
      sample: Type.Array(Type.Unknown(), {
        description: 'the first records, the same for everybody',
      }),
      price: Type.Optional(
        Type.Object(
          { per_access: Atomic, per_row: Atomic, per_kb: Atomic },
          { description: 'the price of reading for others, in atomic units' },
        ),
      ),
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
    body: ShardingRequest,
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
    body: Type.Object(
      {
        schema: AnySchema,
        dryRun: Type.Optional(
          Nullable(
            Type.Boolean({
              description: 'true: check the records and write nothing; false by default',
            }),
          ),
        ),
        batchSize: Type.Optional(
          Nullable(
            Type.Integer({
              minimum: 1,
              maximum: limits.migrationBatchMax,
              description: 'the records that are written at a time; 1,000 by default',
            }),
          ),
        ),
      },
      {
        examples: [
          { schema: { fields: { active: { type: 'boolean', default: true } } }, dryRun: true },
        ],
      },
    ),
    reply: Type.Object({
      success: Type.Boolean({ description: 'false where records break the new schema' }),
      status: StringEnum(['dry run', 'running', 'completed', 'failed'], {
        description:
          'dry run: nothing was written; completed: the schema is in force; failed: the old one stays',
      }),
      migrated: Type.Integer({ description: 'records that got defaults, or would get them' }),
      checked: Type.Integer({ description: 'records that were looked at' }),
      failed: Type.Integer({ description: 'records that break the new schema' }),
      errors: Type.Optional(
        Type.Array(Type.String(), {
          description: `key, place and problem of the first ${limits.migrationErrorsMax}`,
        }),
      ),
      task_id: Type.Optional(
        Type.String({ description: 'while it is running: GET /task/{task_id} shows the progress' }),
      ),
    }),
    errors: ['COLLECTION_NOT_FOUND', 'CONFLICT', 'UNAVAILABLE'],
  },
})
