import { Type } from 'typebox'
import { Nullable, StringEnum, Time } from './schemas.ts'
import { StoredRecord } from './stored-record.ts'

/** Names a task in the answer that began it. */
export const TicketId = Type.String({
  description: 'the id of the task: GET /task/{id} shows what became of it',
})

export const Task = Type.Object(
  {
    ticket_id: TicketId,
    status: Type.Union(
      [Type.String(), Type.Object({ Failed: Type.Object({ error: Type.String() }) })],
      {
        description:
          '`StoringData` while it is under way, `Completed`, or `{"Failed": {"error": …}}` with the reason',
      },
    ),
    operation_type: Type.String({
      description: 'write, create_view, refresh_view, migrate, encrypt, decrypt or fill_columns',
    }),
    created_at: Time,
    updated_at: Time,
    user_address: Nullable(Type.String({ description: 'always null; public clients read it' })),
    transaction_hash: Nullable(
      Type.String({ description: 'for a store: `tx_hash` of its first record' }),
    ),
    block_height: Nullable(Type.Integer({ description: 'the block in which it began' })),
    progress_log: Type.Array(Type.String(), { description: 'the steps so far, in sentences' }),
    progress: Type.Optional(
      Type.Object(
        {
          percent: Type.Integer({ minimum: 0, maximum: 100, description: '100 once it is whole' }),
          done: Type.Optional(
            Type.Integer({ minimum: 0, description: 'the part of `total` that is done' }),
          ),
          total: Type.Optional(Type.Integer({ minimum: 0, description: 'known about' })),
          unit: Type.Optional(
            StringEnum(['records', 'entries'], {
              description: 'records that are read, or entries of the chain that are added',
            }),
          ),
        },
        {
          description:
            'for filling or refreshing a view, changing the encryption of records or filling columns: 100 once it is whole; absent while it waits for its turn',
        },
      ),
    ),
    result: Type.Optional(
      Type.Object(
        {
          results: Type.Array(StoredRecord),
          celestia_height: Type.Integer({
            description: "the block on the application's own chain",
          }),
        },
        { description: 'for a store: the places of its records' },
      ),
    ),
    anchor: Type.Optional(
      Type.Object(
        {
          network: Type.String({ description: 'CAIP-2' }),
          transaction: Nullable(Type.String({ description: 'its hash' })),
          block_number: Type.Integer({ description: 'the block of that chain' }),
          block_hash: Type.String(),
          time: Time,
        },
        {
          description:
            'for one stored batch: the transaction on another chain that covers all of its records, once there is one; their proofs end there',
        },
      ),
    ),
  },
  { $id: 'Task' },
)
