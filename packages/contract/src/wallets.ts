import { Type } from 'typebox'
import { limits } from './limits.ts'
import { defineContract } from './route.ts'
import {
  Address,
  AppParams,
  BlockHeight,
  Described,
  defineAmount,
  defineUsd,
  IdempotencyKey,
  NextCursor,
  Nullable,
  PageQuery,
  PayingNetwork,
  Sequence,
  StringEnum,
  Time,
  tokenMembers,
} from './schemas.ts'

const Wallet = Type.Object(
  {
    available: Type.String({ description: 'the amount that can be spent or withdrawn' }),
    pending: Type.String({
      description: 'the amount that is held for requests under way, or is being withdrawn',
    }),
    ...tokenMembers,
    usd: defineUsd('available', 'pending'),
  },
  { $id: 'Wallet', description: 'Balances in atomic units' },
)

const PlatformWallet = Type.Object(
  {
    ...Wallet.properties,
    losses: Type.String({
      description:
        'atomic units of payments that their chains took back for good, and that no balance could give back',
    }),
  },
  { $id: 'PlatformWallet', description: "The operator's balance and losses in atomic units" },
)

const Entry = Type.Object(
  {
    id: Type.String({ description: 'names the movement' }),
    time: Time,
    kind: Type.String({ description: 'such as deposit, sale, withdrawal or withdrawal_fee' }),
    amount: Type.String({ description: 'atomic units, below zero where money left' }),
    balance_after: Type.String({ description: 'the balance after it, in atomic units' }),
    reference: Type.String({ description: 'the payment or transfer' }),
    height: BlockHeight,
    sequence: Sequence,
  },
  {
    $id: 'LedgerEntry',
    description: "A movement on a balance, and its place in the chain 'system'",
  },
)

const Entries = Type.Object({
  entries: Type.Array(Entry),
  next_cursor: NextCursor,
})

const Channel = Type.Object(
  {
    channel_id: Type.String({ description: 'its id in the contract' }),
    network: Type.String({ description: 'CAIP-2' }),
    balance: Type.String({ description: 'deposits, without what went back to the payer' }),
    charged: Type.String({ description: 'all charges so far' }),
    claimed: Type.String({ description: 'the part of them that was claimed from the contract' }),
    available: Type.String({ description: 'the part that vouchers may still use' }),
    withdrawing: Type.String({ description: 'the part that the payer is taking back by itself' }),
    withdrawal_ends_at: Nullable(
      Described(Time, 'from when it can take that; null where it takes nothing back'),
    ),
  },
  {
    $id: 'Channel',
    description: 'A payment channel as it was last read from its chain, in atomic units',
  },
)

const HeldPayment = Type.Object(
  {
    payment_id: Type.String({ description: 'names it in releaseHeldPayments' }),
    payer: Type.String({ description: 'the wallet that paid it' }),
    network: Type.String({ description: 'CAIP-2' }),
    transaction: Type.String({ description: 'the transfer that moved the money' }),
    amount: Type.String({ description: 'atomic units' }),
    usd: defineUsd('amount'),
    account: Type.String({ description: 'the balance that gets it when it is released' }),
    booked_at: Time,
  },
  {
    $id: 'HeldPayment',
    description: 'Money that came before a restore, is on no balance, and buys nothing',
  },
)

const HeldPayments = Type.Object({
  payments: Type.Array(HeldPayment),
  next_cursor: NextCursor,
})

const Release = Type.Object(
  {
    payment_id: Type.Optional(
      Type.String({
        problem: 'must be the id of a held payment, such as pay_1',
        pattern: '^[!-~]{1,100}$',
        description: 'one payment, by its id in GET .../held',
      }),
    ),
    payer: Type.Optional(Described(Address, 'all held payments of this wallet')),
    all: Type.Optional(Type.Literal(true, { description: 'true: all held payments' })),
  },
  {
    additionalProperties: false,
    minProperties: 1,
    maxProperties: 1,
    examples: [{ payer: '0x2222222222222222222222222222222222222222' }],
  },
)

const AddressParams = Type.Object({
  address: Described(Address, 'the wallet: 0x and 40 hex digits'),
})

