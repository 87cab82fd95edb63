import { Type } from 'typebox'
import { Cascade } from './collections.ts'
import { limits } from './limits.ts'
import { defineContract } from './route.ts'
import {
  AppParams,
  AsOf,
  Described,
  extendAppParams,
  Lag,
  MapOf,
  MaxKb,
  Name,
  Nullable,
  open,
  RowLimit,
  RowOffset,
  StringEnum,
  Success,
  Time,
} from './schemas.ts'
import { TicketId } from './task.ts'
import { queryParts, refreshModes, viewSettings } from './view-settings.ts'

export const ViewRefreshMetadata = Type.Object(
  {
    last_processed_block_height: Type.Integer({
      minimum: 0,
      description: "up to here of the application's chain the view is complete",
    }),
    last_processed_sequence: Type.Integer({
      minimum: 0,
      description: 'the place within that block',
    }),
    last_processed_timestamp: Type.String({
      format: 'date-time',
      description: 'the time of the last source record up to there',
    }),
    last_processed_tx_id: Type.Optional(
      Nullable(Type.String({ description: 'the leaf hash of that record' })),
    ),
    last_refresh_timestamp: Described(Time, 'when it was brought there'),
    total_source_records: Type.Integer({
      minimum: 0,
      description: 'records of its sources, whether or not a condition leaves them out',
    }),
    total_view_records: Type.Integer({ minimum: 0, description: 'rows of the view' }),
    counts_hidden: Type.Optional(
      Type.Literal(true, {
        description:
          'a source of another application costs its reader something, and so does how much it holds; or counting takes too long now: the counts are 0 here',
      }),
    ),
  },
  {
    $id: 'ViewRefreshMetadata',
    description: 'An empty view has height 0, sequence 0 and the time of its creation',
  },
)

export const ViewInfo = Type.Object(
  {
    name: Type.String(),
    source_collections: Type.Array(Type.String(), {
      description: 'the collections and views that it reads, those of others as app::collection',
    }),
    query: Type.Unknown({ description: 'the definition, in the grammar of docs/views.md' }),
    created_at: Time,
    refresh_mode: StringEnum(refreshModes, {
      description: 'live: it follows every write; lazy: it follows POST .../refresh',
    }),
    refresh_metadata: ViewRefreshMetadata,
    variables: Type.Optional(
      Nullable(MapOf(Type.String(), { description: 'the parameters of GET .../data, by name' })),
    ),
    description: Type.Optional(Nullable(Type.String())),
    status: StringEnum(['building', 'live', 'lazy', 'stale'], {
      description: 'building: it is being filled, repaired or caught up; stale: it stands still',
    }),
    stale_reason: Type.Optional(
      Type.String({ description: 'the reason why it stands still; POST .../refresh repairs it' }),
    ),
    replacement: Type.Optional(
      Type.Object(
        {
          status: StringEnum(['building', 'live', 'lazy', 'stale']),
          stale_reason: Type.Optional(Type.String()),
        },
        { description: 'a new definition that takes the place of this one once it is whole' },
      ),
    ),
    access_policy: Type.Unknown({ description: 'its own, as sent; null: that of its sources' }),
    price: Type.Object(
      { per_access: Type.String(), per_row: Type.String(), per_kb: Type.String() },
      {
        description:
          'the price of a read for others, in atomic units; sources of other applications come on top',
      },
    ),
    _warning: Type.Optional(
      Type.String({ description: 'its policy is not understood, or its price opens it to nobody' }),
    ),
  },
  { $id: 'ViewInfo' },
)

const ViewParams = extendAppParams({
  name: Type.String({
    minLength: 1,
    maxLength: 128,
    description: 'the name of the view',
    examples: ['by-country'],
  }),
})

const Created = Type.Object({
  success: Type.Boolean(),
  message: Type.String(),
  view_name: Type.String(),
  ticket_id: Type.String({
    description: 'the id of the task that fills the view, for GET /task/{id}',
  }),
  view: ViewInfo,
})

const createErrors = [
  'APPLICATION_NOT_FOUND',
  'COLLECTION_NOT_FOUND',
  'COLLECTION_EXISTS',
  'VIEW_EXISTS',
  'GRANT_NEEDED',
  'FIELD_NOT_OFFERED',
  'CONFLICT',
  'PRICE_REMOVED',
] as const

