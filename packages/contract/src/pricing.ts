import { Type } from 'typebox'
import { limits } from './limits.ts'
import {
  type PriceModelName,
  priceModelNames,
  priceModels,
  pricePeriods,
  quotaUnits,
} from './price-models.ts'
import { confirm_free, Target } from './price-targets.ts'
import { QuoteRequest } from './quote-request.ts'
import { defineContract } from './route.ts'
import {
  AppParams,
  Atomic,
  Described,
  defineAmount,
  defineUsd,
  Moment,
  open,
  StringEnum,
  Time,
  tokenMembers,
} from './schemas.ts'

const naming = {
  target: Target,
  operation: Type.Union([Type.Literal('read'), Type.Literal('write')], {
    description: 'the use that has the price; write is for collections alone',
  }),
  model: Type.Unsafe<PriceModelName>({
    ...StringEnum(priceModelNames),
    description: priceModelNames.map((name) => `${name}: ${priceModels[name].says}`).join('; '),
  }),
  field: Type.Optional(
    Type.String({
      maxLength: limits.fieldPathCharsMax,
      description: 'for field_value: the field whose value, in dollars, a record costs',
    }),
  ),
  unit: Type.Optional(
    Type.Unsafe<(typeof quotaUnits)[number]>({
      ...StringEnum(quotaUnits),
      description: 'for a free_quota: the unit that it counts',
    }),
  ),
  hours: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: limits.passHoursMax,
      description: 'for a time_pass: the hours for which it is valid',
    }),
  ),
}

const settings = {
  tiers: Type.Optional(
    Type.Array(
      Type.Object(
        {
          above: Type.Integer({
            minimum: 1,
            maximum: 1e12,
            description: 'the number of requests, rows or KB above which it counts',
          }),
          amount: defineAmount('the price of each further one'),
        },
        { additionalProperties: false },
      ),
      {
        minItems: 1,
        maxItems: limits.priceTiersMax,
        description:
          'requests, rows or KB above these numbers, which one buyer pays for in a period, cost these amounts, each at most the one before',
      },
    ),
  ),
  period: Type.Optional(
    Type.Unsafe<(typeof pricePeriods)[number]>({
      ...StringEnum(pricePeriods),
      description:
        'for tiers and a free_quota: the time after which their count begins at 0, in UTC; month by default',
    }),
  ),
  quantity: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 1e12,
      description: 'for a free_quota: the requests, rows or KB that are free in each period',
    }),
  ),
}

export const Rule = Type.Object(
  {
    ...naming,
    amount: Type.Optional(defineAmount('the price, or the bound, by the model')),
    ...settings,
  },
  { $id: 'PriceRule', additionalProperties: false },
)

const defineRules = (description: string) => Type.Array(Rule, { maxItems: 1000, description })

export const Split = Type.Object(
  {
    app_owner_percentage: Type.Number({
      minimum: 0,
      maximum: 100,
      description: 'the part of each sale that the application gets',
    }),
    platform_percentage: Type.Number({
      minimum: 0,
      maximum: 100,
      description: 'the part that the platform gets',
    }),
  },
  { $id: 'Split', description: 'the shares of each sale, in percent' },
)

const version = Type.String({
  description:
    'changes with every rule; If-Match with it, or with the ETag that has it, refuses what was made from older rules',
})
const Rules = Type.Object({ rules: Type.Array(Rule), split: Split, version })

const ChangedRules = Type.Object({
  rules: Type.Array(Rule, { description: 'all that are in force now' }),
  split: Split,
  version,
  added: Type.Array(Rule, { description: 'rules that are new' }),
  changed: Type.Array(
    Type.Object(
      {
        ...naming,
        amount: Type.Optional(Atomic),
        ...settings,
        previous_amount: Type.Optional(Atomic),
        previous: Rule,
      },
      { additionalProperties: false },
    ),
    { description: 'rules that have another amount, or other tiers; with the ones before' },
  ),
  removed: Type.Array(Rule, { description: 'rules that are gone' }),
})

