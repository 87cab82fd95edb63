import { Type } from 'typebox'
import { ReceiptId, RecordProof } from './chain.ts'
import { limits } from './limits.ts'
import { makeProofMembers } from './proof-members.ts'
import { defineContract } from './route.ts'
import {
  AppParams,
  AsOf,
  BlockHeight,
  CollectionParam,
  CollectionParams,
  Described,
  extendAppParams,
  HexHash,
  Root,
  Sequence,
  WaitQuery,
} from './schemas.ts'
import { StoredRecord } from './stored-record.ts'
import { Task, TicketId } from './task.ts'

/** A record's identity in its collection. */
const RecordKey = Type.String({
  minLength: 1,
  maxLength: limits.recordKeyCharsMax,
  description:
    'the primary key of the record, which is its `id` unless the collection says another',
})

const RecordParams = extendAppParams({ collection: CollectionParam, key: RecordKey })

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
    query: WaitQuery,
    takesRecords: true,
    body: Type.Object(
      {
        root: Described(
          Root,
          'the application and the name of the collection, as app::collection; a missing collection is made',
        ),
        data: Type.Array(Type.Unknown(), {
          minItems: 1,
          maxItems: limits.recordsPerStoreMax,
          description:
            'the records: `[{"id": "st_1", "name": "Graz"}]`. One without a primary key gets one; `"deleted": true` deletes the record of that key',
        }),
        strict: Type.Optional(
          Type.Boolean({
            description:
              'true: refuse all records where the key of one exists (409); by default that record gets a newer version',
          }),
        ),
        ...makeProofMembers(Type.Unknown),
        quoteId: Type.Optional(Type.Unknown({ description: 'another name of `quote_id`' })),
      },
      {
        examples: [
          {
            root: 'weather::stations',
            data: [
              { id: 'st_1', name: 'Graz', country: 'AT', rating: 5 },
              { id: 'st_2', name: 'Linz', country: 'AT', rating: 2 },
            ],
          },
        ],
      },
    ),
    reply: Type.Object({
      ticket_id: TicketId,
      status: Type.String({ description: '`queued`, or `Completed` with `?wait=true`' }),
      message: Type.String(),
      results: Type.Optional(
        Type.Array(StoredRecord, {
          description: 'with `?wait=true`: the place of each record, in the order of `data`',
        }),
      ),
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
      block_height: BlockHeight,
      sequence: Sequence,
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
          block_height: BlockHeight,
          sequence: Sequence,
          deleted: Type.Boolean({ description: 'true where this version deleted the record' }),
          expired: Type.Optional(
            Type.Boolean({
              description: 'true where the content is deleted; see docs/retention.md',
            }),
          ),
          leaf_hash: Type.Optional(
            Described(HexHash, 'for an expired version: the hash that its place in the log has'),
          ),
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
          description:
            'a position of the chain, which you know all until: a height, or height:sequence; 0 by default',
        }),
      ),
      limit: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: limits.changesMax,
          description: 'the most versions; 100 by default',
        }),
      ),
      wait: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: limits.changesWaitSecondsMax,
          description: 'seconds to wait for a change where there is none yet; 0 by default',
        }),
      ),
    }),
    reply: Type.Object({
      changes: Type.Array(
        Type.Object({
          height: BlockHeight,
          sequence: Sequence,
          key: Type.String({ description: 'the primary key of the record' }),
          deleted: Type.Boolean({ description: 'true where this version deleted the record' }),
          record: Type.Unknown({ description: 'the whole record as of this version' }),
        }),
        { description: 'in the order of the chain; empty where there is none' },
      ),
      next: Type.String({ description: 'the `since` of the next request' }),
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
    params: Type.Object({
      id: Type.String({
        maxLength: 200,
        description: 'the `ticket_id`, or `task_id`, of an answer',
      }),
    }),
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
      limit: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: limits.tasksListedMax,
          description: 'the most tasks; 50 by default',
        }),
      ),
    }),
    reply: Type.Object({
      tasks: Type.Array(Task, { description: 'the newest first' }),
      total_tasks: Type.Integer({ description: 'the number of tasks in this answer' }),
    }),
    errors: ['APPLICATION_NOT_FOUND'],
  },
})
