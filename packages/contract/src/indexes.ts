import { Type } from 'typebox'
import { AnyQuery } from './listing.ts'
import { defineContract } from './route.ts'
import {
  AppParams,
  CollectionParams,
  extendAppParams,
  Nullable,
  StringEnum,
  Success,
  Time,
} from './schemas.ts'

const IndexState = StringEnum(['building', 'active', 'failed'])

const PriceConfig = Type.Object(
  {
    app_owner_percentage: Type.Number(),
    platform_percentage: Type.Number(),
    app_owner_address: Type.String({ description: "empty: the application's own balance" }),
  },
  {
    description: 'Fractions of what writes owe by the field. The platform keeps its own at least.',
  },
)

const IndexStatistics = Type.Object({
  size: Type.Integer({ description: 'bytes' }),
  usage_count: Type.Integer({ description: 'scans since the database counts' }),
  tuples_read: Type.Integer({ description: 'entries of the index that scans went through' }),
  last_used: Type.Optional(Time),
})

const Measure = StringEnum(['cosine', 'l2', 'inner_product'])

export const Index = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    collection: Type.String(),
    field_name: Type.String(),
    field: Type.String(),
    fields: Type.Array(Type.String()),
    index_type: Type.String(),
    type: Type.String(),
    unique_constraint: Type.Boolean(),
    sparse: Type.Boolean({ description: 'only records that have a value in the first field' }),
    where: Type.Optional(
      Type.Unknown({ description: 'which records a partial index has, as in `find`' }),
    ),
    price_config: Type.Optional(PriceConfig),
    dimensions: Type.Optional(
      Type.Integer({ description: 'of a vector index: the numbers of each list' }),
    ),
    measure: Type.Optional(Measure),
    status: IndexState,
    statistics: Type.Optional(IndexStatistics),
    created_at: Time,
    updated: Type.Optional(Type.Boolean()),
    _warning: Type.Optional(Type.String()),
  },
  { $id: 'Index' },
)

const IndexParams = extendAppParams({
  collection: Type.String({ minLength: 1, maxLength: 128 }),
  name: Type.String({ minLength: 1, maxLength: 400 }),
})

const FieldName = Type.String({ description: 'a field, or a dotted path' })
const IndexType = Type.String({
  description:
    'btree (the default), hash, fulltext, trigram, vector, unique, price, sparse, partial, composite, or the type of the field; in any case of letters',
})
const Where = Type.Unknown({
  description: 'which records a partial index has, as `find` of POST /list',
})
const Flag = Type.Optional(Nullable(Type.Boolean()))

/** The public clients speak several dialects, so most members have several names. */
const AnyIndexBody = Type.Object({
  name: Type.Optional(Type.Unknown({ description: 'text; made of the field when not given' })),
  collection: Type.Optional(Type.Unknown({ description: 'its name, where the path has none' })),
  collection_name: Type.Optional(Type.Unknown({ description: 'the same' })),
  field_name: Type.Optional(Nullable(FieldName)),
  field: Type.Optional(Nullable(FieldName)),
  fields: Type.Optional(
    Type.Unknown({ description: 'instead of one: a list of fields, in their order' }),
  ),
  index_type: Type.Optional(Nullable(IndexType)),
  type: Type.Optional(Nullable(IndexType)),
  unique: Flag,
  unique_constraint: Flag,
  sparse: Flag,
  where: Type.Optional(Where),
  dimensions: Type.Optional(
    Type.Unknown({ description: 'of a vector index: the numbers of each list, 1 to 2,000' }),
  ),
  measure: Type.Optional(
    Type.Unknown({ description: 'of a vector index: cosine (the default), l2 or inner_product' }),
  ),
  partial: Type.Optional(Nullable(Type.Object({ where: Type.Optional(Where) }))),
  options: Type.Optional(
    Nullable(
      Type.Object({
        unique: Flag,
        sparse: Flag,
        partialFilter: Type.Optional(Where),
        defaultLanguage: Type.Optional(Type.Unknown()),
      }),
    ),
  ),
  index_config: Type.Optional(
    Nullable(Type.Object({ index_type: Type.Optional(Nullable(IndexType)) })),
  ),
  price_config: Type.Optional(
    Nullable(
      Type.Object({
        app_owner_percentage: Type.Optional(Type.Unknown()),
        platform_percentage: Type.Optional(Type.Unknown()),
        app_owner_address: Type.Optional(Type.Unknown()),
        pricing_model: Type.Optional(Type.Unknown()),
        price_per_record: Type.Optional(Type.Unknown()),
      }),
    ),
  ),
  read_price_config: Type.Optional(
    Nullable(
      Type.Object({
        pricing_model: Type.Optional(Type.Unknown()),
        price_per_access: Type.Optional(Type.Unknown()),
        price_per_access_tia: Type.Optional(Type.Unknown()),
        price_per_kb: Type.Optional(Type.Unknown()),
        price_per_kb_tia: Type.Optional(Type.Unknown()),
      }),
    ),
  ),
})
const errors = [
  'APPLICATION_NOT_FOUND',
  'COLLECTION_NOT_FOUND',
  'CONFLICT',
  'PRICE_REMOVED',
] as const

