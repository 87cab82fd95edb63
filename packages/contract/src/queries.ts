import { Type } from 'typebox'
import { confirm_free } from './price-targets.ts'
import { QueryDefinition, QueryParameter, RateLimit } from './query-definition.ts'
import { defineContract } from './route.ts'
import {
  AppParams,
  AsOf,
  Atomic,
  Described,
  extendAppParams,
  Lag,
  MaxKb,
  Name,
  Nullable,
  open,
  QuoteKind,
  RowLimit,
  RowOffset,
  StringEnum,
  Success,
  Time,
} from './schemas.ts'

const closed = { additionalProperties: false } as const

export const PredefinedQuery = Type.Object(
  {
    name: Name,
    version: Type.Integer({ description: 'the version that is described' }),
    versions: Type.Array(Type.Object({ version: Type.Integer(), created_at: Time }), {
      description: 'all that can be called, by `?version=`',
    }),
    description: Nullable(Type.String()),
    public: Type.Boolean({ description: 'true: strangers may ask, free or by paying' }),
    parameters: Type.Array(QueryParameter),
    columns: Nullable(Type.Array(Type.String(), { description: 'null: records whole' })),
    price: Type.Object(
      {
        per_access: Atomic,
        per_row: Atomic,
        per_kb: Atomic,
        explicit: Type.Boolean({ description: 'set by its owner, not taken from its sources' }),
      },
      { description: 'the price of the application itself for others' },
    ),
    rate_limit: Nullable(RateLimit),
    quote: QuoteKind,
    min_group_size: Nullable(Type.Integer({ description: 'groups of fewer records are left out' })),
    sources: Type.Array(Type.String(), {
      description: 'the collections and views that it reads, as app::collection',
    }),
    endpoint: Type.String({ description: 'path of its data' }),
    documentation: Type.String({ description: 'path of its page' }),
    example_request: Type.Optional(Type.Unknown()),
    example_response: Type.Optional(Type.Unknown()),
    sql: Type.Optional(Type.String({ description: 'for keys of the application' })),
    source_collection: Type.Optional(Type.String()),
    base_query: Type.Optional(Type.Unknown()),
    created_at: Time,
  },
  { $id: 'PredefinedQuery' },
)

const QueryParams = extendAppParams({
  name: Described(Name, 'the name of the query', ['stations-of']),
})
const defineVersion = (description: string) =>
  Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000, description }))
const Version = defineVersion('a version of the query; the newest by default')
const QueryVersion = Type.Object({ version: Version })
const refusals = ['APPLICATION_NOT_FOUND', 'QUERY_NOT_FOUND'] as const
const ofSources = [
  'COLLECTION_NOT_FOUND',
  'FIELD_NOT_OFFERED',
  'DERIVATION_DENIED',
  'VIEW_NOT_READY',
  'GRANT_NEEDED',
] as const

export const formats = ['json', 'csv', 'ndjson'] as const