const Amount = Type.Object(
  { amount: defineAmount('the amount to pay in, at least 1000') },
  { additionalProperties: false, examples: [{ amount: '1000000' }] },
)

const Deposit = Type.Object(
  {
    payment_id: Type.String({ description: 'for GET /api/payments/{id}' }),
    payer: Type.String({ description: 'the wallet that paid it' }),
    network: Type.String({ description: 'CAIP-2' }),
    transaction: Type.String({ description: 'hash of the transaction that moved it' }),
    amount: Type.String({ description: 'atomic units' }),
    usd: defineUsd('amount'),
    entry: Entry,
  },
  { $id: 'Deposit', description: 'Money that came in by a payment and is on a balance' },
)

const NewWithdrawal = Type.Object(
  {
    amount: defineAmount(
      'the amount to send, which the recipient gets exactly',
      'a fee comes from the balance beside it',
    ),
    destination: Type.Optional(
      Described(
        Address,
        'the address that gets it; by default the wallet itself, or the destination of payouts',
      ),
    ),
    network: PayingNetwork,
    idempotency_key: Type.Optional(IdempotencyKey),
  },
  { additionalProperties: false, examples: [{ amount: '400000', idempotency_key: 'november' }] },
)

const Withdrawal = Type.Object(
  {
    withdrawal_id: Type.String({ description: 'for GET /api/transactions/{id}' }),
    status: StringEnum(['pending', 'paid', 'failed'], {
      description: 'paid: the network has confirmed it; failed: its money is on the balance again',
    }),
    amount: Type.String({ description: 'atomic units that are sent' }),
    fee: Type.String({ description: 'atomic units that the balance pays beside them' }),
    destination: Type.String({ description: 'the address that gets it' }),
    network: Type.String({ description: 'CAIP-2' }),
    usd: defineUsd('amount', 'fee'),
    transaction_hash: Nullable(Type.String({ description: 'null before it is signed' })),
    entry: Entry,
  },
  { $id: 'Withdrawal', description: 'Money that leaves a balance for a wallet' },
)

const depositing = {
  area: 'Wallet',
  shows: 'outcome',
  method: 'POST',
  paid: true,
  onlyByPayment: true,
  body: Amount,
  reply: Deposit,
  errors: [
    'PAYMENT_ALREADY_USED',
    'PAYMENT_HELD',
    'PAYMENT_MALFORMED',
    'PAYMENT_NETWORK_UNREACHABLE',
    'PAYMENT_PENDING',
    'PAYMENT_REQUIRED',
  ],
} as const

const withdrawing = {
  area: 'Wallet',
  shows: 'accounts',
  method: 'POST',
  body: NewWithdrawal,
  status: 202,
  reply: Withdrawal,
  errors: ['BALANCE_TOO_LOW', 'TRANSFERS_NOT_CONFIGURED', 'CONFLICT', 'WITHDRAWAL_LIMIT'],
} as const

const asOften =
  'Sent again with the same `Idempotency-Key` (a header, or `idempotency_key` in the body) it is the same withdrawal; another one with that key is 409.'

