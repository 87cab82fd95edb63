import { Type } from 'typebox'
import { limits } from './limits.ts'
import { defineContract } from './route.ts'
import { AppParams, Described, Name, Nullable, open, StringEnum } from './schemas.ts'
import { StoredRecord } from './stored-record.ts'

const operations = ['create', 'update', 'delete'] as const

const BatchOperation = Type.Object({
  operation: StringEnum(operations, {
    description:
      'create: store a record; update: lay members over the newest version; delete: store that version as deleted',
  }),
  collection: Described(Name, 'the name of the collection; one that is missing is made by create'),
  data: Type.Optional(
    Nullable(
      Type.Object(
        {},
        {
          ...open,
          description:
            'the record of a create; the primary key and new members of an update, such as `{"id": "17", "status": "paid"}`; the primary key of a delete',
        },
      ),
    ),
  ),
  conditions: Type.Optional(
    Type.Unknown({
      description:
        'the records to update or delete, as `find` of POST /list: `{"status": "open"}`. Beside a primary key in `data`: change that record only if it matches',
    }),
  ),
})

const BatchResult = Type.Object(
  {
    success: Type.Boolean(),
    operation: StringEnum(operations),
    collection: Type.String(),
    result: Type.Object({
      results: Type.Array(StoredRecord, {
        description: 'the records that it changed; none where none matched',
      }),
      celestia_height: Type.Integer({ description: 'the block that has the whole batch' }),
    }),
  },
  { $id: 'BatchResult' },
)

export const batch = defineContract({
  executeBatch: {
    method: 'POST',
    path: '/api/apps/:app/batch',
    area: 'Batch',
    summary: 'Create, update and delete records of several collections in one block, all or none',
    description:
      'The operations take effect in their order and are written as one group of one block; one that cannot be done refuses the whole call, which names it (`/operations/2/data`). `create` stores as /store does. `update` lays `data` over the newest version of the record that its primary key names, or of all that match `conditions`; with both, of the record if it matches. `delete` stores that version with `deleted: true`. Batches are serializable: no other write to their collections comes between what a batch reads and what it writes; conditions see the records as they were before the batch.',
    access: 'Write',
    shows: 'outcome',
    paid: true,
    params: AppParams,
    takesRecords: true,
    body: Type.Object(
      {
        operations: Type.Array(BatchOperation, {
          minItems: 1,
          maxItems: limits.batchOperationsMax,
          description: 'the changes, in their order; all of them or none',
        }),
        strict: Type.Optional(
          Type.Boolean({
            description:
              'true: refuse to create a record whose key exists (409); by default it gets a newer version',
          }),
        ),
      },
      {
        examples: [
          {
            operations: [
              {
                operation: 'create',
                collection: 'stations',
                data: { id: 'st_3', name: 'Wien', country: 'AT', rating: 1 },
              },
              {
                operation: 'update',
                collection: 'stations',
                data: { rating: 4 },
                conditions: { country: 'AT', rating: { lt: 4 } },
              },
              { operation: 'delete', collection: 'stations', data: { id: 'st_2' } },
            ],
          },
        ],
      },
    ),
    reply: Type.Array(BatchResult),
    errors: [
      'APPLICATION_NOT_FOUND',
      'COLLECTION_NOT_FOUND',
      'RECORD_NOT_FOUND',
      'PAYMENT_REQUIRED',
      'RECORD_EXISTS',
      'VIEW_EXISTS',
      'CONFLICT',
      'SCHEMA_VIOLATION',
      'PAYLOAD_TOO_LARGE',
      'RESULT_TOO_LARGE',
      'QUERY_TOO_EXPENSIVE',
      'QUERY_TIMEOUT',
      'UNAVAILABLE',
    ],
  },
})