export const views = defineContract({
  listViews: {
    method: 'GET',
    path: '/api/apps/:app/views',
    aliases: ['/apps/:app/views'],
    area: 'Materialized Views',
    summary: 'List materialized views',
    access: 'Read',
    shows: 'definitions',
    params: AppParams,
    reply: Type.Object({ views: Type.Array(ViewInfo) }),
    errors: ['APPLICATION_NOT_FOUND'],
  },
  createView: {
    method: 'POST',
    path: '/api/apps/:app/views',
    aliases: ['/apps/:app/views'],
    area: 'Materialized Views',
    summary: 'Create a materialized view',
    description:
      'The grammar of `query` is in docs/views.md. A `live` view is kept up with every write; a `lazy` one, which is the default, by POST .../refresh. It is filled beside the writes; the answer waits some seconds for that. A price that is not given is that of its sources.',
    access: 'Admin',
    shows: 'definitions',
    status: 201,
    params: AppParams,
    body: Type.Object(
      {
        name: Described(Name, 'the name of the view in paths, roots and SQL'),
        source_collections: Type.Array(Type.String({ maxLength: 200 }), {
          maxItems: limits.sqlSourcesMax,
          description:
            'the collections and views that `query` reads: `["stations", "other_app::cities"]`',
        }),
        query: Type.Unknown({
          description:
            'the definition, as docs/views.md explains it: `{"select": ["id"], "from": "stations", "where": {"$gte": ["rating", 3]}}`',
        }),
        or_replace: Type.Optional(
          Type.Boolean({
            description:
              'true: take the place of the view of this name, as OR REPLACE; settings that are not given stay. By default a name that is taken is 409',
          }),
        ),
        ...queryParts,
        ...viewSettings,
      },
      {
        examples: [
          {
            name: 'by-country',
            source_collections: ['stations'],
            query: {
              select: ['country', { n: { $count: '*' } }, { mean: { $avg: 'rating' } }],
              from: 'stations',
              group_by: ['country'],
            },
            refresh_mode: 'live',
            variables: { country: 'country' },
          },
        ],
      },
    ),
    reply: Created,
    errors: createErrors,
  },
  createViewFromSql: {
    method: 'POST',
    path: '/api/apps/:app/views/sql',
    aliases: ['/apps/:app/views/sql'],
    area: 'Materialized Views',
    summary: 'Create a materialized view from SQL',
    description:
      'One `CREATE MATERIALIZED VIEW app::name AS SELECT ...`, with IF NOT EXISTS or OR REPLACE where that is meant. A view that is replaced is read until the new one is whole.',
    access: 'Admin',
    shows: 'definitions',
    status: 201,
    params: AppParams,
    body: Type.Object(
      {
        sql: Type.String({
          maxLength: limits.sqlCharsMax,
          description:
            'one statement: `CREATE MATERIALIZED VIEW shop::names AS SELECT id, name FROM shop::people`',
        }),
        ...viewSettings,
      },
      {
        examples: [
          {
            sql: 'CREATE MATERIALIZED VIEW weather::best AS SELECT country, max(rating) AS best FROM weather::stations GROUP BY country',
            refresh_mode: 'live',
          },
        ],
      },
    ),
    reply: Created,
    errors: createErrors,
  },
  getView: {
    method: 'GET',
    path: '/api/apps/:app/views/:name',
    area: 'Materialized Views',
    summary: 'Get a materialized view',
    access: 'Read',
    shows: 'definitions',
    params: ViewParams,
    reply: ViewInfo,
    errors: ['APPLICATION_NOT_FOUND', 'VIEW_NOT_FOUND'],
  },
  deleteView: {
    method: 'DELETE',
    path: '/api/apps/:app/views/:name',
    area: 'Materialized Views',
    summary: 'Delete a materialized view',
    description:
      'With `cascade` the views that are made of it and the versions of predefined queries that read it go too; without, they forbid it.',
    access: 'Admin',
    shows: 'outcome',
    params: ViewParams,
    body: Type.Object({ cascade: Cascade }),
    bodyOptional: true,
    reply: Success,
    errors: ['APPLICATION_NOT_FOUND', 'VIEW_NOT_FOUND', 'CONFLICT'],
  },
  refreshView: {
    method: 'POST',
    path: '/api/apps/:app/views/:name/refresh',
    otherStatuses: [202],
    area: 'Materialized Views',
    summary: 'Bring a view to what its sources say now',
    description:
      'Readers see the old contents until the new ones are whole. The answer waits some seconds; of longer work it gives the ticket (202). It also repairs a view that is stale.',
    access: 'Write',
    shows: 'outcome',
    params: ViewParams,
    body: Type.Object({}),
    bodyOptional: true,
    reply: Type.Object({
      success: Type.Boolean(),
      message: Type.String(),
      refresh_metadata: Type.Optional(ViewRefreshMetadata),
      ticket_id: Type.Optional(TicketId),
    }),
    errors: [
      'APPLICATION_NOT_FOUND',
      'VIEW_NOT_FOUND',
      'GRANT_NEEDED',
      'FIELD_NOT_OFFERED',
      'CONFLICT',
      'UNAVAILABLE',
    ],
  },
  queryView: {
    method: 'GET',
    path: '/api/apps/:app/views/:name/data',
    area: 'View Query',
    summary: 'Read a view by its variables',
    description:
      "The view's `variables` are the parameters; each is a condition on the rows. An unknown one is refused.",
    access: 'by-policy',
    shows: 'records',
    paid: true,
    params: ViewParams,
    query: Type.Object(
      {
        limit: Type.Optional(RowLimit),
        offset: Type.Optional(RowOffset),
        sortBy: Type.Optional(
          Type.String({
            maxLength: limits.fieldPathCharsMax,
            description: 'a field of the view to sort by; by default the order of its rows',
          }),
        ),
        sortDirection: Type.Optional(
          Type.String({
            maxLength: 20,
            description: '`ascending` (the default) or `descending`, also `asc` and `desc`',
          }),
        ),
        max_kb: MaxKb,
      },
      {
        ...open,
        description:
          'the values of the `variables` of the view, each a parameter of its own: `?country=AT&min=2`',
        examples: [{ country: 'AT' }],
      },
    ),
    reply: Type.Object({
      data: Type.Array(Type.Unknown(), { description: 'the rows' }),
      count: Type.Integer({ description: 'the number of rows' }),
      view: Type.String({ description: 'its name' }),
      as_of: AsOf,
      lag: Lag,
    }),
    errors: [
      'APPLICATION_NOT_FOUND',
      'VIEW_NOT_FOUND',
      'VIEW_NOT_READY',
      'GRANT_NEEDED',
      'PAYMENT_REQUIRED',
      'FIELD_NOT_OFFERED',
      'DERIVATION_DENIED',
      'RESULT_TOO_LARGE',
      'QUERY_TIMEOUT',
      'UNAVAILABLE',
      'PAYMENT_ALREADY_USED',
      'PAYMENT_HELD',
      'PAYMENT_PENDING',
    ],
  },
})
