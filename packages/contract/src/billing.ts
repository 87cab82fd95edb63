import { Type } from 'typebox'
import { limits } from './limits.ts'
import { defineContract } from './route.ts'
import {
  AppParams,
  asCsv,
  Described,
  defineAmount,
  defineCursor,
  defineUsd,
  extendAppParams,
  ListFormat,
  Moment,
  NextCursor,
  Nullable,
  StringEnum,
  Time,
  tokenMembers,
} from './schemas.ts'

const definePeriod = (usual: { readonly from: string; readonly to: string }) => ({
  from: Type.Optional(
    Described(
      Moment,
      `the beginning, a day or a time in UTC: \`2026-11-01\`; ${usual.from} by default`,
    ),
  ),
  to: Type.Optional(
    Described(
      Moment,
      `the first moment after the period, in the same form; ${usual.to} by default`,
    ),
  ),
})

const AnyPeriod = definePeriod({ from: 'the first sale', to: 'now' })
const Month = definePeriod({
  from: 'the first of the month of the end',
  to: 'the end of this month',
})

const Pages = {
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: limits.billingLinesMax,
      description: 'the most lines of one page; 100 by default',
    }),
  ),
  cursor: defineCursor(400),
  format: ListFormat,
}

const Signed = Type.String({ description: 'atomic units; below zero where money left' })
const Amount = Type.String({ description: 'atomic units' })

const Item = Type.Object({
  kind: Type.String({ description: 'collection, view, query, or batch: several collections' }),
  name: Type.String({ description: 'its name' }),
})

const Money = {
  gross: Type.String({ description: 'the charges of buyers, in atomic units' }),
  fee: Type.String({ description: "the platform's share" }),
  net: Type.String({ description: 'the earnings: `gross` less `fee`' }),
}

const Sums = {
  sales: Type.Integer({ description: 'the number of sales' }),
  writes: Type.Integer({ description: 'those of the sales that took records in' }),
  quantity: Type.Integer({ description: 'records given or taken' }),
  ...Money,
}

const Side = Type.Object({
  sales: Type.Integer({ description: 'the number of sales' }),
  quantity: Type.Integer({ description: 'records given or taken' }),
  ...Money,
})

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
      ...AnyPeriod,
      by: Type.Optional(
        StringEnum(['hour', 'day', 'item', 'buyer'], {
          description: 'sums by the hour, the day, the item or the buyer; single sales by default',
        }),
      ),
      ...Pages,
    }),
    reply: Type.Object({
      sales: Type.Optional(
        Type.Array(
          Type.Object({
            time: Time,
            item: Item,
            operation: Type.String({ description: 'the use that was paid for, such as list' }),
            buyer: Type.String({ description: 'the wallet, or the account, that paid' }),
            quantity: Type.Integer({ description: 'records given or taken by the whole sale' }),
            ...Money,
            refunded: Type.String({
              description: 'given back for the whole sale by this application',
            }),
            payment_id: Type.String({ description: 'for refundSale and GET /api/payments/{id}' }),
            receipt_id: Type.String({ description: 'for GET /api/receipts/{id}' }),
          }),
          { description: 'without `by`' },
        ),
      ),
      buckets: Type.Optional(
        Type.Array(
          Type.Object({
            start: Type.Optional(Described(Time, 'the first moment of the hour, or the day')),
            item: Type.Optional(Item),
            buyer: Type.Optional(Type.String()),
            ...Sums,
          }),
          { description: 'with `by`: the sums' },
        ),
      ),
      next_cursor: NextCursor,
    }),
    otherReplyTypes: ['text/csv'],
  },
  refundSale: {
    ...shared,
    method: 'POST',
    path: '/api/apps/:app/sales/:payment_id/refund',
    summary: 'Give a sale, or a part of it, back to the balance of its buyer',
    description:
      'Without an amount it is all that the parts of this application cost. It comes from the balance of the application; the platform keeps its share. A sale is refunded once: asked again for the same amount, it is the same refund. 409 where the network does not have the payment of the sale any more, or a deposit that the balance had which paid for it.',
    params: extendAppParams({
      payment_id: Type.String({ maxLength: 64, description: 'the `payment_id` of the sale' }),
    }),
    body: Type.Object(
      {
        amount: Type.Optional(
          defineAmount(
            'the amount to give back',
            'by default all that the parts of this application cost',
          ),
        ),
      },
      { additionalProperties: false, examples: [{ amount: '1000' }] },
    ),
    bodyOptional: true,
    reply: Type.Object({
      refund_id: Type.String({ description: 'for GET /api/transactions/{id}' }),
      payment_id: Type.String({ description: 'the sale' }),
      buyer: Type.String({ description: 'the wallet, or the account, that got it' }),
      amount: Amount,
      ...tokenMembers,
      usd: defineUsd('amount'),
      time: Time,
    }),
    errors: ['APPLICATION_NOT_FOUND', 'PAYMENT_NOT_FOUND', 'BALANCE_TOO_LOW', 'CONFLICT'],
  },
  getBilling: {
    ...shared,
    method: 'GET',
    path: '/api/billing/:app',
    summary: 'Get the sales and earnings of an application in a period, by default this month',
    query: Type.Object(Month),
    reply: Type.Object({
      app_id: Type.String(),
      from: Time,
      to: Time,
      ...tokenMembers,
      ...Sums,
      read_sales: Side,
      write_sales: Side,
      items: Type.Array(Type.Object({ item: Item, ...Sums }), {
        description: 'the hundred that earned most',
      }),
      fees: Type.Object({
        storage: Type.String({ description: 'fees for storage of the period, atomic units' }),
        storage_paid: Type.String({
          description: 'the part of fees that the balance paid in the period',
        }),
        storage_owed: Type.String({
          description: 'the fees that later earnings will pay, at this moment',
        }),
      }),
      balance: Signed,
      lifetime_earned: Type.String({ description: 'all earnings so far, in atomic units' }),
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
    query: Type.Object({ ...Month, ...Pages }),
    reply: Type.Object({
      app_id: Type.String(),
      from: Time,
      to: Time,
      ...tokenMembers,
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
          operation: Nullable(
            Type.String({ description: 'the use that was paid for; null for other movements' }),
          ),
          count: Type.Integer({ description: 'movements that the line sums' }),
          quantity: Type.Integer({ description: 'records given or taken' }),
          gross: Signed,
          fee: Amount,
          net: Signed,
        }),
      ),
      next_cursor: NextCursor,
    }),
    otherReplyTypes: ['text/csv'],
  },
})
