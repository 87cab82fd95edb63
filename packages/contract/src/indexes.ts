import { Type } from 'typebox'
import { AnyIndexBody } from './index-body.ts'
import { AnyQuery } from './listing.ts'
import { defineContract } from './route.ts'
import {
  AppParams,
  CollectionParam,
  CollectionParams,
  extendAppParams,
  StringEnum,
  Success,
  Time,
  VectorMeasure,
} from './schemas.ts'

const IndexState = StringEnum(['building', 'active', 'failed'], {
  description: 'building and failed: reads do without it; a failed one waits for a rebuild',
})

const PriceConfig = Type.Object(
  {
    app_owner_percentage: Type.Number({ description: 'the fraction of the application' }),
    platform_percentage: Type.Number({ description: 'the fraction of the platform' }),
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

export const Index = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    collection: Type.String({ description: 'the collection, or the view' }),
    field_name: Type.String({ description: 'the first of its fields' }),
    field: Type.String({ description: 'another name of `field_name`' }),
    fields: Type.Array(Type.String(), { description: 'in their order' }),
    index_type: Type.String({ description: 'such as btree, fulltext or price' }),
    type: Type.String({ description: 'another name of `index_type`' }),
    unique_constraint: Type.Boolean({
      description: 'true: of all records with one value the newest counts',
    }),
    sparse: Type.Boolean({ description: 'only records that have a value in the first field' }),
    where: Type.Optional(
      Type.Unknown({ description: 'the records of a partial index, as `find` of POST /list' }),
    ),
    price_config: Type.Optional(PriceConfig),
    dimensions: Type.Optional(
      Type.Integer({ description: 'for a vector index: the numbers of each list' }),
    ),
    measure: Type.Optional(VectorMeasure),
    status: IndexState,
    statistics: Type.Optional(IndexStatistics),
    created_at: Time,
    updated: Type.Optional(
      Type.Boolean({ description: 'true where it takes the place of one on the same fields' }),
    ),
    _warning: Type.Optional(
      Type.String({ description: 'the part of the request that has no effect' }),
    ),
  },
  { $id: 'Index' },
)

const IndexName = Type.String({
  minLength: 1,
  maxLength: 400,
  description: 'the name of the index, its id, or `{collection}_{field}_index`',
  examples: ['stations_country_idx'],
})

const IndexParams = extendAppParams({ collection: CollectionParam, name: IndexName })

const IncludeStats = Type.Object({
  include_stats: Type.Optional(
    Type.Boolean({
      description: 'true: each index comes with its `statistics`; by default without',
    }),
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
    query: IncludeStats,
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
    query: IncludeStats,
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
    params: extendAppParams({ id: IndexName }),
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
      progress: Type.Number({ minimum: 0, maximum: 1, description: '1 once it is whole' }),
      rows_done: Type.Integer({ description: 'an estimate by `progress`' }),
      rows_total: Type.Integer({ description: 'records of the collection' }),
      error: Type.Optional(Type.String({ description: 'the reason why the last attempt failed' })),
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
    body: Type.Object({
      background: Type.Optional(
        Type.Boolean({
          description:
            'true: do not wait for the end; by default the answer waits 5 seconds for it',
        }),
      ),
    }),
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
    body: Type.Object(
      { query: AnyQuery },
      { examples: [{ query: { find: { country: 'AT' }, sortBy: 'rating', limit: 10 } }] },
    ),
    reply: Type.Object({
      query: Type.Unknown({ description: 'that of the request' }),
      indexes_used: Type.Array(Type.String(), {
        description: 'by name; of another collection as `collection: index`',
      }),
      estimated_cost: Type.Number({ description: "in PostgreSQL's unit" }),
      execution_time_estimate: Type.Number({ description: 'milliseconds' }),
      optimization_hints: Type.Array(Type.String(), { description: 'advice in sentences' }),
    }),
    errors: [
      'APPLICATION_NOT_FOUND',
      'COLLECTION_NOT_FOUND',
      'DATA_SET_NOT_FOUND',
      'VIEW_NOT_READY',
      'GRANT_NEEDED',
      'QUERY_TOO_EXPENSIVE',
      'QUERY_TIMEOUT',
      'UNAVAILABLE',
    ],
  },
  optimizeCollection: {
    method: 'GET',
    path: '/api/apps/:app/collections/:collection/optimize',
    area: 'Collections',
    summary: 'List the indexes that are missing or unused, judged by the queries of late',
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
          filter: Type.Array(Type.String(), { description: 'fields of the conditions' }),
          sort: Type.Optional(Type.String({ description: 'the field of the order' })),
          count: Type.Integer({ description: 'its runs since the service started' }),
          average_ms: Type.Number({ description: 'milliseconds of a run in the mean' }),
          longest_ms: Type.Number({ description: 'milliseconds of the slowest run' }),
          average_rows: Type.Number({ description: 'rows of an answer in the mean' }),
        }),
        { description: 'queries that take 50 ms or more on average, by their fields' },
      ),
      recommendations: Type.Array(Type.String(), { description: 'advice in sentences' }),
    }),
    errors: ['COLLECTION_NOT_FOUND'],
  },
})
