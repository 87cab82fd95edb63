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
  extendAppParams,
  NextCursor,
  Nullable,
  PageQuery,
  PayingNetwork,
  Sequence,
  StringEnum,
  Time,
  tokenMembers,
} from './schemas.ts'

const Settings = {
  auto_payout_enabled: Type.Boolean({
    description: 'true: all that is available is paid out, about once a minute',
  }),
  locked_balance: Type.String({
    description: 'the part of the balance that stays: not paid out, refunded or spent by keys',
  }),
  pending_locked_balance: Nullable(
    Type.Object(
      {
        amount: Type.String({ description: 'the part that will stay' }),
        from: Described(Time, 'from when it does'),
      },
      {
        description:
          'a larger part, which a key has locked; the signature of the owner, or `locked_balance` set to what it is now, ends it before',
      },
    ),
  ),
  min_payout: Type.String({ description: 'the least amount of a payout' }),
  payout_threshold: Nullable(
    Type.String({ description: 'the least amount that is paid out automatically' }),
  ),
  direct_settlement: Type.Boolean({
    description:
      "buyers pay directly to `payout_destination` where the whole price is this application's and known before; the share of the platform is taken from the balance",
  }),
  payout_destination: Nullable(Type.String({ description: 'the address that payouts go to now' })),
  pending_destination: Nullable(
    Type.Object(
      { address: Type.String(), from: Described(Time, 'from when payouts go there') },
      {
        description:
          'the address that they will go to; a key that is not its owner may have set it',
      },
    ),
  ),
}

const Payout = Type.Object({
  payout_id: Type.String({ description: 'names it in .../cancel and in GET /api/transactions' }),
  status: StringEnum(['pending', 'paid', 'failed', 'cancelled'], {
    description:
      'paid: the network has confirmed it; failed and cancelled: its money is on the balance again',
  }),
  amount: Type.String({ description: 'atomic units' }),
  destination: Type.String({ description: 'the address that gets it' }),
  network: Type.String({ description: 'CAIP-2' }),
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
      available_balance: Type.String({
        description: 'the amount that can be paid out now, in atomic units',
      }),
      pending_balance: Type.String({ description: 'the amount that is on its way out' }),
      lifetime_earned: Type.String({ description: 'all earnings from sales so far' }),
      lifetime_paid: Type.String({ description: 'all that was paid out so far' }),
      lifetime_direct: Type.String({
        description: 'the amount that buyers have paid directly to the wallet',
      }),
      ...tokenMembers,
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
    description: `Another destination counts at once where the owner's wallet signs the request, and after ${limits.payoutDestinationSeconds / 3600} hours otherwise; until then payouts go to the one before. \`locked_balance\` only grows: at once where the owner's wallet signs the request or the operator makes it, and after ${limits.payoutDestinationSeconds / 3600} hours otherwise. The change is an entry of the service's chain, whose place is in the reply.`,
    body: Type.Object(
      {
        auto_payout_enabled: Type.Optional(
          Nullable(
            Type.Boolean({
              description:
                'true: pay out all that is available, about once a minute; false at the beginning',
            }),
          ),
        ),
        locked_balance: Type.Optional(
          Nullable(
            defineAmount(
              'the part of the balance that stays, which is not paid out, refunded or spent by keys',
              'it only grows, and what a key sets counts later',
            ),
          ),
        ),
        min_payout: Type.Optional(
          Nullable(defineAmount('the least amount of a payout', '0 at the beginning')),
        ),
        payout_threshold: Type.Optional(
          Nullable(defineAmount('automatic payouts wait until so much is available')),
        ),
        direct_settlement: Type.Optional(
          Nullable(
            Type.Boolean({
              description:
                'true: buyers pay `payout_destination` directly where the whole price is this application’s and known before; false at the beginning',
            }),
          ),
        ),
        payout_destination: Type.Optional(
          Nullable(
            Described(
              Address,
              'the address that payouts go to; that of the owner at the beginning',
            ),
          ),
        ),
      },
      {
        additionalProperties: false,
        examples: [
          {
            payout_destination: '0x2222222222222222222222222222222222222222',
            auto_payout_enabled: true,
            payout_threshold: '5000000',
          },
        ],
      },
    ),
    reply: Type.Object({
      success: Type.Boolean(),
      message: Type.String(),
      ...Settings,
      entry: Type.Object(
        { height: BlockHeight, sequence: Sequence },
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
        amount: Type.Optional(
          defineAmount('the amount to pay out', 'all that is available by default'),
        ),
        network: PayingNetwork,
        idempotency_key: Type.Optional(
          Type.String({
            minLength: 1,
            maxLength: 200,
            description: 'names the payout: sent again with it, it is the same one',
          }),
        ),
      },
      { additionalProperties: false, examples: [{ amount: '600', idempotency_key: 'november' }] },
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
    params: extendAppParams({
      payout_id: Type.String({ maxLength: 100, description: 'the `payout_id` of the answer' }),
    }),
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
          transaction_hash: Nullable(
            Type.String({ description: 'the transaction that pays it; null before it is signed' }),
          ),
          signed_transactions: Type.Array(
            Type.Object({ transaction_hash: Type.String(), signed_at: Time }),
            {
              description:
                'the transactions that were signed for it, oldest first: one that no block takes is signed anew with higher fees, and one of them at most moves the money',
            },
          ),
          reason: Nullable(Type.String({ description: 'the reason why it is not paid' })),
          created_at: Time,
        }),
      ),
      next_cursor: NextCursor,
    }),
    errors: ['APPLICATION_NOT_FOUND'],
  },
})