export const queries = defineContract({
  createQuery: {
    method: 'POST',
    path: '/api/apps/:app/queries',
    area: 'Predefined Queries',
    summary: 'Define a query under a name, or the next version of one',
    description:
      'Either `sql` with `:name` in the place of values, or `source_collection` with a `base_query` into which parameters put conditions. It is compiled and planned now, so that it cannot fail for its text later. A name that is there gets the next version; older ones stay callable by `?version=`. Each version has its own price and rate limit; whether the query is public is for the newest one to say.',
    access: 'Admin',
    shows: 'definitions',
    status: 201,
    params: AppParams,
    body: Type.Object(
      { ...QueryDefinition.properties, confirm_free },
      {
        ...closed,
        examples: [
          {
            name: 'stations-of',
            source_collection: 'stations',
            base_query: { select: ['id', 'name', 'rating'], sort: '-rating', limit: 20 },
            parameters: [
              { name: 'country', field_path: 'country' },
              { name: 'min_rating', field_path: 'rating.$gte', type: 'number', default: 0 },
            ],
            public: true,
            price: { per_row: '100' },
          },
        ],
      },
    ),
    reply: PredefinedQuery,
    errors: [
      ...refusals,
      ...ofSources,
      'CONFLICT',
      'PRICE_REMOVED',
      'QUERY_TOO_EXPENSIVE',
      'QUERY_TIMEOUT',
      'UNAVAILABLE',
    ],
  },
  listQueries: {
    method: 'GET',
    path: '/api/apps/:app/queries',
    area: 'Predefined Queries',
    summary: 'List queries: all with a key of the application, the public ones without',
    access: 'public',
    shows: 'definitions',
    params: AppParams,
    reply: Type.Object({ queries: Type.Array(PredefinedQuery) }),
    errors: ['APPLICATION_NOT_FOUND'],
  },
  getQuery: {
    method: 'GET',
    path: '/api/apps/:app/queries/:name',
    area: 'Predefined Queries',
    summary:
      'A query with its parameters, versions and price; its text is for keys of the application',
    access: 'by-policy',
    shows: 'definitions',
    params: QueryParams,
    query: QueryVersion,
    reply: PredefinedQuery,
    errors: refusals,
  },
  deleteQuery: {
    method: 'DELETE',
    path: '/api/apps/:app/queries/:name',
    area: 'Predefined Queries',
    summary: 'Delete a query, or one version of it',
    access: 'Admin',
    shows: 'outcome',
    params: QueryParams,
    query: Type.Object({ version: defineVersion('the version to delete; all by default') }),
    reply: Success,
    errors: refusals,
  },
  dryRunQuery: {
    method: 'POST',
    isRead: true,
    path: '/api/apps/:app/queries/:name/dry-run',
    area: 'Predefined Queries',
    summary: 'Show the plan of a query and its price for others, without running it',
    access: 'Admin',
    shows: 'definitions',
    params: QueryParams,
    query: QueryVersion,
    body: Type.Object({
      parameters: Type.Optional(
        Type.Object(
          {},
          {
            ...open,
            description: 'the values by name, `limit` and `offset` among them: `{"country": "AT"}`',
          },
        ),
      ),
    }),
    bodyOptional: true,
    reply: Type.Object({
      query: Type.String({ description: 'its name' }),
      version: Type.Integer({ description: 'the version that was planned' }),
      parameters: Type.Object(
        {},
        { ...open, description: 'the values as they are bound, defaults among them' },
      ),
      columns: Nullable(Type.Array(Type.String(), { description: 'null: records whole' })),
      plan: Type.Object({
        estimated_cost: Type.Number({ description: "in PostgreSQL's unit" }),
        indexes_used: Type.Array(Type.String(), { description: 'by name' }),
        statement_characters: Type.Integer({ description: 'length of the compiled statement' }),
        values_bound: Type.Integer({ description: 'values that stand beside it' }),
      }),
      price_cap: Nullable(
        Type.Object(
          { amount: Atomic, per_access: Atomic, per_row: Atomic, per_kb: Atomic },
          {
            description:
              'the quote for others, in atomic units; null where they may not ask, or would have to give a limit',
          },
        ),
      ),
    }),
    errors: [...refusals, ...ofSources, 'QUERY_TOO_EXPENSIVE', 'QUERY_TIMEOUT', 'UNAVAILABLE'],
  },
  executeQuery: {
    method: 'GET',
    path: '/api/queries/:app/:name/data',
    aliases: ['/queries/:app/:name/data', '/api/apps/:app/queries/:name/data'],
    area: 'Predefined Queries',
    summary: 'Ask a predefined query',
    description:
      'Its parameters stand in the query string: an unknown, a missing and an ill-typed one are 400. `limit` and `offset` take a part of the rows. `Accept` or `format` chooses JSON, CSV (RFC 4180, with a header) or NDJSON; `as_of` and `count` are in JSON. Where it has a price, the reply without a payment is 402.',
    access: 'by-policy',
    shows: 'records',
    paid: true,
    params: QueryParams,
    query: Type.Object(
      {
        limit: Type.Optional(RowLimit),
        offset: Type.Optional(RowOffset),
        version: Version,
        format: Type.Optional(
          StringEnum(formats, {
            description:
              'the form of the answer; where it is not given, `Accept` decides, and JSON is the default',
          }),
        ),
        max_kb: MaxKb,
      },
      {
        ...open,
        description:
          'the values of the `parameters` of the query, each a parameter of its own: `?country=AT&min_rating=3`',
        examples: [{ country: 'AT', min_rating: 3 }],
      },
    ),
    reply: Type.Object({
      data: Type.Array(Type.Unknown(), { description: 'the rows' }),
      count: Type.Integer({ description: 'the number of rows' }),
      query: Type.String({ description: 'its name' }),
      version: Type.Integer({ description: 'the version that ran' }),
      as_of: AsOf,
      lag: Type.Optional(Lag),
    }),
    otherReplyTypes: ['text/csv', 'application/x-ndjson'],
    errors: [
      ...refusals,
      ...ofSources,
      'DATA_SET_NOT_FOUND',
      'GRANT_NEEDED',
      'VIEW_NOT_READY',
      'PAYMENT_REQUIRED',
      'RATE_LIMITED',
      'RESULT_TOO_LARGE',
      'QUERY_TOO_EXPENSIVE',
      'QUERY_TIMEOUT',
      'UNAVAILABLE',
      'PAYMENT_ALREADY_USED',
      'PAYMENT_HELD',
      'PAYMENT_PENDING',
    ],
  },
  getQueryDocs: {
    method: 'GET',
    path: '/docs/queries/:app/:name',
    area: 'Predefined Queries',
    summary: 'A query as a page to read',
    access: 'by-policy',
    shows: 'definitions',
    params: QueryParams,
    reply: Type.String(),
    replyType: 'text/html',
    errors: refusals,
  },
  getQueriesOpenapi: {
    method: 'GET',
    path: '/api/queries/:app/openapi.json',
    area: 'Predefined Queries',
    summary: 'The public queries of an application as an OpenAPI 3.1 document',
    access: 'public',
    shows: 'definitions',
    params: AppParams,
    reply: Type.Object({}, open),
    errors: ['APPLICATION_NOT_FOUND'],
  },
})
