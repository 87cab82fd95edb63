import { type Static, Type } from 'typebox'
import { Price } from './access-policy.ts'
import { limits } from './limits.ts'
import {
  Described,
  Description,
  Name,
  Nullable,
  QuoteKind,
  RowLimit,
  RowOffset,
  StringEnum,
} from './schemas.ts'

const closed = { additionalProperties: false } as const

export const parameterTypes = ['string', 'number', 'integer', 'boolean', 'date', 'enum'] as const

const defineBound = (description: string) =>
  Type.Union(
    [Type.Number(), Type.String({ maxLength: 40, description: 'for a date: a date or a time' })],
    { description },
  )
const defineCount = (maximum: number, description: string) =>
  Type.Integer({ minimum: 0, maximum, description })

/** A parameter that callers can set. Each is given once, as `?name=value`; only a list may repeat. */
export const QueryParameter = Type.Object(
  {
    name: Type.String({
      pattern: '^[A-Za-z_][A-Za-z0-9_]{0,62}$',
      description: 'its name in the query string; in SQL it stands as `:name`',
    }),
    field_path: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: limits.fieldPathCharsMax,
        description:
          'for a base_query: a field that must equal the value (`country`), a field and an operator (`price.$gte`), or `limit`, `offset`, `sort`',
      }),
    ),
    type: Type.Optional(
      StringEnum([...parameterTypes, 'list'], {
        description:
          'the type of its value; by default that of `default`, or what the schema declares of the field, or string',
      }),
    ),
    items: Type.Optional(
      StringEnum(parameterTypes, {
        description: 'for a list: the type of its values; by default that of `default`, or string',
      }),
    ),
    values: Type.Optional(
      Type.Array(Type.Union([Type.String({ maxLength: 200 }), Type.Number()]), {
        minItems: 1,
        maxItems: 200,
        description: 'for an enum: the values that are possible',
      }),
    ),
    min: Type.Optional(defineBound('the least number or date; none by default')),
    max: Type.Optional(defineBound('the largest number or the last date; none by default')),
    pattern: Type.Optional(
      Type.String({
        maxLength: limits.regexCharsMax,
        description: 'a pattern that the whole of a string must match; any by default',
      }),
    ),
    minLength: Type.Optional(
      defineCount(limits.queryTextCharsMax, 'the least characters of a string; 1 by default'),
    ),
    maxLength: Type.Optional(
      defineCount(limits.queryTextCharsMax, 'the most characters of a string; 127 by default'),
    ),
    maxItems: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: limits.queryListMax,
        description: 'the most values of a list; 100 by default',
      }),
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
    description: Type.Optional(
      Type.String({ maxLength: 500, description: 'a text for callers, which its page shows' }),
    ),
  },
  { $id: 'QueryParameter', ...closed },
)
export type QueryParameter = Static<typeof QueryParameter>

export const RateLimit = Type.Object(
  {
    requests: Type.Integer({
      minimum: 1,
      maximum: 1_000_000,
      description: 'the most runs of one caller in a window',
    }),
    window_seconds: Type.Integer({
      minimum: 1,
      maximum: 86_400,
      description: 'the length of the window in seconds',
    }),
  },
  {
    ...closed,
    description:
      'bounds how often each caller may run it: the keys of one application, or an address; null, or not given: no bound',
  },
)

const BaseQuery = Type.Object(
  {
    find: Type.Optional(
      Type.Unknown({
        description:
          'conditions that always hold, as `find` of POST /list: `{"active": true}`; Mongo names are taken too. By default all records',
      }),
    ),
    select: Type.Optional(
      Type.Unknown({
        description:
          'the fields to give, as `select` of POST /list, or a list: `["id", "name"]`; whole records by default',
      }),
    ),
    sort: Type.Optional(
      Type.Unknown({
        description:
          'a field, or a list of one; `-rating` is descending. By default the order of storing',
      }),
    ),
    limit: Type.Optional(
      Nullable(
        Described(
          RowLimit,
          'the most rows, which no caller can exceed; where a parameter is for `limit`, only the default of that. All by default',
        ),
      ),
    ),
    offset: Type.Optional(Nullable(RowOffset)),
    group_by: Type.Optional(
      Type.Unknown({ description: 'a field, or a list of them: the answer is groups' }),
    ),
    aggregate: Type.Optional(
      Type.Unknown({ description: 'aggregates by name: `{"n": {"$count": "*"}}`' }),
    ),
    distinct: Type.Optional(
      Type.Unknown({ description: 'a field, or a list of them, whose values are given once' }),
    ),
  },
  {
    ...closed,
    description:
      'beside source_collection: the part of the query that stays, into which parameters put conditions',
  },
)

/** The definition of a query, in either of its two forms. */
export const QueryDefinition = Type.Object(
  {
    name: Described(Name, 'the name of the query in paths: 1-63 of a-z A-Z 0-9 _ -'),
    description: Type.Optional(Description),
    sql: Type.Optional(
      Type.String({
        maxLength: limits.sqlCharsMax,
        description:
          'one SELECT with `:name` in the place of each value: `SELECT id FROM weather::stations WHERE name = :name`',
      }),
    ),
    source_collection: Type.Optional(
      Type.String({
        maxLength: 128,
        description: 'instead of sql: a collection, or app::collection',
      }),
    ),
    base_query: Type.Optional(BaseQuery),
    parameters: Type.Optional(
      Type.Array(QueryParameter, {
        maxItems: limits.queryParametersMax,
        description: 'the values that callers give, each with its type and bounds; none by default',
      }),
    ),
    version: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000_000,
        description: 'a number higher than the newest version; by default the next one',
      }),
    ),
    price: Type.Optional(Nullable(Price)),
    quote: Type.Optional(Nullable(QuoteKind)),
    public: Type.Optional(
      Nullable(
        Type.Boolean({
          description:
            "true: strangers may ask, free or by paying, whatever its sources' policy (private ones excepted); false: only keys with Read; by default strangers may where all its sources are open to them, and either offer all of their fields or the query has a price of its own",
        }),
      ),
    ),
    rate_limit: Type.Optional(Nullable(RateLimit)),
    min_group_size: Type.Optional(
      Nullable(
        Type.Integer({
          minimum: 1,
          maximum: 1_000_000,
          description: 'groups of fewer records are left out; none by default',
        }),
      ),
    ),
    example_request: Type.Optional(
      Type.Unknown({ description: 'a request that its page shows: `{"country": "AT"}`' }),
    ),
    example_response: Type.Optional(
      Type.Unknown({
        description: 'an answer that its page shows; by default one that is made up',
      }),
    ),
  },
  { $id: 'QueryDefinition', ...closed },
)
export type QueryDefinition = Static<typeof QueryDefinition>
