import { Type } from 'typebox'
import { Receipt } from './receipt.ts'
import { defineContract } from './route.ts'
import {
  Address,
  Atomic,
  Described,
  defineAmount,
  defineUsd,
  MapOf,
  Nullable,
  open,
  StringEnum,
  Time,
} from './schemas.ts'

const Facilitate = Type.Object({
  x402Version: Type.Integer({ description: 'the version of x402 of the payment: 1 or 2' }),
  paymentPayload: Type.Object(
    {},
    {
      ...open,
      description: 'the payment, as an x402 client puts it into `X-PAYMENT` or `PAYMENT-SIGNATURE`',
    },
  ),
  paymentRequirements: Type.Object(
    {},
    { ...open, description: 'the requirements that it pays: one of `accepts` of the 402' },
  ),
})

const defineIdParams = (description: string) =>
  Type.Object({ id: Type.String({ maxLength: 200, description }) })

const Payment = Type.Object({
  payment_id: Type.String(),
  state: StringEnum(['pending', 'settled', 'delivered', 'failed', 'reversed'], {
    description:
      'pending: its outcome is not known yet; settled: the money has moved; delivered: the answer was given; reversed: its chain took it back for good',
  }),
  app: Type.String({ description: 'the application that is paid' }),
  operation: Type.String({ description: 'the use that is paid for, such as list' }),
  network: Type.String({ description: 'CAIP-2' }),
  asset: Type.String({ description: 'address of the token' }),
  payer: Type.String({ description: 'the wallet that pays' }),
  amount: Described(Atomic, 'atomic units that the payment moves'),
  usd: defineUsd('amount'),
  transaction: Nullable(Type.String({ description: 'hash of the transaction that settled it' })),
  reason: Nullable(Type.String({ description: 'the reason why it failed' })),
  receipt_id: Nullable(Type.String({ description: 'once it is delivered' })),
  created_at: Time,
})

export const payments = defineContract({
  getSupportedPayments: {
    method: 'GET',
    path: '/api/payments/supported',
    area: 'Payment verification and settlement',
    summary: 'The payment kinds that are accepted (x402 facilitator form)',
    access: 'public',
    shows: 'service',
    reply: Type.Object({
      kinds: Type.Array(
        Type.Object({
          x402Version: Type.Integer(),
          scheme: Type.String({ description: 'such as exact' }),
          network: Type.String({ description: 'CAIP-2; in version 1 its name' }),
        }),
      ),
      extensions: Type.Array(Type.String(), { description: 'extensions of x402 by their names' }),
      signers: MapOf(Type.Array(Type.String()), {
        description: 'addresses, by network',
      }),
    }),
  },
  verifyPayment: {
    method: 'POST',
    isRead: true,
    path: '/api/payments/verify',
    area: 'Payment verification and settlement',
    summary:
      'Check that a payment would be accepted for requirements of this service; nothing is charged',
    description:
      'Requirements with another payee are checked for other x402 servers where the operator enables that, by default for callers with a key (401).',
    access: 'public',
    shows: 'outcome',
    body: Facilitate,
    reply: Type.Object({
      isValid: Type.Boolean(),
      invalidReason: Type.Optional(Type.String({ description: 'a code of x402' })),
      invalidMessage: Type.Optional(Type.String({ description: '`invalidReason` in a sentence' })),
      payer: Type.Optional(Type.String({ description: 'the wallet that signed it' })),
    }),
    errors: ['UNAUTHORIZED', 'PAYMENT_MALFORMED', 'PAYMENT_NETWORK_UNREACHABLE'],
  },
  settlePayment: {
    method: 'POST',
    path: '/api/payments/settle',
    area: 'Payment verification and settlement',
    summary: "Settle a payment to this service: the amount is deposited to the payer's balance",
    description:
      'A transfer that was made to the address of a quote (payload.txHash with its quoteId) goes to the balance of its sender if it can no longer buy anything. If the operator enables it, a payment to another payee is settled for other x402 servers; by default the caller needs a key (401). Such a payment is in no books here, and only one call is told that it is settled.',
    access: 'public',
    shows: 'outcome',
    body: Facilitate,
    reply: Type.Object(
      {
        success: Type.Boolean(),
        transaction: Type.String({ description: 'its hash; empty where none was made' }),
        network: Type.String(),
        payer: Type.Optional(Type.String()),
        errorReason: Type.Optional(Type.String({ description: 'a code of x402' })),
        errorMessage: Type.Optional(Type.String({ description: '`errorReason` in a sentence' })),
        payment_id: Type.Optional(Type.String({ description: 'for GET /api/payments/{id}' })),
      },
      open,
    ),
    errors: [
      'UNAUTHORIZED',
      'PAYMENT_MALFORMED',
      'PAYMENT_PENDING',
      'PAYMENT_ALREADY_USED',
      'PAYMENT_HELD',
      'PAYMENT_NETWORK_UNREACHABLE',
    ],
  },
  getPayment: {
    method: 'GET',
    path: '/api/payments/:id',
    area: 'Payment verification and settlement',
    summary: 'The state of a payment',
    access: 'public',
    shows: 'named',
    params: defineIdParams('the id of the payment, `pay_…`'),
    reply: Payment,
    errors: ['PAYMENT_NOT_FOUND'],
  },
  getReceipt: {
    method: 'GET',
    path: '/api/receipts/:id',
    area: 'Payment verification and settlement',
    summary: 'A receipt, verifiable offline',
    access: 'public',
    shows: 'named',
    params: defineIdParams('the `X-Receipt-Id` of the answer, `rcpt_…`'),
    reply: Receipt,
    errors: ['RECEIPT_NOT_FOUND'],
  },
})

/** Served only with --devnet. */
export const devnet = defineContract({
  requestFaucet: {
    method: 'POST',
    path: '/devnet/faucet',
    area: 'Wallet',
    summary: 'Test dollars of the local devnet (only with --devnet)',
    access: 'public',
    shows: 'service',
    body: Type.Object(
      {
        address: Described(Address, 'the wallet that gets them'),
        amount: Type.Optional(
          defineAmount('test dollars', '100 dollars by default, and 1,000 dollars at most'),
        ),
      },
      {
        additionalProperties: false,
        examples: [{ address: '0x2222222222222222222222222222222222222222', amount: '10000000' }],
      },
    ),
    reply: Type.Object({
      tx_hash: Type.String(),
      balance: Type.String({ description: 'the test dollars of the wallet, in atomic units' }),
    }),
    errors: ['ROUTE_NOT_FOUND', 'PAYMENT_NETWORK_UNREACHABLE'],
  },
})
