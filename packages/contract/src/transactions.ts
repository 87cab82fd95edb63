import { Type } from 'typebox'
import { defineContract } from './route.ts'
import {
  Address,
  AppParams,
  asCsv,
  Described,
  defineUsd,
  ListFormat,
  NextCursor,
  Nullable,
  PageQuery,
  StringEnum,
  Time,
  tokenMembers,
} from './schemas.ts'

const ListQuery = Type.Object({ ...PageQuery.properties, format: ListFormat })

const Explorer = Type.Optional(
  Type.String({ description: 'the transaction in an explorer of its chain, where that has one' }),
)

const Transaction = Type.Object(
  {
    id: Type.String({
      description: 'the id of the payment, withdrawal, payout, refund, or move in a channel',
    }),
    kind: StringEnum([
      ...(['payment', 'deposit', 'withdrawal', 'payout', 'refund'] as const),
      ...(['channel_deposit', 'channel_refund', 'channel_claim'] as const),
    ]),
    status: StringEnum(['pending', 'confirmed', 'failed', 'reversed'], {
      description: 'reversed: its chain took it back for good',
    }),
    app_id: Nullable(Type.String({ description: 'the application that it belongs to' })),
    operation: Nullable(Type.String({ description: 'the endpoint that a payment paid for' })),
    amount: Type.String({ description: 'atomic units that moved, or will' }),
    ...tokenMembers,
    usd: defineUsd('amount'),
    network: Type.String({ description: 'CAIP-2' }),
    from: Nullable(Type.String({ description: 'the payer; null where we pay' })),
    to: Nullable(Type.String({ description: 'the recipient; null where we are paid' })),
    transaction_hash: Nullable(
      Type.String({ description: 'null where none is signed, or none was needed' }),
    ),
    error: Nullable(Type.String({ description: 'the reason why it failed' })),
    created_at: Time,
    links: Type.Object({
      payment: Type.Optional(Type.String({ description: 'path of the payment' })),
      receipt: Type.Optional(Type.String({ description: 'path of the receipt' })),
      explorer: Explorer,
    }),
  },
  { $id: 'Transaction', description: 'Money that came in or went out' },
)

const SignedTransaction = Type.Object(
  {
    id: Type.String({ description: 'the name in the journal' }),
    status: StringEnum(['pending', 'confirmed', 'failed'], {
      description: 'confirmed: it is in a block, and did what it should',
    }),
    network: Type.String({ description: 'CAIP-2' }),
    signer: Type.String({ description: 'the address of the key that pays the gas' }),
    nonce: Type.String({ description: 'its number among those of the signer' }),
    transaction_hash: Type.String({ description: 'the newest one under this nonce' }),
    replaced_hashes: Type.Array(Type.String(), {
      description:
        'the transactions that were sent before under this nonce with lower fees; one of all is mined at most',
    }),
    block_number: Nullable(Type.String({ description: 'null where no block has it yet' })),
    created_at: Time,
    makes: Type.Array(
      Type.Object({
        kind: StringEnum([
          'payment',
          'sweep',
          'withdrawal',
          'payout',
          'facilitated_payment',
          'channel_deposit',
          'channel_claim',
          'channel_settlement',
          'channel_refund',
          'anchor',
          'publication',
        ]),
        id: Nullable(
          Type.String({ description: 'the payment, withdrawal or payout that it is for' }),
        ),
        amount: Nullable(Type.String({ description: 'atomic units, where the books know it' })),
        usd: Type.Object({ amount: Nullable(Type.String()) }),
        links: Type.Object({ transaction: Type.Optional(Type.String()) }),
      }),
      { description: 'one, or the parts of a joint transaction' },
    ),
    links: Type.Object({ explorer: Explorer }),
  },
  {
    $id: 'SignedTransaction',
    description: "A transaction that one of the service's own keys has signed",
  },
)

export const transactions = defineContract({
  getTransaction: {
    method: 'GET',
    path: '/api/transactions/:id',
    area: 'Transactions',
    summary:
      'Get the state of a payment, deposit, withdrawal, payout or refund, or of a movement of a channel',
    access: 'public',
    shows: 'named',
    params: Type.Object({
      id: Type.String({
        maxLength: 200,
        description: 'the id of a payment (`pay_…`), withdrawal (`wd_…`), payout or refund',
      }),
    }),
    reply: Transaction,
    errors: ['TRANSACTION_NOT_FOUND'],
  },
  listTransactions: {
    method: 'GET',
    path: '/api/apps/:app/transactions',
    area: 'Transactions',
    summary: 'The payments to an application, and all that left its account, newest first',
    description: asCsv,
    access: 'Admin',
    shows: 'accounts',
    evenArchived: true,
    params: AppParams,
    query: ListQuery,
    reply: Type.Object({
      transactions: Type.Array(Transaction),
      next_cursor: NextCursor,
    }),
    otherReplyTypes: ['text/csv'],
    errors: ['APPLICATION_NOT_FOUND'],
  },
  listWalletTransactions: {
    method: 'GET',
    path: '/api/wallets/:address/transactions',
    area: 'Transactions',
    summary:
      'All payments of a wallet, its deposits, withdrawals and refunds, and all that moved in its channels, newest first (signed by the address, or the operator)',
    description: `Deposits into a channel, money that went back from it to its payer (by a refund, or by the payer itself), and claims are listed as they were read from their chain. ${asCsv}`,
    access: 'owner',
    shows: 'accounts',
    params: Type.Object({ address: Described(Address, 'the wallet: 0x and 40 hex digits') }),
    query: ListQuery,
    reply: Type.Object({
      transactions: Type.Array(Transaction),
      next_cursor: NextCursor,
    }),
    otherReplyTypes: ['text/csv'],
  },
  listPlatformTransactions: {
    method: 'GET',
    path: '/api/platform/transactions',
    area: 'Transactions',
    summary: "All that the service's own keys have signed, newest first",
    description: `Payments that it settles, sweeps, withdrawals, payouts, claims and refunds of channels, payments for other servers, anchors and publications: what costs the operator gas. A transaction that is in a block for good may be forgotten where nothing needs it any more, as that of an anchor. ${asCsv} CSV has a line for each thing that a transaction is for.`,
    access: 'operator',
    shows: 'accounts',
    query: ListQuery,
    reply: Type.Object({
      transactions: Type.Array(SignedTransaction),
      next_cursor: NextCursor,
    }),
    otherReplyTypes: ['text/csv'],
  },
})
