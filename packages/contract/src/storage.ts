import { Type } from 'typebox'
import { limits } from './limits.ts'
import { contract } from './route.ts'
import { AppParams, AsOf, appParamsWith, Nullable, open, Time } from './schemas.ts'

const RecordParams = appParamsWith({
  collection: Type.String({ minLength: 1, maxLength: 128 }),
  key: Type.String({ minLength: 1, maxLength: limits.recordKeyCharsMax }),
})

export const StoredRecord = Type.Object(
  {
    id: Type.String(),
    celestia_height: Type.Integer({
      description: "the block's height on the application's own chain",
    }),
    block_height: Type.Integer(),
    sequence: Type.Integer(),
    blob_id: Type.String(),
    namespace: Type.String(),
    tx_hash: Type.String({ description: 'the Merkle leaf hash of the entry, 0x hex' }),
  },
  { $id: 'StoredRecord' },
)

export const Task = Type.Object(
  {
    ticket_id: Type.String(),
    status: Type.Union([
      Type.String(),
      Type.Object({ Failed: Type.Object({ error: Type.String() }) }),
    ]),
    operation_type: Type.String(),
    created_at: Time,
    updated_at: Time,
    user_address: Nullable(Type.String()),
    transaction_hash: Nullable(Type.String()),
    block_height: Nullable(Type.Integer()),
    progress_log: Type.Array(Type.String()),
    result: Type.Optional(
      Type.Object({ results: Type.Array(StoredRecord), celestia_height: Type.Integer() }),
    ),
  },
  { $id: 'Task' },
)

export const storage = contract({
  storeRecords: {
    method: 'POST',
    path: '/store',
    area: 'Data Storage',
    summary: 'Store records, all or none',
    description:
      'Answered after the block is committed (202, with a ticket) or, with `?wait=true`, after the tables show it (200, with the results). A record whose primary key is known becomes its newest version. A transfer that was made may be proved in the body, as older clients do: `payment_tx_hash` with `quote_id` or, sent by the owner of the application, without.',
    access: 'Write',
    paid: true,
    status: 202,
    query: Type.Object({ wait: Type.Optional(Type.Boolean()) }),
    body: Type.Object(
      {
        root: Type.String({ description: 'app::collection' }),
        data: Type.Array(Type.Unknown(), { minItems: 1, maxItems: limits.recordsPerStoreMax }),
        strict: Type.Optional(
          Type.Boolean({ description: 'refuse a record whose key exists (409)' }),
        ),
      },
      open,
    ),
    reply: Type.Object({
      ticket_id: Type.String(),
      status: Type.String(),
      message: Type.String(),
      results: Type.Optional(Type.Array(StoredRecord)),
    }),
    errors: [
      'APPLICATION_NOT_FOUND',
      'COLLECTION_NOT_FOUND',
      'PAYMENT_REQUIRED',
      'CONFLICT',
      'RECORD_EXISTS',
      'SCHEMA_VIOLATION',
      'PAYLOAD_TOO_LARGE',
      'UNAVAILABLE',
    ],
  },
  getRecord: {
    method: 'GET',
    path: '/api/apps/:app/collections/:collection/records/:key',
    area: 'Data Storage',
    summary: 'Get the newest version of a record by its primary key',
    access: 'by-policy',
    paid: true,
    params: RecordParams,
    reply: Type.Object({
      record: Type.Unknown(),
      block_height: Type.Integer(),
      sequence: Type.Integer(),
      as_of: AsOf,
    }),
    errors: [
      'COLLECTION_NOT_FOUND',
      'RECORD_NOT_FOUND',
      'PAYMENT_REQUIRED',
      'FIELD_NOT_OFFERED',
      'RESULT_TOO_LARGE',
    ],
  },
  getRecordHistory: {
    method: 'GET',
    path: '/api/apps/:app/collections/:collection/records/:key/history',
    area: 'Data Storage',
    summary: 'All versions of a record, oldest first',
    access: 'Read',
    params: RecordParams,
    reply: Type.Object({
      versions: Type.Array(
        Type.Object({
          record: Type.Unknown(),
          block_height: Type.Integer(),
          sequence: Type.Integer(),
          deleted: Type.Boolean(),
        }),
      ),
      as_of: AsOf,
    }),
    errors: ['COLLECTION_NOT_FOUND', 'RECORD_NOT_FOUND'],
  },
  getRecordProof: {
    method: 'GET',
    path: '/api/apps/:app/collections/:collection/records/:key/proof',
    area: 'Data Storage',
    summary: 'The newest version of a record with its proof of inclusion, verifiable offline',
    access: 'Read',
    params: RecordParams,
    reply: Type.Object({}, open),
    errors: ['COLLECTION_NOT_FOUND', 'RECORD_NOT_FOUND'],
  },
})

export const tasks = contract({
  getTask: {
    method: 'GET',
    path: '/task/:id',
    aliases: ['/tasks/:id'],
    area: 'Tasks',
    summary: 'How far a piece of work is',
    access: 'public',
    params: Type.Object({ id: Type.String({ maxLength: 200 }) }),
    reply: Task,
    errors: ['TASK_NOT_FOUND'],
  },
  listTasks: {
    method: 'GET',
    path: '/api/apps/:app/tasks',
    area: 'Tasks',
    summary: "An application's newest tasks",
    access: 'Read or Write',
    params: AppParams,
    query: Type.Object({ limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })) }),
    reply: Type.Object({ tasks: Type.Array(Task), total_tasks: Type.Integer() }),
    errors: ['APPLICATION_NOT_FOUND'],
  },
})
