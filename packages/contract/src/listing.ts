import { Type } from 'typebox'
import { limits } from './limits.ts'
import { defineContract } from './route.ts'
import { AsOf, Lag, Nullable, StringEnum } from './schemas.ts'

const MaxKb = Type.Optional(
  Type.Integer({
    minimum: 1,
    maximum: limits.paidResultBytesMax / 1024,
    description:
      'bounds the answer, and the quote, of a read that is sold by the KB. Where not even the first record fits, the answer is RESULT_TOO_LARGE, nothing is charged, and what was paid is on the balance of the payer',
  }),
)

const listParts = {
  find: Type.Optional(Type.Unknown()),
  select: Type.Optional(Type.Unknown()),
  limit: Type.Optional(Nullable(Type.Integer({ minimum: 0, maximum: limits.rowsMax }))),
  offset: Type.Optional(Nullable(Type.Integer({ minimum: 0, maximum: limits.offsetMax }))),
  cursor: Type.Optional(
    Nullable(
      Type.String({
        maxLength: 200,
        description:
          'the `next_cursor` of the page before, beside the same request: the page after it, as of the height of the first page',
      }),
    ),
  ),
  sortBy: Type.Optional(Nullable(Type.String())),
  orderBy: Type.Optional(Nullable(Type.String({ description: 'another name of sortBy' }))),
  sortDirection: Type.Optional(Nullable(Type.String())),
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
          measure: Type.Optional(Nullable(StringEnum(['cosine', 'l2', 'inner_product']))),
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
  include_history: Type.Optional(Nullable(Type.Boolean())),
  group_by: Type.Optional(
    Type.Unknown({ description: 'a field, or a list of them: the answer is groups' }),
  ),
  aggregate: Type.Optional(
    Type.Unknown({
      description: 'aggregates of each group by name: {name: {"$sum": field}}',
    }),
  ),
  distinct: Type.Optional(
    Type.Unknown({ description: 'a field, or a list of them, whose values are given once' }),
  ),
  max_kb: MaxKb,
}

const SqlParameters = Type.Optional(
  Type.Unknown({
    description: 'values of $1, $2 … as a list, or of :name as an object',
  }),
)

/** Stands beside `nearest`: every record was compared, or an index chose those that were. */
const Search = StringEnum(['exact', 'approximate'])

/** A query to explain instead of running it: a list without its root, or a statement. */
export const AnyQuery = Type.Object(
  { ...listParts, sql: Type.Optional(Type.String()), params: SqlParameters },
  {
    description: 'what POST /list takes, without its root, or `{sql, params}` of POST /query/sql',
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
    body: Type.Object({
      root: Type.String({ description: 'app::collection' }),
      ...listParts,
    }),
    reply: Type.Object({
      records: Type.Array(Type.Unknown()),
      total: Type.Integer(),
      page: Type.Integer(),
      limit: Type.Integer(),
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
    body: Type.Object({
      sql: Type.String({ description: 'one SELECT' }),
      params: SqlParameters,
      include_history: Type.Optional(Nullable(Type.Boolean())),
      max_kb: MaxKb,
    }),
    reply: Type.Object({
      data: Type.Array(Type.Unknown()),
      count: Type.Integer(),
      query: Type.String({ description: 'the statement as it was sent' }),
      app_id: Type.String({
        description: 'of the first collection; of the key, if the statement names none',
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
