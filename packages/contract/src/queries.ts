import { type Static, Type } from 'typebox'
import { Price } from './collections.ts'
import { limits } from './limits.ts'
import { confirm_free } from './price-targets.ts'
import { defineContract } from './route.ts'
import {
  AppParams,
  AsOf,
  Atomic,
  Description,
  extendAppParams,
  Lag,
  Name,
  Nullable,
  open,
  QuoteKind,
  StringEnum,
  Success,
  Time,
} from './schemas.ts'

const closed = { additionalProperties: false } as const

export const parameterTypes = ['string', 'number', 'integer', 'boolean', 'date', 'enum'] as const

const Bound = Type.Union([
  Type.Number(),
  Type.String({ maxLength: 40, description: 'of a date: a date or a time' }),
])
const Count = (maximum: number) => Type.Integer({ minimum: 0, maximum })

/** A parameter that callers can set. Each is given once, as `?name=value`; only a list may repeat. */
export const QueryParameter = Type.Object(
  {
    name: Type.String({
      pattern: '^[A-Za-z_][A-Za-z0-9_]{0,62}$',
      description: 'in SQL it stands as :name',
    }),
    field_path: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: limits.fieldPathCharsMax,
        description:
          'of a base_query: a field that must equal the value (`country`), a field and an operator (`price.$gte`), or `limit`, `offset`, `sort`',
      }),
    ),
    type: Type.Optional(StringEnum([...parameterTypes, 'list'])),
    items: Type.Optional(StringEnum(parameterTypes)),
    values: Type.Optional(
      Type.Array(Type.Union([Type.String({ maxLength: 200 }), Type.Number()]), {
        minItems: 1,
        maxItems: 200,
        description: 'of an enum: what is possible',
      }),
    ),
    min: Type.Optional(Bound),
    max: Type.Optional(Bound),
    pattern: Type.Optional(
      Type.String({
        maxLength: limits.regexCharsMax,
        description: 'that the whole of a string must match',
      }),
    ),
    minLength: Type.Optional(Count(limits.queryTextCharsMax)),
    maxLength: Type.Optional(Count(limits.queryTextCharsMax)),
    maxItems: Type.Optional(
      Type.Integer({ minimum: 1, maximum: limits.queryListMax, description: 'of a list' }),
    ),
    default: Type.Optional(
      Type.Unknown({ description: 'takes the place of a value that is not given' }),
    ),
    required: Type.Optional(
      Type.Boolean({
        description:
          'without a default: true. With false the condition of field_path is left out where no value is given',
      }),
    ),
    description: Type.Optional(Type.String({ maxLength: 500 })),
  },
  { $id: 'QueryParameter', ...closed },
)
export type QueryParameter = Static<typeof QueryParameter>

const RateLimit = Type.Object(
  {
    requests: Type.Integer({ minimum: 1, maximum: 1_000_000 }),
    window_seconds: Type.Integer({ minimum: 1, maximum: 86_400 }),
  },
  { ...closed, description: 'of each caller: key, wallet, or address' },
)

const BaseQuery = Type.Object(
  {
    find: Type.Optional(
      Type.Unknown({ description: 'as of POST /list; Mongo names are taken too' }),
    ),
    select: Type.Optional(Type.Unknown({ description: 'as of POST /list, or a list of fields' })),
    sort: Type.Optional(
      Type.Unknown({ description: 'a field, or a list of one; `-rating` is descending' }),
    ),
    limit: Type.Optional(Nullable(Type.Integer({ minimum: 0, maximum: limits.rowsMax }))),
    offset: Type.Optional(Nullable(Type.Integer({ minimum: 0, maximum: limits.offsetMax }))),
    group_by: Type.Optional(Type.Unknown()),
    aggregate: Type.Optional(Type.Unknown()),
    distinct: Type.Optional(Type.Unknown()),
  },
  closed,
)

