import { Type } from 'typebox'
import { AnyPolicy, Price } from './collections.ts'
import { limits } from './limits.ts'
import { confirm_free } from './price-targets.ts'
import { defineContract } from './route.ts'
import {
  AppParams,
  AsOf,
  AtomicInput,
  Description,
  extendAppParams,
  Lag,
  MapOf,
  Name,
  Nullable,
  open,
  StringEnum,
  Success,
  Time,
} from './schemas.ts'

export const refreshModes = ['live', 'lazy'] as const

/** Members of a query that public clients also send beside it. */
export const viewQueryParts = [
  'select',
  'find',
  'where',
  'filter',
  'group_by',
  'groupBy',
  'aggregate',
  'having',
  'sort_by',
  'order_by',
  'orderBy',
  'limit',
] as const

export const ViewRefreshMetadata = Type.Object(
  {
    last_processed_block_height: Type.Integer({
      minimum: 0,
      description: "up to here of the application's chain the view is complete",
    }),
    last_processed_sequence: Type.Integer({ minimum: 0 }),
    last_processed_timestamp: Type.String({
      format: 'date-time',
      description: 'of the last source record up to there',
    }),
    last_processed_tx_id: Type.Optional(Nullable(Type.String())),
    last_refresh_timestamp: Time,
    total_source_records: Type.Integer({ minimum: 0 }),
    total_view_records: Type.Integer({ minimum: 0 }),
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
    source_collections: Type.Array(Type.String()),
    query: Type.Unknown({ description: 'the definition, in the grammar of docs/views.md' }),
    created_at: Time,
    refresh_mode: StringEnum(refreshModes),
    refresh_metadata: ViewRefreshMetadata,
    variables: Type.Optional(Nullable(MapOf(Type.String()))),
    description: Type.Optional(Nullable(Type.String())),
    status: StringEnum(['building', 'live', 'lazy', 'stale']),
    stale_reason: Type.Optional(
      Type.String({ description: 'why it stands still; POST .../refresh repairs it' }),
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
    access_policy: Type.Unknown(),
    price: Type.Object(
      { per_access: Type.String(), per_row: Type.String(), per_kb: Type.String() },
      {
        description:
          'what a read costs others, in atomic units; sources of other applications come on top',
      },
    ),
    _warning: Type.Optional(Type.String()),
  },
  { $id: 'ViewInfo' },
)

const ViewParams = extendAppParams({ name: Type.String({ minLength: 1, maxLength: 128 }) })

/** The settings of a view beside its definition. */
const settings = {
  refresh_mode: Type.Optional(Nullable(StringEnum(refreshModes))),
  variables: Type.Optional(
    Nullable(
      MapOf(Type.String({ minLength: 1, maxLength: limits.fieldPathCharsMax }), {
        names: Name,
        description:
          'parameters of GET .../data: name -> field of the view, or field and operator (`price.$gte`)',
      }),
    ),
  ),
  access_policy: Type.Optional(Nullable(AnyPolicy)),
  price: Type.Optional(Nullable(Price)),
  public: Type.Optional(
    Nullable(
      Type.Boolean({
        description:
          "whether strangers may read it, free or by paying, whatever its sources' policy (private ones excepted); if not given, they may where all its sources are open to them",
      }),
    ),
  ),
  description: Type.Optional(Nullable(Description)),
  confirm_free,
}

/** Members of `query` that may stand beside it, as public clients send them. */
const queryParts = Object.fromEntries(
  viewQueryParts.map((name) => [
    name,
    Type.Optional(Type.Unknown({ description: 'a member of `query`, beside it' })),
  ]),
)

const Created = Type.Object({
  success: Type.Boolean(),
  message: Type.String(),
  view_name: Type.String(),
  ticket_id: Type.String({ description: 'of the task that fills the view' }),
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
    body: Type.Object({
      name: Name,
      source_collections: Type.Array(Type.String({ maxLength: 200 }), {
        maxItems: limits.sqlSourcesMax,
      }),
      query: Type.Unknown(),
      or_replace: Type.Optional(
        Type.Boolean({
          description:
            'take the place of the view of this name, as OR REPLACE; settings that are not given stay',
        }),
      ),
      ...queryParts,
      ...settings,
    }),
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
    body: Type.Object({ sql: Type.String({ maxLength: limits.sqlCharsMax }), ...settings }),
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
    body: Type.Object({ cascade: Type.Optional(Type.Boolean()) }),
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
      ticket_id: Type.Optional(Type.String()),
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
        limit: Type.Optional(Type.Integer({ minimum: 0, maximum: limits.rowsMax })),
        offset: Type.Optional(Type.Integer({ minimum: 0, maximum: limits.offsetMax })),
        sortBy: Type.Optional(Type.String({ maxLength: limits.fieldPathCharsMax })),
        sortDirection: Type.Optional(Type.String({ maxLength: 20 })),
        max_kb: Type.Optional(
          Type.Integer({ minimum: 1, maximum: limits.paidResultBytesMax / 1024 }),
        ),
      },
      open,
    ),
    reply: Type.Object({
      data: Type.Array(Type.Unknown()),
      count: Type.Integer(),
      view: Type.String(),
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

export const Grant = Type.Object(
  {
    id: Type.String(),
    grantee: Type.String({ description: 'the application that may build views on the source' }),
    collection: Type.Optional(Type.String()),
    view: Type.Optional(Type.String()),
    per_access: Nullable(
      Type.String({ description: "atomic units; null: the source's own derive price" }),
    ),
    created_at: Time,
  },
  { $id: 'Grant' },
)

export const grants = defineContract({
  createGrant: {
    method: 'POST',
    path: '/api/apps/:app/grants',
    area: 'Materialized Views',
    summary: 'Let another application build views on a collection or a view',
    description:
      'Each read of such a view costs its reader `per_access`, or else the derive price of the source, and that is this application’s. The same again changes the price.',
    access: 'Admin',
    shows: 'definitions',
    status: 201,
    params: AppParams,
    body: Type.Object({
      grantee: Type.String({ minLength: 1, maxLength: 64 }),
      collection: Type.Optional(Nullable(Type.String({ minLength: 1, maxLength: 128 }))),
      view: Type.Optional(Nullable(Type.String({ minLength: 1, maxLength: 128 }))),
      per_access: Type.Optional(Nullable(AtomicInput)),
    }),
    reply: Grant,
    errors: ['APPLICATION_NOT_FOUND', 'COLLECTION_NOT_FOUND', 'VIEW_NOT_FOUND', 'CONFLICT'],
  },
  listGrants: {
    method: 'GET',
    path: '/api/apps/:app/grants',
    area: 'Materialized Views',
    summary: 'List the grants of an application',
    access: 'Read',
    shows: 'definitions',
    params: AppParams,
    reply: Type.Object({ grants: Type.Array(Grant) }),
    errors: ['APPLICATION_NOT_FOUND'],
  },
  revokeGrant: {
    method: 'POST',
    path: '/api/apps/:app/grants/:id/revoke',
    area: 'Materialized Views',
    summary: 'Take a grant back: views that need it cannot be read or refreshed any more',
    access: 'Admin',
    shows: 'outcome',
    params: extendAppParams({ id: Type.String({ minLength: 1, maxLength: 64 }) }),
    body: Type.Object({}),
    bodyOptional: true,
    reply: Success,
    errors: ['APPLICATION_NOT_FOUND', 'GRANT_NOT_FOUND'],
  },
  deleteGrant: {
    method: 'DELETE',
    path: '/api/apps/:app/grants/:id',
    area: 'Materialized Views',
    summary: 'Take a grant back',
    access: 'Admin',
    shows: 'outcome',
    params: extendAppParams({ id: Type.String({ minLength: 1, maxLength: 64 }) }),
    reply: Success,
    errors: ['APPLICATION_NOT_FOUND', 'GRANT_NOT_FOUND'],
  },
})
