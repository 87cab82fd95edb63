import { Type } from 'typebox'
import { ReceiptId, RecordProof } from './chain.ts'
import { limits } from './limits.ts'
import { defineContract } from './route.ts'
import {
  AppParams,
  AsOf,
  CollectionParams,
  extendAppParams,
  HexHash,
  Nullable,
  StringEnum,
  Time,
} from './schemas.ts'

const RecordParams = extendAppParams({
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
    progress: Type.Optional(
      Type.Object(
        {
          percent: Type.Integer({ minimum: 0, maximum: 100 }),
          done: Type.Optional(Type.Integer({ minimum: 0 })),
          total: Type.Optional(Type.Integer({ minimum: 0, description: 'known about' })),
          unit: Type.Optional(StringEnum(['records', 'entries'])),
        },
        {
          description:
            'of filling or refreshing a view, changing the encryption of records or filling columns: 100 once it is whole; absent while it waits for its turn',
        },
      ),
    ),
    result: Type.Optional(
      Type.Object({ results: Type.Array(StoredRecord), celestia_height: Type.Integer() }),
    ),
    anchor: Type.Optional(
      Type.Object(
        {
          network: Type.String({ description: 'CAIP-2' }),
          transaction: Nullable(Type.String()),
          block_number: Type.Integer(),
          block_hash: Type.String(),
          time: Time,
        },
        {
          description:
            'of one stored batch: the transaction on another chain that covers all of its records, once there is one; their proofs end there',
        },
      ),
    ),
  },
  { $id: 'Task' },
)