export const wallets = defineContract({
  getWallet: {
    method: 'GET',
    path: '/api/wallets/:address',
    area: 'Wallet',
    summary: "A payer's balance",
    access: 'public',
    shows: 'accounts',
    params: AddressParams,
    reply: Wallet,
  },
  listWalletEntries: {
    method: 'GET',
    path: '/api/wallets/:address/entries',
    area: 'Wallet',
    summary:
      "The movements on a payer's balance, newest first (signed by the address, or the operator)",
    access: 'owner',
    shows: 'accounts',
    params: AddressParams,
    query: PageQuery,
    reply: Entries,
  },
  listWalletChannels: {
    method: 'GET',
    path: '/api/wallets/:address/channels',
    area: 'Wallet',
    summary: "A payer's payment channels, by id (signed by the address, or the operator)",
    access: 'owner',
    shows: 'accounts',
    params: AddressParams,
    query: PageQuery,
    reply: Type.Object({ channels: Type.Array(Channel), next_cursor: NextCursor }),
  },
  depositToWallet: {
    ...depositing,
    path: '/api/wallets/:address/deposit',
    summary: "Pay an amount into a payer's balance; anyone may",
    description:
      'The 402 asks for exactly this amount. The payment is always settled, never taken from a balance. Its money is the balance of the address, whoever paid it.',
    access: 'public',
    params: AddressParams,
  },
  withdrawFromWallet: {
    ...withdrawing,
    path: '/api/wallets/:address/withdraw',
    summary: "Send a part of a payer's balance to a wallet (signed by the address)",
    description: `The destination is the address itself where none is given. The amount leaves the balance at once; a transfer that the network can never make is given back. ${asOften}`,
    access: 'owner',
    params: AddressParams,
  },
  getApplicationWallet: {
    method: 'GET',
    path: '/api/apps/:app/wallet',
    area: 'Wallet',
    summary: "An application's balance",
    access: 'Admin',
    shows: 'accounts',
    evenArchived: true,
    params: AppParams,
    reply: Wallet,
    errors: ['APPLICATION_NOT_FOUND'],
  },
  listApplicationWalletEntries: {
    method: 'GET',
    path: '/api/apps/:app/wallet/entries',
    area: 'Wallet',
    summary: "The movements on an application's balance, newest first",
    access: 'Admin',
    shows: 'accounts',
    evenArchived: true,
    params: AppParams,
    query: PageQuery,
    reply: Entries,
    errors: ['APPLICATION_NOT_FOUND'],
  },
  depositToApplication: {
    ...depositing,
    path: '/api/apps/:app/wallet/deposit',
    summary: "Pay an amount into an application's balance",
    description:
      'The 402 asks for exactly this amount. The payment is always settled, never taken from a balance. Its money is the balance of the application, beside what it earned.',
    access: 'Admin',
    params: AppParams,
    errors: ['APPLICATION_NOT_FOUND', ...depositing.errors],
  },
  withdrawFromApplication: {
    ...withdrawing,
    path: '/api/apps/:app/wallet/withdraw',
    summary: "Send a part of an application's balance to a wallet",
    description: `A key, or the operator, withdraws to the destination of payouts and nowhere else; the owner's wallet, which signs the request, to any. The locked part (\`locked_balance\`) stays. ${asOften}`,
    access: 'Admin',
    evenArchived: true,
    params: AppParams,
    errors: ['APPLICATION_NOT_FOUND', 'PAYOUT_NOT_POSSIBLE', ...withdrawing.errors],
  },
  getPlatformWallet: {
    method: 'GET',
    path: '/api/platform/wallet',
    area: 'Wallet',
    summary: "The operator's own balance: the platform's share of all sales",
    access: 'operator',
    shows: 'accounts',
    reply: PlatformWallet,
  },
  listPlatformWalletEntries: {
    method: 'GET',
    path: '/api/platform/wallet/entries',
    area: 'Wallet',
    summary: "The movements on the operator's own balance, newest first",
    access: 'operator',
    shows: 'accounts',
    query: PageQuery,
    reply: Entries,
  },
  listHeldPayments: {
    method: 'GET',
    path: '/api/platform/held',
    area: 'Wallet',
    summary: 'Payments that came before a restore and are held for their payers, by id',
    access: 'operator',
    shows: 'accounts',
    query: PageQuery,
    reply: HeldPayments,
  },
  releaseHeldPayments: {
    method: 'POST',
    path: '/api/platform/held/release',
    area: 'Wallet',
    summary: "Put the held money of a payment, of a payer, or of all on the payers' balances",
    description: `Name one payment (\`payment_id\`), all of a payer (\`payer\`), or everything (\`"all": true\`). One call releases at most ${limits.heldReleasedMax} and answers with them; if there are more, \`next_cursor\` is not null: send it again.`,
    access: 'operator',
    shows: 'accounts',
    body: Release,
    reply: HeldPayments,
    errors: ['PAYMENT_NOT_FOUND'],
  },
  withdrawFromPlatform: {
    ...withdrawing,
    path: '/api/platform/wallet/withdraw',
    summary: "Send a part of the operator's own balance to a wallet",
    description: `It needs a destination. The amount leaves the balance at once; a transfer that the network can never make is given back. ${asOften}`,
    access: 'operator',
  },
})
