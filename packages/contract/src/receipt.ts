import { Type } from 'typebox'
import {
  AsOf,
  Atomic,
  Described,
  Inclusion,
  ListOf,
  MapOf,
  Nullable,
  open,
  StringEnum,
  Time,
} from './schemas.ts'

const itemKinds = ['collection', 'view', 'query', 'batch', 'other'] as const

const account = Type.String({ description: 'the account that earns it, as app:shop' })

const SoldParts = ListOf(
  Type.Object({
    kind: StringEnum(itemKinds),
    name: Type.String(),
    account,
    gross: Described(Atomic, 'the part of the charge, in atomic units'),
    fee: Type.String({ description: "the platform's share of `gross`, in atomic units" }),
  }),
  { description: 'the parts of the charge, and who earned them; `gross` adds up to `amount`' },
)

const MeasuredParts = ListOf(
  Type.Object({
    by: StringEnum(['rows', 'derived', 'written', 'pass', 'granted', 'indexed'], {
      description:
        'the way in which it was used; derived: for a result over its rows, such as a sum',
    }),
    account,
    kind: StringEnum(itemKinds),
    name: Type.String(),
    charged: Described(Atomic, 'the charge for it, in atomic units'),
    rows: Type.Optional(Type.Integer({ description: 'rows of a read' })),
    bytes: Type.Optional(Type.Integer({ description: 'bytes of these rows' })),
    unpaid: Type.Optional(
      Type.Boolean({ description: 'the answer was empty, and nothing is due for that' }),
    ),
    version: Type.Optional(Type.Integer({ description: 'the version of the predefined query' })),
    written: Type.Optional(
      ListOf(
        Type.Object({
          collection: Type.String(),
          rows: Type.Integer(),
          bytes: Type.Integer(),
          fields: Type.Optional(
            MapOf(Atomic, { description: 'the sums of the fields that have a price' }),
          ),
        }),
        { description: 'for a write: its use, by collection' },
      ),
    ),
    hours: Type.Optional(Type.Integer({ description: 'the hours of a pass' })),
  }),
  { description: 'the use of each part that has a price, from which its price is computed' },
)

const count = (what: string) => Type.String({ description: `${what}, decimal string` })

const SoldUses = ListOf(
  Type.Object({
    kind: StringEnum(itemKinds),
    name: Type.String(),
    account,
    period: Type.String({ description: 'a month or a day in UTC, as 2026-11 or 2026-11-29' }),
    request: count('requests'),
    row: count('rows'),
    kb: count('bytes'),
    free_request: count('requests of a free quota'),
    free_row: count('rows of a free quota'),
    free_kb: count('bytes of a free quota'),
  }),
  { description: 'the use that counts in tiers and free quotas, if the thing has any' },
)

const SoldPass = Type.Object(
  { kind: StringEnum(itemKinds), name: Type.String(), account, hours: Type.Integer() },
  { description: 'the time pass that was sold' },
)

const SaleVoucher = Type.Object(
  {
    id: Type.String({ description: "the channel's id" }),
    base: Type.String({ description: 'the total of charges before this one, in atomic units' }),
    max_claimable: Type.String({
      description: 'the total that the voucher allows to be claimed, in atomic units',
    }),
    signature: Type.String({
      description: 'the signature of the voucher, by the payer or the key that the channel names',
    }),
  },
  { description: 'the voucher of a payment channel that paid' },
)

export const Receipt = Type.Object(
  {
    type: Type.String(),
    receipt_id: Type.String(),
    payment_id: Type.String(),
    request_hash: Type.String({ description: 'the hash of the request that was paid for' }),
    quote_hash: Nullable(
      Type.String({ description: "SHA-256 (hex) of the quote's id; null where there was none" }),
    ),
    payer: Type.String({ description: 'the wallet, or the application, that paid' }),
    payee: Type.String({ description: 'the application that it paid, as app:shop' }),
    amount: Type.String({ description: 'the charge, in atomic units' }),
    deposited: Type.String({ description: 'the amount that the payment moved' }),
    change: Type.String({ description: "the amount that stayed on the payer's balance" }),
    asset: Type.String({ description: 'address of the token' }),
    network: Type.String({ description: 'CAIP-2' }),
    transaction: Nullable(Type.String({ description: 'null where nothing was settled' })),
    paid_from: Type.Optional(
      StringEnum(['balance', 'channel'], { description: 'if one of them was charged' }),
    ),
    paid_to: Type.Optional(
      Type.String({ description: "the seller's wallet, if it was paid directly" }),
    ),
    app: Type.String({ description: 'the application that was asked' }),
    operation: Type.String({ description: 'the use that was paid for, such as list' }),
    as_of: Nullable(AsOf),
    row_count: Type.Integer({ description: 'rows of the answer' }),
    result_hash: Type.String({ description: "SHA-256 (hex) of the answer's body" }),
    delivered_at: Time,
    sold: Type.Optional(SoldParts),
    measured: Type.Optional(MeasuredParts),
    budget: Type.Optional(
      Type.String({ description: 'the authorization, or the key, whose budget paid' }),
    ),
    budget_day: Type.Optional(
      Type.String({ description: 'the day in UTC that it counts on, as 2026-11-29' }),
    ),
    uses: Type.Optional(SoldUses),
    pass: Type.Optional(SoldPass),
    channel: Type.Optional(SaleVoucher),
    buyer: Type.Optional(
      Type.String({
        description:
          'the account that tiers, free quotas and passes count for, if that is not the payer: the channel, if another key than its payer’s signs its vouchers',
      }),
    ),
    ledger: Type.Object({
      height: Type.Integer(),
      sequence: Type.Integer(),
      leaf_index: Type.Integer({ description: 'the place of the entry in the tree, from 0' }),
      entry: Type.String({ description: 'base64; it has every fact of the receipt' }),
      inclusion: Inclusion,
      checkpoint: Type.String({ description: 'C2SP signed checkpoint' }),
    }),
    key: Type.String({ description: 'verifier key of signature and checkpoint' }),
    anchor: Type.Optional(
      Type.Object(
        {},
        { ...open, description: 'where another chain has a root that covers the entry already' },
      ),
    ),
    signature: Type.String({ description: 'base64, Ed25519 over all other members' }),
  },
  { ...open, $id: 'Receipt', description: '`tollbase verify` checks it offline' },
)