export const storage = defineContract({
  storeRecords: {
    method: 'POST',
    path: '/store',
    area: 'Data Storage',
    summary: 'Store records, all or none',
    description:
      'Answered after the block is committed (202, with a ticket) or, with `?wait=true`, after the tables show it (200, with the results). A record whose primary key is known becomes its newest version. A transfer that was made may be proved in the body, as older clients do: `payment_tx_hash` with `quote_id` or, sent by the owner of the application, without.',
    access: 'Write',
    shows: 'outcome',
    paid: true,
    status: 202,
    otherStatuses: [200],
    query: Type.Object({ wait: Type.Optional(Type.Boolean()) }),
    takesRecords: true,
    body: Type.Object({
      root: Type.String({ description: 'app::collection' }),
      data: Type.Array(Type.Unknown(), { minItems: 1, maxItems: limits.recordsPerStoreMax }),
      strict: Type.Optional(
        Type.Boolean({ description: 'refuse a record whose key exists (409)' }),
      ),
      payment_tx_hash: Type.Optional(
        Type.Unknown({ description: 'of a transfer that was made for this store' }),
      ),
      quote_id: Type.Optional(Type.Unknown({ description: 'what the transfer was made for' })),
      quoteId: Type.Optional(Type.Unknown({ description: 'the same' })),
      user_address: Type.Optional(Type.Unknown({ description: 'whose transfer it is' })),
      payment_network: Type.Optional(Type.Unknown({ description: 'where it was made' })),
    }),
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
      'VIEW_EXISTS',
      'SCHEMA_VIOLATION',
      'PAYLOAD_TOO_LARGE',
      'UNAVAILABLE',
    ],
  },
  getRecord: {
    method: 'GET',
    path: '/api/apps/:app/collections/:collection/records/:key',
    otherwise:
      'Records are written by POST /store; to delete one, store its primary key with "deleted": true',
    area: 'Data Storage',
    summary: 'Get the newest version of a record by its primary key',
    access: 'by-policy',
    shows: 'records',
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
      'RECORD_EXPIRED',
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
    shows: 'records',
    params: RecordParams,
    reply: Type.Object({
      versions: Type.Array(
        Type.Object({
          record: Type.Unknown({ description: 'null where the version has expired' }),
          block_height: Type.Integer(),
          sequence: Type.Integer(),
          deleted: Type.Boolean(),
          expired: Type.Optional(
            Type.Boolean({
              description: 'true where the content is deleted; see docs/retention.md',
            }),
          ),
          leaf_hash: Type.Optional(HexHash),
        }),
      ),
      as_of: AsOf,
    }),
    errors: [
      'COLLECTION_NOT_FOUND',
      'RECORD_NOT_FOUND',
      'RESULT_TOO_LARGE',
      'QUERY_TOO_EXPENSIVE',
      'QUERY_TIMEOUT',
      'UNAVAILABLE',
    ],
  },
  getRecordProof: {
    method: 'GET',
    path: '/api/apps/:app/collections/:collection/records/:key/proof',
    area: 'Data Storage',
    summary: 'Proof of inclusion of the newest version of a record, verifiable offline',
    description:
      'As GET .../chain/proof with `collection` and `key`: with the bytes of the record for keys with Read, with hashes only for others.',
    access: 'by-policy',
    shows: 'hashes',
    params: RecordParams,
    query: Type.Object({ receipt_id: ReceiptId }),
    reply: RecordProof,
    errors: [
      'APPLICATION_NOT_FOUND',
      'COLLECTION_NOT_FOUND',
      'RECORD_NOT_FOUND',
      'RECEIPT_NOT_FOUND',
      'FIELD_NOT_OFFERED',
      'QUERY_TOO_EXPENSIVE',
      'QUERY_TIMEOUT',
      'UNAVAILABLE',
    ],
  },
  listChanges: {
    method: 'GET',
    path: '/api/apps/:app/collections/:collection/changes',
    area: 'Data Storage',
    summary: 'Every version stored in a collection after a position of the chain, in its order',
    description:
      'Begin with `since=0`, or with the height of an answer of yours, and go on with `next`: each version comes exactly once. With `wait` the answer comes as soon as there is a change, and without one after so many seconds.',
    access: 'Read',
    shows: 'records',
    params: CollectionParams,
    query: Type.Object({
      since: Type.Optional(
        Type.String({
          maxLength: 40,
          description: 'height (what comes after that block), or height:sequence; 0 is the default',
        }),
      ),
      limit: Type.Optional(
        Type.Integer({ minimum: 1, maximum: limits.changesMax, description: '100 by default' }),
      ),
      wait: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: limits.changesWaitSecondsMax,
          description: 'seconds; 0 by default',
        }),
      ),
    }),
    reply: Type.Object({
      changes: Type.Array(
        Type.Object({
          height: Type.Integer(),
          sequence: Type.Integer(),
          key: Type.String(),
          deleted: Type.Boolean(),
          record: Type.Unknown(),
        }),
      ),
      next: Type.String({ description: 'what to ask with as `since`' }),
      as_of: AsOf,
    }),
    errors: ['APPLICATION_NOT_FOUND', 'COLLECTION_NOT_FOUND', 'RATE_LIMITED'],
  },
})

export const tasks = defineContract({
  getTask: {
    method: 'GET',
    path: '/task/:id',
    aliases: ['/tasks/:id'],
    area: 'Tasks',
    summary: 'Show the progress of a task',
    access: 'public',
    shows: 'named',
    params: Type.Object({ id: Type.String({ maxLength: 200 }) }),
    reply: Task,
    errors: ['TASK_NOT_FOUND'],
  },
  listTasks: {
    method: 'GET',
    path: '/api/apps/:app/tasks',
    area: 'Tasks',
    summary: "An application's newest tasks",
    description: `The list names at most ${limits.taskRecordsListedMax} records: a store beyond them has no \`result\` here, but under its own id. It ends where it has looked through ${limits.taskBlocksMax} blocks, or ${limits.taskBlockBytesMax / 1024 / 1024} MiB of them, though there be older tasks. A caller without Read gets the state of each task, and nothing of its records: no \`result\`, no log and no counts. The ids in that list open no more than it shows.`,
    access: 'Read or Write',
    shows: 'named',
    params: AppParams,
    query: Type.Object({
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: limits.tasksListedMax })),
    }),
    reply: Type.Object({ tasks: Type.Array(Task), total_tasks: Type.Integer() }),
    errors: ['APPLICATION_NOT_FOUND'],
  },
})
