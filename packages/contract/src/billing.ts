import { Type } from 'typebox'
import { limits } from './limits.ts'
import { defineContract } from './route.ts'
import {
  AppParams,
  AtomicInput,
  asCsv,
  defineUsd,
  extendAppParams,
  ListFormat,
  Moment,
  Nullable,
  StringEnum,
  Time,
} from './schemas.ts'

const Period = {
  from: Type.Optional(Moment),
  to: Type.Optional(Moment),
}

const Pages = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: limits.billingLinesMax })),
  cursor: Type.Optional(Type.String({ maxLength: 400 })),
  format: ListFormat,
}

const Signed = Type.String({ description: 'atomic units; below zero where money left' })
const Amount = Type.String({ description: 'atomic units' })

const Item = Type.Object({
  kind: Type.String({ description: 'collection, view, query, or batch: several collections' }),
  name: Type.String(),
})

const Money = {
  gross: Amount,
  fee: Type.String({ description: "the platform's share" }),
  net: Amount,
}

const Sums = {
  sales: Type.Integer(),
  writes: Type.Integer({ description: 'those of the sales that took records in' }),
  quantity: Type.Integer({ description: 'records given or taken' }),
  ...Money,
}

const Side = Type.Object({ sales: Type.Integer(), quantity: Type.Integer(), ...Money })

const shared = {
  access: 'Admin',
  shows: 'accounts',
  evenArchived: true,
  area: 'Billing',
  params: AppParams,
  errors: ['APPLICATION_NOT_FOUND'],
} as const

export const billing = defineContract({
  listSales: {
    ...shared,
    method: 'GET',
    path: '/api/apps/:app/sales',
    summary: 'The sales of an application, newest first, or their sums',
    description: `Sums by hour and day are the newest first, by item and buyer the largest first; their period begins and ends at whole hours. ${asCsv}`,
    query: Type.Object({
      ...Period,
      by: Type.Optional(StringEnum(['hour', 'day', 'item', 'buyer'])),
      ...Pages,
    }),
    reply: Type.Object({
      sales: Type.Optional(
        Type.Array(
          Type.Object({
            time: Time,
            item: Item,
            operation: Type.String(),
            buyer: Type.String(),
            quantity: Type.Integer({ description: 'records given or taken by the whole sale' }),
            ...Money,
            refunded: Type.String({
              description: 'given back for the whole sale by this application',
            }),
            payment_id: Type.String(),
            receipt_id: Type.String(),
          }),
        ),
      ),
      buckets: Type.Optional(
        Type.Array(
          Type.Object({
            start: Type.Optional(Time),
            item: Type.Optional(Item),
            buyer: Type.Optional(Type.String()),
            ...Sums,
          }),
        ),
      ),
      next_cursor: Nullable(Type.String()),
    }),
    otherReplyTypes: ['text/csv'],
  },
  refundSale: {
    ...shared,
    method: 'POST',
    path: '/api/apps/:app/sales/:payment_id/refund',
    summary: 'Give a sale, or a part of it, back to the balance of its buyer',
    description:
      'Without an amount it is all that the parts of this application cost. It comes from the balance of the application; the platform keeps its share. A sale is refunded once: asked again for the same amount, it is the same refund.',
    params: extendAppParams({ payment_id: Type.String({ maxLength: 64 }) }),
    body: Type.Object({ amount: Type.Optional(AtomicInput) }, { additionalProperties: false }),
    bodyOptional: true,
    reply: Type.Object({
      refund_id: Type.String(),
      payment_id: Type.String(),
      buyer: Type.String(),
      amount: Amount,
      currency: Type.String(),
      decimals: Type.Integer(),
      usd: defineUsd('amount'),
      time: Time,
    }),
    errors: ['APPLICATION_NOT_FOUND', 'PAYMENT_NOT_FOUND', 'BALANCE_TOO_LOW', 'CONFLICT'],
  },
  getBilling: {
    ...shared,
    method: 'GET',
    path: '/api/billing/:app',
    summary: 'What an application sold and earned in a period, by default this month',
    query: Type.Object(Period),
    reply: Type.Object({
      app_id: Type.String(),
      from: Time,
      to: Time,
      currency: Type.String(),
      decimals: Type.Integer(),
      ...Sums,
      read_sales: Side,
      write_sales: Side,
      items: Type.Array(Type.Object({ item: Item, ...Sums }), {
        description: 'the hundred that earned most',
      }),
      fees: Type.Object({
        storage: Type.String({ description: 'fees for storage of the period, atomic units' }),
        storage_paid: Type.String({ description: 'what the balance paid of fees in the period' }),
        storage_owed: Type.String({ description: 'what later earnings will pay, at this moment' }),
      }),
      balance: Signed,
      lifetime_earned: Amount,
      usd: defineUsd(
        ...(['gross', 'fee', 'net', 'storage', 'storage_paid', 'storage_owed'] as const),
        ...(['balance', 'lifetime_earned'] as const),
      ),
    }),
  },
  getBillingStatement: {
    ...shared,
    method: 'GET',
    path: '/api/apps/:app/billing/statement',
    summary: "The statement of an application's account, by default for this month",
    description: `The opening balance, the net of all lines and nothing else make the closing balance. A line sums the sales of one thing by one operation on one day, or the other movements of a kind on that day. ${asCsv}`,
    query: Type.Object({ ...Period, ...Pages }),
    reply: Type.Object({
      app_id: Type.String(),
      from: Time,
      to: Time,
      currency: Type.String(),
      decimals: Type.Integer(),
      opening_balance: Signed,
      gross: Amount,
      fees: Amount,
      other: Type.String({
        description:
          'the sum of all movements that are no sales, what its own keys bought included',
      }),
      closing_balance: Signed,
      usd: defineUsd('opening_balance', 'gross', 'fees', 'other', 'closing_balance'),
      lines: Type.Array(
        Type.Object({
          date: Type.String({ description: 'the day in UTC' }),
          kind: Type.String({
            description: 'sale, purchase (by its own keys), or the kind of other movements',
          }),
          item: Nullable(Item),
          operation: Nullable(Type.String()),
          count: Type.Integer(),
          quantity: Type.Integer(),
          gross: Signed,
          fee: Amount,
          net: Signed,
        }),
      ),
      next_cursor: Nullable(Type.String()),
    }),
    otherReplyTypes: ['text/csv'],
  },
})
