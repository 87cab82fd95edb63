import { Type } from 'typebox'
import { limits } from './limits.ts'
import { defineContract } from './route.ts'
import { AppParams, Name, Nullable, open, StringEnum } from './schemas.ts'
import { StoredRecord } from './storage.ts'

const operations = ['create', 'update', 'delete'] as const

const BatchOperation = Type.Object({
  operation: StringEnum(operations),
  collection: Name,
  data: Type.Optional(Nullable(Type.Object({}, open))),
  conditions: Type.Optional(
    Type.Unknown({ description: 'as `find` of /list: which records are updated or deleted' }),
  ),
})

const BatchResult = Type.Object(
  {
    success: Type.Boolean(),
    operation: StringEnum(operations),
    collection: Type.String(),
    result: Type.Object({
      results: Type.Array(StoredRecord),
      celestia_height: Type.Integer(),
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
    body: Type.Object({
      operations: Type.Array(BatchOperation, {
        minItems: 1,
        maxItems: limits.batchOperationsMax,
      }),
      strict: Type.Optional(
        Type.Boolean({ description: 'refuse to create a record whose key exists (409)' }),
      ),
    }),
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