/** The definition of a query, in either of its two forms. */
export const QueryDefinition = Type.Object(
  {
    name: Name,
    description: Type.Optional(Description),
    sql: Type.Optional(
      Type.String({
        maxLength: limits.sqlCharsMax,
        description: 'one SELECT over app::collection with :name in the place of values',
      }),
    ),
    source_collection: Type.Optional(
      Type.String({
        maxLength: 128,
        description: 'instead of sql: a collection, or app::collection',
      }),
    ),
    base_query: Type.Optional(BaseQuery),
    parameters: Type.Optional(Type.Array(QueryParameter, { maxItems: limits.queryParametersMax })),
    version: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 1_000_000, description: 'higher than the newest' }),
    ),
    price: Type.Optional(Nullable(Price)),
    quote: Type.Optional(Nullable(QuoteKind)),
    public: Type.Optional(
      Nullable(
        Type.Boolean({
          description:
            "whether strangers may ask, free or by paying, whatever its sources' policy (private ones excepted); if not given, they may where all its sources are open to them, and either offer all of their fields or the query has a price of its own",
        }),
      ),
    ),
    rate_limit: Type.Optional(Nullable(RateLimit)),
    min_group_size: Type.Optional(
      Nullable(
        Type.Integer({
          minimum: 1,
          maximum: 1_000_000,
          description: 'groups of fewer records are left out',
        }),
      ),
    ),
    example_request: Type.Optional(Type.Unknown()),
    example_response: Type.Optional(Type.Unknown()),
  },
  { $id: 'QueryDefinition', ...closed },
)
export type QueryDefinition = Static<typeof QueryDefinition>

export const PredefinedQuery = Type.Object(
  {
    name: Name,
    version: Type.Integer(),
    versions: Type.Array(Type.Object({ version: Type.Integer(), created_at: Time })),
    description: Nullable(Type.String()),
    public: Type.Boolean(),
    parameters: Type.Array(QueryParameter),
    columns: Nullable(Type.Array(Type.String(), { description: 'null: records whole' })),
    price: Type.Object(
      {
        per_access: Atomic,
        per_row: Atomic,
        per_kb: Atomic,
        explicit: Type.Boolean({ description: 'set by its owner, not taken from its sources' }),
      },
      { description: 'what the application itself asks of others' },
    ),
    rate_limit: Nullable(RateLimit),
    quote: QuoteKind,
    min_group_size: Nullable(Type.Integer()),
    sources: Type.Array(Type.String()),
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

const QueryParams = extendAppParams({ name: Name })
const Version = Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 }))
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
    body: Type.Object({ ...QueryDefinition.properties, confirm_free }, closed),
    reply: PredefinedQuery,
    errors: [
      ...refusals,
      ...ofSources,
      'CONFLICT',
      'PRICE_REMOVED',
      'QUERY_TOO_EXPENSIVE',
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
    query: QueryVersion,
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
        Type.Object({}, { ...open, description: 'by name, `limit` and `offset` among them' }),
      ),
    }),
    bodyOptional: true,
    reply: Type.Object({
      query: Type.String(),
      version: Type.Integer(),
      parameters: Type.Object({}, { ...open, description: 'as bound, defaults among them' }),
      columns: Nullable(Type.Array(Type.String())),
      plan: Type.Object({
        estimated_cost: Type.Number(),
        indexes_used: Type.Array(Type.String()),
        statement_characters: Type.Integer(),
        values_bound: Type.Integer(),
      }),
      price_cap: Nullable(
        Type.Object(
          { amount: Atomic, per_access: Atomic, per_row: Atomic, per_kb: Atomic },
          {
            description:
              'what others are quoted; null where they may not ask, or would have to give a limit',
          },
        ),
      ),
    }),
    errors: [...refusals, ...ofSources],
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
        limit: Type.Optional(Type.Integer({ minimum: 0, maximum: limits.rowsMax })),
        offset: Type.Optional(Type.Integer({ minimum: 0, maximum: limits.offsetMax })),
        version: Version,
        format: Type.Optional(StringEnum(formats)),
        max_kb: Type.Optional(
          Type.Integer({
            minimum: 1,
            maximum: limits.paidResultBytesMax / 1024,
            description: 'bounds the answer, and the quote, of what is sold by the KB',
          }),
        ),
      },
      open,
    ),
    reply: Type.Object({
      data: Type.Array(Type.Unknown()),
      count: Type.Integer(),
      query: Type.String({ description: 'its name' }),
      version: Type.Integer(),
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
