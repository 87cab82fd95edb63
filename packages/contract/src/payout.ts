import { Type } from 'typebox'
import { limits } from './limits.ts'
import { defineContract } from './route.ts'
import {
  Address,
  AppParams,
  AtomicInput,
  defineUsd,
  extendAppParams,
  Nullable,
  PageQuery,
  StringEnum,
  Time,
} from './schemas.ts'

const Settings = {
  auto_payout_enabled: Type.Boolean(),
  locked_balance: Type.String({
    description: 'the part of the balance that stays: not paid out, refunded or spent by keys',
  }),
  min_payout: Type.String(),
  payout_threshold: Nullable(
    Type.String({ description: 'the least amount that is paid out automatically' }),
  ),
  direct_settlement: Type.Boolean({
    description:
      "buyers pay directly to `payout_destination` where the whole price is this application's and known before; the share of the platform is taken from the balance",
  }),
  payout_destination: Nullable(Type.String({ description: 'where payouts go now' })),
  pending_destination: Nullable(
    Type.Object(
      { address: Type.String(), from: Time },
      { description: 'where they will go; a key that is not its owner may have set it' },
    ),
  ),
}

const Payout = Type.Object({
  payout_id: Type.String(),
  status: StringEnum(['pending', 'paid', 'failed', 'cancelled']),
  amount: Type.String(),
  destination: Type.String(),
  network: Type.String(),
  usd: defineUsd('amount'),
})

const shared = {
  area: 'Payout',
  access: 'Admin',
  shows: 'accounts',
  evenArchived: true,
  params: AppParams,
} as const

export const payout = defineContract({
  getPayoutInfo: {
    ...shared,
    method: 'POST',
    isRead: true,
    path: '/api/apps/:app/payout/info',
    summary: 'Payout settings and the available balance',
    body: Type.Unknown(),
    bodyOptional: true,
    reply: Type.Object({
      ...Settings,
      available_balance: Type.String({ description: 'what can be paid out now' }),
      pending_balance: Type.String({ description: 'what is on its way out' }),
      lifetime_earned: Type.String(),
      lifetime_paid: Type.String(),
      lifetime_direct: Type.String({
        description: 'what buyers have paid directly to the wallet',
      }),
      currency: Type.String(),
      decimals: Type.Integer(),
      usd: defineUsd(
        'available_balance',
        'pending_balance',
        'lifetime_earned',
        'lifetime_paid',
        'lifetime_direct',
      ),
    }),
    errors: ['APPLICATION_NOT_FOUND'],
  },
  setPayoutSettings: {
    ...shared,
    method: 'POST',
    path: '/api/apps/:app/payout/settings',
    summary: 'Change the settings of payouts; what is not given, or null, stays',
    description: `\`locked_balance\` only grows. Another destination counts at once where the owner's wallet signs the request, and after ${limits.payoutDestinationSeconds / 3600} hours otherwise; until then payouts go to the one before. The change is an entry of the service's chain, whose place is in the reply.`,
    body: Type.Object(
      {
        auto_payout_enabled: Type.Optional(Nullable(Type.Boolean())),
        locked_balance: Type.Optional(Nullable(AtomicInput)),
        min_payout: Type.Optional(Nullable(AtomicInput)),
        payout_threshold: Type.Optional(Nullable(AtomicInput)),
        direct_settlement: Type.Optional(Nullable(Type.Boolean())),
        payout_destination: Type.Optional(Nullable(Address)),
      },
      { additionalProperties: false },
    ),
    reply: Type.Object({
      success: Type.Boolean(),
      message: Type.String(),
      ...Settings,
      entry: Type.Object(
        { height: Type.Integer(), sequence: Type.Integer() },
        { description: "its place in the chain of the application 'system'" },
      ),
    }),
    errors: ['APPLICATION_NOT_FOUND'],
  },
  requestPayout: {
    ...shared,
    method: 'POST',
    path: '/api/apps/:app/payout/request',
    summary: 'Pay out earnings to the destination: an amount, or all that is available',
    description:
      'The money leaves the balance at once and is on its way; a transfer that the network can never make is given back. A repeated request with the same `idempotency_key` is the same payout.',
    body: Type.Object(
      {
        amount: Type.Optional(AtomicInput),
        network: Type.Optional(Type.String({ maxLength: 100, description: 'CAIP-2' })),
        idempotency_key: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
      },
      { additionalProperties: false },
    ),
    bodyOptional: true,
    status: 202,
    reply: Payout,
    errors: [
      'APPLICATION_NOT_FOUND',
      'PAYOUT_NOT_POSSIBLE',
      'BALANCE_TOO_LOW',
      'WITHDRAWAL_LIMIT',
      'TRANSFERS_NOT_CONFIGURED',
      'CONFLICT',
    ],
  },
  cancelPayout: {
    ...shared,
    method: 'POST',
    path: '/api/apps/:app/payout/:payout_id/cancel',
    summary: 'Cancel a payout whose transaction is not signed yet',
    description:
      'Its money is on the balance again with the answer. 409 once its transaction may have been signed, or it has an outcome; cancelled before, it answers the same.',
    params: extendAppParams({ payout_id: Type.String({ maxLength: 100 }) }),
    reply: Payout,
    errors: ['APPLICATION_NOT_FOUND', 'TRANSACTION_NOT_FOUND', 'CONFLICT'],
  },
  listPayouts: {
    ...shared,
    method: 'GET',
    path: '/api/apps/:app/payouts',
    summary: 'The payouts of an application, newest first',
    query: PageQuery,
    reply: Type.Object({
      payouts: Type.Array(
        Type.Object({
          ...Payout.properties,
          transaction_hash: Nullable(Type.String()),
          signed_transactions: Type.Array(
            Type.Object({ transaction_hash: Type.String(), signed_at: Time }),
            {
              description:
                'what was signed for it, oldest first: one that no block takes is signed anew with higher fees, and one of them at most moves the money',
            },
          ),
          reason: Nullable(Type.String({ description: 'why it is not paid' })),
          created_at: Time,
        }),
      ),
      next_cursor: Nullable(Type.String()),
    }),
    errors: ['APPLICATION_NOT_FOUND'],
  },
})
