import { Type } from 'typebox'
import { defineContract } from './route.ts'
import { AppParams, defineUsd, Nullable, PageQuery, StringEnum, Time } from './schemas.ts'

const Transaction = Type.Object(
  {
    id: Type.String(),
    kind: StringEnum(['payment', 'deposit', 'withdrawal', 'payout', 'refund']),
    status: StringEnum(['pending', 'confirmed', 'failed', 'reversed']),
    app_id: Nullable(Type.String()),
    operation: Nullable(Type.String({ description: 'the endpoint that a payment paid for' })),
    amount: Type.String({ description: 'atomic units that moved, or will' }),
    currency: Type.String(),
    decimals: Type.Integer(),
    usd: defineUsd('amount'),
    network: Type.String(),
    from: Nullable(Type.String({ description: 'the payer; null where we pay' })),
    to: Nullable(Type.String({ description: 'the recipient; null where we are paid' })),
    transaction_hash: Nullable(Type.String()),
    error: Nullable(Type.String()),
    created_at: Time,
    links: Type.Object({
      payment: Type.Optional(Type.String()),
      receipt: Type.Optional(Type.String()),
    }),
  },
  { $id: 'Transaction', description: 'Money that came in or went out' },
)

export const transactions = defineContract({
  getTransaction: {
    method: 'GET',
    path: '/api/transactions/:id',
    area: 'Transactions',
    summary: 'What became of a payment, deposit, withdrawal, payout or refund',
    access: 'public',
    shows: 'named',
    params: Type.Object({ id: Type.String({ maxLength: 200 }) }),
    reply: Transaction,
    errors: ['TRANSACTION_NOT_FOUND'],
  },
  listTransactions: {
    method: 'GET',
    path: '/api/apps/:app/transactions',
    area: 'Transactions',
    summary: 'The payments to an application, and all that left its account, newest first',
    access: 'Admin',
    shows: 'accounts',
    evenArchived: true,
    params: AppParams,
    query: PageQuery,
    reply: Type.Object({
      transactions: Type.Array(Transaction),
      next_cursor: Nullable(Type.String()),
    }),
    errors: ['APPLICATION_NOT_FOUND'],
  },
})