const Compared = {
  earned: Type.String({ description: 'the charges of buyers, in atomic units' }),
  simulated: Type.String({ description: 'the charges by these rules, in atomic units' }),
  difference: Type.String({ description: 'simulated less earned; atomic units' }),
}

const changeErrors = [
  'APPLICATION_NOT_FOUND',
  'COLLECTION_NOT_FOUND',
  'VIEW_NOT_FOUND',
  'QUERY_NOT_FOUND',
  'PRICE_REMOVED',
  'PRICING_CHANGED',
] as const

export const pricing = defineContract({
  getPricing: {
    method: 'GET',
    path: '/api/apps/:app/pricing',
    area: 'Pricing',
    summary: 'The prices of an application',
    access: 'public',
    shows: 'definitions',
    params: AppParams,
    requestHeaders: ['If-None-Match'],
    reply: Rules,
    replyHeaders: ['ETag'],
    otherStatuses: [304],
    errors: ['APPLICATION_NOT_FOUND'],
  },
  setPricing: {
    method: 'PUT',
    path: '/api/apps/:app/pricing',
    area: 'Pricing',
    summary: 'Replace all price rules of an application',
    description:
      'A rule that is not in the list is gone; PATCH changes single ones. The answer names what was added, changed and removed.',
    access: 'Admin',
    shows: 'definitions',
    params: AppParams,
    body: Type.Object(
      {
        rules: defineRules(
          'all rules from now on: `[{"target": {"collection": "prices"}, "operation": "read", "model": "per_row", "amount": "1000"}]`',
        ),
        confirm_free,
      },
      {
        examples: [
          {
            rules: [
              {
                target: { collection: 'stations' },
                operation: 'read',
                model: 'per_row',
                amount: '1000',
              },
              {
                target: { collection: 'stations' },
                operation: 'read',
                model: 'time_pass',
                hours: 24,
                amount: '500000',
              },
              {
                target: { query: 'stations-of' },
                operation: 'read',
                model: 'per_access',
                amount: '5000',
              },
            ],
          },
        ],
      },
    ),
    requestHeaders: ['If-Match'],
    reply: ChangedRules,
    replyHeaders: ['ETag'],
    errors: changeErrors,
  },
  updatePricing: {
    method: 'PATCH',
    path: '/api/apps/:app/pricing',
    area: 'Pricing',
    summary: 'Set or remove single price rules',
    description:
      '`set` adds rules, or gives new amounts to those that are there; `remove` names rules by target, operation and model (and by field, unit or hours, where the model has these). All others stay.',
    access: 'Admin',
    shows: 'definitions',
    params: AppParams,
    body: Type.Object(
      {
        set: Type.Optional(defineRules('rules to add, or to give other amounts')),
        remove: Type.Optional(
          Type.Array(Type.Object(naming, { additionalProperties: false }), {
            maxItems: 1000,
            description:
              'rules to remove, each by its target, operation and model, without its amount',
          }),
        ),
        confirm_free,
      },
      {
        examples: [
          {
            set: [
              {
                target: { collection: 'stations' },
                operation: 'read',
                model: 'per_row',
                amount: '2000',
              },
            ],
            remove: [{ target: { query: 'stations-of' }, operation: 'read', model: 'per_access' }],
          },
        ],
      },
    ),
    requestHeaders: ['If-Match'],
    reply: ChangedRules,
    replyHeaders: ['ETag'],
    errors: changeErrors,
  },
  simulatePricing: {
    method: 'POST',
    isRead: true,
    path: '/api/apps/:app/pricing/simulate',
    area: 'Pricing',
    summary: 'Simulate what past sales would have earned by other price rules',
    description:
      'Nothing changes. `rules` is the whole list, as PUT takes it; prices in policies and definitions stay. Without `from` and `to` it is the last 30 days. Amounts are what buyers were charged, the share of the platform included.',
    access: 'Admin',
    shows: 'accounts',
    params: AppParams,
    body: Type.Object(
      {
        rules: defineRules('all rules to simulate, as PUT .../pricing takes them'),
        from: Type.Optional(
          Described(
            Moment,
            'the beginning, a day or a time in UTC; 30 days before `to` by default',
          ),
        ),
        to: Type.Optional(
          Described(Moment, 'the first moment after the sales, in the same form; now by default'),
        ),
      },
      {
        examples: [
          {
            rules: [
              {
                target: { collection: 'stations' },
                operation: 'read',
                model: 'per_row',
                amount: '800',
              },
            ],
            from: '2026-11-01',
          },
        ],
      },
    ),
    reply: Type.Object({
      from: Time,
      to: Time,
      ...tokenMembers,
      sales: Type.Integer({ description: 'those that were simulated' }),
      ...Compared,
      usd: defineUsd('earned', 'simulated', 'difference'),
      items: Type.Array(
        Type.Object({
          item: Type.Object({ kind: Type.String(), name: Type.String() }),
          operation: StringEnum(['read', 'write', 'pass']),
          sales: Type.Integer({ description: 'sales of it that were simulated' }),
          ...Compared,
          not_for_sale: Type.Integer({ description: 'sales that could not have been made' }),
        }),
        { description: 'those that earned or would have earned most first; the first hundred' },
      ),
      not_simulated: Type.Object(
        {
          sales: Type.Integer({ description: 'their number' }),
          earned: Type.String({ description: 'their charges, in atomic units' }),
          reasons: Type.Object({
            older: Type.Integer({ description: 'made before sales noted what was used' }),
            granted: Type.Integer({ description: 'used by views of other applications' }),
            gone: Type.Integer({ description: 'the thing that was sold is not there any more' }),
            field: Type.Integer({ description: 'the field that has a price now had none then' }),
          }),
        },
        { description: 'sales that nobody can price anew; in no other number' },
      ),
      confirm_free: Type.Array(Target, {
        description: 'the targets that PUT with these rules would ask to be confirmed',
      }),
      assumes: Type.Array(Type.String(), { description: 'the assumptions, in sentences' }),
    }),
    errors: [
      'APPLICATION_NOT_FOUND',
      'COLLECTION_NOT_FOUND',
      'VIEW_NOT_FOUND',
      'QUERY_NOT_FOUND',
      'RESULT_TOO_LARGE',
    ],
  },
  quotePrice: {
    method: 'POST',
    isRead: true,
    path: '/api/pricing/quote',
    area: 'Pricing',
    summary: 'Quote the most that a read or write can cost',
    description:
      'With `query` it is what the caller would be asked for if it were asked now: joins, groups and SQL at the derive prices of their sources, rows for their limit. A `query` that is a name is a predefined one, which needs nothing else but `app_id` and its `parameters`; without it `app_id`, `operation_type`, `size_kb` and `collection` are needed.',
    access: 'public',
    shows: 'definitions',
    body: QuoteRequest,
    reply: Type.Object(
      {
        type: StringEnum(['read_quote', 'write_quote_with_indexing'], {
          description: 'for reading, or for writing with all prices of fields',
        }),
        total_cost: Type.Number({ description: 'whole tokens, for reading' }),
        total_cost_atomic: Type.String({
          description: 'the most that it can cost, in atomic units',
        }),
        rows: Type.Integer({ description: 'the rows that the quote is for' }),
        bytes: Type.Optional(
          Type.Integer({ description: 'for a quote by result: the size of the answer' }),
        ),
        price: Type.Object(
          {},
          { ...open, description: 'parts of the cost, in atomic units; with `query`, of all rows' },
        ),
        ...tokenMembers,
        usd: defineUsd('total_cost'),
      },
      open,
    ),
    errors: [
      'FORBIDDEN',
      'APPLICATION_NOT_FOUND',
      'COLLECTION_NOT_FOUND',
      'DATA_SET_NOT_FOUND',
      'FIELD_NOT_OFFERED',
      'DERIVATION_DENIED',
      'VIEW_NOT_READY',
      'GRANT_NEEDED',
      'QUERY_NOT_FOUND',
    ],
  },
})
