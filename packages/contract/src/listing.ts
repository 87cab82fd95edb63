import { Type } from 'typebox'
import { limits } from './limits.ts'
import { defineContract } from './route.ts'
import {
  AsOf,
  Lag,
  MaxKb,
  Nullable,
  Root,
  RowLimit,
  RowOffset,
  StringEnum,
  VectorMeasure,
} from './schemas.ts'

const IncludeHistory = Type.Optional(
  Nullable(
    Type.Boolean({
      description:
        'true: every version of each record, deleted ones too; by default the newest of those that are there',
    }),
  ),
)

const listParts = {
  find: Type.Optional(
    Type.Unknown({
      description:
        'conditions, which all must hold: `{"age": {"gte": 18}, "address.city": "Graz"}`, with `and`, `or`, `not` and joins; all records by default. The operators are in docs/querying.md',
    }),
  ),
  select: Type.Optional(
    Type.Unknown({
      description:
        'fields to give, `{"name": true}`, or to leave out, `{"secret": false}`; whole records by default',
    }),
  ),
  limit: Type.Optional(Nullable(RowLimit)),
  offset: Type.Optional(Nullable(RowOffset)),
  cursor: Type.Optional(
    Nullable(
      Type.String({
        maxLength: 200,
        description:
          'the `next_cursor` of the page before, beside the same request: the page after it, as of the height of the first page',
      }),
    ),
  ),
  sortBy: Type.Optional(
    Nullable(
      Type.String({
        description:
          'the field to sort by, such as `address.city`; by default the order of storing',
      }),
    ),
  ),
  orderBy: Type.Optional(Nullable(Type.String({ description: 'another name of sortBy' }))),
  sortDirection: Type.Optional(
    Nullable(
      Type.String({
        description:
          '`ascending` (the default) or `descending`, also `asc` and `desc`; without `sortBy` it has no effect',
      }),
    ),
  ),
  nearest: Type.Optional(
    Nullable(
      Type.Object(
        {
          field: Type.String({ description: 'a field that holds lists of numbers' }),
          to: Type.Array(Type.Number(), {
            minItems: 1,
            maxItems: limits.vectorNumbersMax,
            description: 'the list that the field is compared with',
          }),
          measure: Type.Optional(Nullable(VectorMeasure)),
          as: Type.Optional(
            Nullable(
              Type.String({ description: 'the member in which each record is given its distance' }),
            ),
          ),
          approximate: Type.Optional(
            Nullable(
              Type.Boolean({
                description:
                  'true: an index of type vector may choose the records, which is fast and may leave some of the nearest out',
              }),
            ),
          ),
        },
        {
          description:
            'Nearest neighbours: the records come in the order of this distance, in place of `sortBy`. Needs a limit. The search is exact unless `approximate` is true and an index serves it; the reply says which in `search`',
        },
      ),
    ),
  ),
  include_history: IncludeHistory,
  group_by: Type.Optional(
    Type.Unknown({
      description: 'a field, or a list of them, such as `["city"]`: the answer is groups',
    }),
  ),
  aggregate: Type.Optional(
    Type.Unknown({
      description:
        'aggregates of each group, or of all records, by name: `{"total": {"$sum": "amount"}, "n": {"$count": "*"}}`',
    }),
  ),
  distinct: Type.Optional(
    Type.Unknown({ description: 'a field, or a list of them, whose values are given once' }),
  ),
  max_kb: MaxKb,
}

const SqlParameters = Type.Optional(
  Type.Unknown({
    description:
      'values of `$1`, `$2` … as a list, or of `:name` as an object; they are never part of the text',
  }),
)

/** Stands beside `nearest`. */
const Search = StringEnum(['exact', 'approximate'], {
  description: 'for `nearest`: every record was compared, or an index chose those that were',
})

const Sql = Type.String({
  description:
    'one SELECT over collections written as app::collection: `SELECT name FROM shop::people WHERE age > :a`',
})

/** A query to explain instead of running it: a list without its root, or a statement. */
export const AnyQuery = Type.Object(
  { ...listParts, sql: Type.Optional(Sql), params: SqlParameters },
  {
    description:
      'the body of POST /list without its root, `{"find": {"country": "AT"}}`, or `{"sql": …, "params": …}` as of POST /query/sql',
  },
)