export const indexes = defineContract({
  createIndex: {
    method: 'POST',
    path: '/api/apps/:app/indexes',
    area: 'Indexes',
    summary: 'Create an index, or change the one on the same field; a missing collection is made',
    access: 'Write',
    shows: 'outcome',
    params: AppParams,
    body: AnyIndexBody,
    reply: Index,
    errors,
  },
  createCollectionIndex: {
    method: 'POST',
    path: '/api/apps/:app/collections/:collection/indexes',
    area: 'Indexes',
    summary: 'Create an index on a collection',
    access: 'Write',
    shows: 'outcome',
    params: CollectionParams,
    body: AnyIndexBody,
    reply: Index,
    errors,
  },
  listIndexes: {
    method: 'GET',
    path: '/api/apps/:app/indexes',
    area: 'Indexes',
    summary: 'List all indexes of an application',
    access: 'Read',
    shows: 'definitions',
    params: AppParams,
    query: Type.Object({ include_stats: Type.Optional(Type.Boolean()) }),
    reply: Type.Array(Index),
    errors: ['APPLICATION_NOT_FOUND'],
  },
  listCollectionIndexes: {
    method: 'GET',
    path: '/api/apps/:app/collections/:collection/indexes',
    area: 'Indexes',
    summary: 'List the indexes of a collection',
    access: 'Read',
    shows: 'definitions',
    params: CollectionParams,
    query: Type.Object({ include_stats: Type.Optional(Type.Boolean()) }),
    reply: Type.Object({ indexes: Type.Array(Index) }),
    errors: ['COLLECTION_NOT_FOUND'],
  },
  getIndex: {
    method: 'GET',
    path: '/api/apps/:app/collections/:collection/indexes/:name',
    area: 'Indexes',
    summary: 'Get an index by name',
    access: 'Read',
    shows: 'definitions',
    params: IndexParams,
    reply: Index,
    errors: ['COLLECTION_NOT_FOUND', 'INDEX_NOT_FOUND'],
  },
  deleteCollectionIndex: {
    method: 'DELETE',
    path: '/api/apps/:app/collections/:collection/indexes/:name',
    area: 'Indexes',
    summary: 'Delete an index by name',
    access: 'Admin',
    shows: 'outcome',
    params: IndexParams,
    reply: Success,
    errors: ['COLLECTION_NOT_FOUND', 'INDEX_NOT_FOUND', 'CONFLICT'],
  },
  deleteIndex: {
    method: 'DELETE',
    path: '/api/apps/:app/indexes/:id',
    area: 'Indexes',
    summary: 'Delete an index by its id, its name, or `{collection}_{field}_index`',
    access: 'Admin',
    shows: 'outcome',
    params: extendAppParams({ id: Type.String({ minLength: 1, maxLength: 400 }) }),
    reply: Success,
    errors: ['APPLICATION_NOT_FOUND', 'INDEX_NOT_FOUND', 'CONFLICT'],
  },
  getIndexStatus: {
    method: 'GET',
    path: '/api/apps/:app/collections/:collection/indexes/:name/status',
    area: 'Indexes',
    summary: 'Show the progress of an index build',
    description:
      'An index of a collection with many records is built beside the writes; until it is active, reads do without it. `progress` goes from 0 to 1, and `rows_done` is an estimate by it.',
    access: 'Read',
    shows: 'definitions',
    params: IndexParams,
    reply: Type.Object({
      status: IndexState,
      building: Type.Boolean(),
      progress: Type.Number({ minimum: 0, maximum: 1 }),
      rows_done: Type.Integer(),
      rows_total: Type.Integer(),
      error: Type.Optional(Type.String()),
      created_at: Time,
    }),
    errors: ['COLLECTION_NOT_FOUND', 'INDEX_NOT_FOUND'],
  },
  getIndexStatistics: {
    method: 'GET',
    path: '/api/apps/:app/collections/:collection/indexes/:name/statistics',
    area: 'Indexes',
    summary: 'Show the use and the size of an index',
    access: 'Read',
    shows: 'definitions',
    params: IndexParams,
    reply: IndexStatistics,
    errors: ['COLLECTION_NOT_FOUND', 'INDEX_NOT_FOUND'],
  },
  rebuildIndex: {
    method: 'POST',
    path: '/api/apps/:app/collections/:collection/indexes/:name/rebuild',
    area: 'Indexes',
    summary: 'Make an index anew, beside reads and writes',
    description:
      'Waits for the end, a few seconds at most, unless `background` is true. The status of the index shows the progress.',
    access: 'Admin',
    shows: 'outcome',
    params: IndexParams,
    body: Type.Object({ background: Type.Optional(Type.Boolean()) }),
    bodyOptional: true,
    reply: Type.Object({ success: Type.Boolean(), message: Type.String(), status: IndexState }),
    errors: ['COLLECTION_NOT_FOUND', 'INDEX_NOT_FOUND', 'UNAVAILABLE'],
  },
  explainQuery: {
    method: 'POST',
    isRead: true,
    path: '/api/apps/:app/collections/:collection/explain',
    area: 'Collections',
    summary: 'Explain a query without running it',
    description:
      'Joins, groups and SQL are planned as lists are. Queries over another application are refused (403), as a plan tells what a collection holds. Costs are those of PostgreSQL; the time is what such queries took lately, or else an estimate by the cost.',
    access: 'Read',
    shows: 'definitions',
    params: CollectionParams,
    body: Type.Object({ query: AnyQuery }),
    reply: Type.Object({
      query: Type.Unknown(),
      indexes_used: Type.Array(Type.String()),
      estimated_cost: Type.Number(),
      execution_time_estimate: Type.Number({ description: 'milliseconds' }),
      optimization_hints: Type.Array(Type.String()),
    }),
    errors: [
      'APPLICATION_NOT_FOUND',
      'COLLECTION_NOT_FOUND',
      'DATA_SET_NOT_FOUND',
      'VIEW_NOT_READY',
      'GRANT_NEEDED',
    ],
  },
  optimizeCollection: {
    method: 'GET',
    path: '/api/apps/:app/collections/:collection/optimize',
    area: 'Collections',
    summary: 'Which indexes are missing or unused, judged by the queries of late',
    description:
      'From queries observed since the service started: the fields that they filter and sort by, never the values.',
    access: 'Read',
    shows: 'definitions',
    params: CollectionParams,
    reply: Type.Object({
      missing_indexes: Type.Array(
        Type.String({
          description:
            'fields of an index, joined by commas; behind them (fulltext) for one of words, (trigram) for one of parts of texts',
        }),
      ),
      unused_indexes: Type.Array(Type.String({ description: 'name of an index' })),
      slow_queries: Type.Array(
        Type.Object({
          filter: Type.Array(Type.String()),
          sort: Type.Optional(Type.String()),
          count: Type.Integer(),
          average_ms: Type.Number(),
          longest_ms: Type.Number(),
          average_rows: Type.Number(),
        }),
      ),
      recommendations: Type.Array(Type.String()),
    }),
    errors: ['COLLECTION_NOT_FOUND'],
  },
})
