import { Type } from 'typebox'
import { limits } from './limits.ts'
import { contract } from './route.ts'
import { AsOf, Nullable, open } from './schemas.ts'

export const query = contract({
  listRecords: {
    method: 'POST',
    path: '/list',
    area: 'Data Query',
    summary: 'Find records of a collection',
    description:
      'Conditions in `find`, fields in `select`, order by `sortBy`, page by `limit` and `offset`. With no limit all matches are answered. Where the collection has a price, the reply without a payment is 402.',
    access: 'by-policy',
    paid: true,
    body: Type.Object(
      {
        root: Type.String({ description: 'app::collection' }),
        find: Type.Optional(Type.Unknown()),
        select: Type.Optional(Type.Unknown()),
        limit: Type.Optional(Nullable(Type.Integer({ minimum: 0, maximum: limits.rowsMax }))),
        offset: Type.Optional(Nullable(Type.Integer({ minimum: 0, maximum: limits.offsetMax }))),
        sortBy: Type.Optional(Nullable(Type.String())),
        sortDirection: Type.Optional(Nullable(Type.String())),
        include_history: Type.Optional(Nullable(Type.Boolean())),
        max_kb: Type.Optional(
          Type.Integer({
            minimum: 1,
            maximum: limits.paidResultBytesMax / 1024,
            description:
              'bounds the answer, and the quote, of a read that is sold by the KB. Where not even the first record fits, the answer is RESULT_TOO_LARGE, nothing is charged, and what was paid is on the balance of the payer',
          }),
        ),
      },
      open,
    ),
    reply: Type.Object({
      records: Type.Array(Type.Unknown()),
      total: Type.Integer(),
      page: Type.Integer(),
      limit: Type.Integer(),
      as_of: AsOf,
      truncated: Type.Optional(Type.Boolean()),
    }),
    errors: [
      'APPLICATION_NOT_FOUND',
      'COLLECTION_NOT_FOUND',
      'PAYMENT_REQUIRED',
      'FIELD_NOT_OFFERED',
      'RESULT_TOO_LARGE',
      'QUERY_TIMEOUT',
      'PAYMENT_ALREADY_USED',
      'PAYMENT_PENDING',
      'NOT_IMPLEMENTED',
    ],
  },
})