export const query = defineContract({
  listRecords: {
    method: 'POST',
    isRead: true,
    path: '/list',
    area: 'Data Query',
    summary: 'Find records of a collection',
    description:
      'Conditions in `find`, fields in `select`, order by `sortBy`, page by `limit` and `offset`. `find` may join records of other collections, and `group_by`, `aggregate` and `distinct` give groups. With no limit all matches are answered. Where the collection has a price, the reply without a payment is 402.',
    access: 'by-policy',
    shows: 'records',
    paid: true,
    body: Type.Object(
      { root: Root, ...listParts },
      {
        examples: [
          {
            root: 'weather::stations',
            find: { country: 'AT', rating: { gte: 3 } },
            select: { id: true, name: true, rating: true },
            sortBy: 'rating',
            sortDirection: 'descending',
            limit: 10,
          },
        ],
      },
    ),
    reply: Type.Object({
      records: Type.Array(Type.Unknown(), { description: 'as they were stored; or the groups' }),
      total: Type.Integer({
        description:
          'all records that match, whatever the limit; of a paid answer, those that were given so far',
      }),
      page: Type.Integer({ description: 'the number of the page, from 1, by offset and limit' }),
      limit: Type.Integer({ description: 'that of the request, or the number of records' }),
      search: Type.Optional(Search),
      next_cursor: Type.Optional(
        Type.String({ description: 'where there was a limit and more records may follow' }),
      ),
      as_of: AsOf,
      lag: Type.Optional(Lag),
    }),
    errors: [
      'APPLICATION_NOT_FOUND',
      'COLLECTION_NOT_FOUND',
      'DATA_SET_NOT_FOUND',
      'PAYMENT_REQUIRED',
      'FIELD_NOT_OFFERED',
      'DERIVATION_DENIED',
      'RESULT_TOO_LARGE',
      'QUERY_TOO_EXPENSIVE',
      'QUERY_TIMEOUT',
      'UNAVAILABLE',
      'PAYMENT_ALREADY_USED',
      'PAYMENT_HELD',
      'PAYMENT_PENDING',
    ],
  },
  querySql: {
    method: 'POST',
    isRead: true,
    path: '/query/sql',
    area: 'Data Query',
    summary: 'Ask in SQL',
    description:
      'One SELECT over collections written as app::collection. Each collection keeps its own rights and prices. Rows of one collection are sold as by POST /list. A join, group, set operation or sub-query over a collection with a price costs its derive price; without one, it is denied. A statement that names no collection needs a key with Read, and is free.',
    access: 'by-policy',
    shows: 'records',
    paid: true,
    body: Type.Object(
      {
        sql: Sql,
        params: SqlParameters,
        include_history: IncludeHistory,
        max_kb: MaxKb,
      },
      {
        examples: [
          {
            sql: 'SELECT country, count(*) AS n, avg(rating) AS mean FROM weather::stations WHERE rating >= :least GROUP BY country',
            params: { least: 3 },
          },
        ],
      },
    ),
    reply: Type.Object({
      data: Type.Array(Type.Unknown(), { description: 'the rows' }),
      count: Type.Integer({ description: 'the number of rows' }),
      query: Type.String({ description: 'the statement as it was sent' }),
      app_id: Type.String({
        description:
          'the application of the first collection, or of the key if the statement names none',
      }),
      collection: Type.String({ description: 'the first one; empty if there is none' }),
      as_of: AsOf,
      lag: Type.Optional(Lag),
    }),
    errors: [
      'APPLICATION_NOT_FOUND',
      'COLLECTION_NOT_FOUND',
      'VIEW_NOT_READY',
      'GRANT_NEEDED',
      'PAYMENT_REQUIRED',
      'FIELD_NOT_OFFERED',
      'DERIVATION_DENIED',
      'RESULT_TOO_LARGE',
      'QUERY_TOO_EXPENSIVE',
      'QUERY_TIMEOUT',
      'UNAVAILABLE',
      'PAYMENT_ALREADY_USED',
      'PAYMENT_HELD',
      'PAYMENT_PENDING',
    ],
  },
})
