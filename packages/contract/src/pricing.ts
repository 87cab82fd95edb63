import { Type } from 'typebox'
import { limits } from './limits.ts'
import { AnyQuery } from './listing.ts'
import {
  type PriceModelName,
  priceModelNames,
  priceModels,
  pricePeriods,
  quotaUnits,
} from './price-models.ts'
import { confirm_free, Target } from './price-targets.ts'
import { defineContract } from './route.ts'
import {
  AppParams,
  Atomic,
  AtomicInput,
  defineUsd,
  Moment,
  Name,
  open,
  StringEnum,
  Time,
} from './schemas.ts'

const naming = {
  target: Target,
  operation: Type.Union([Type.Literal('read'), Type.Literal('write')]),
  model: Type.Unsafe<PriceModelName>({
    ...StringEnum(priceModelNames),
    description: priceModelNames.map((name) => `${name}: ${priceModels[name].says}`).join('; '),
  }),
  field: Type.Optional(Type.String({ maxLength: limits.fieldPathCharsMax })),
  unit: Type.Optional(
    Type.Unsafe<(typeof quotaUnits)[number]>({
      ...StringEnum(quotaUnits),
      description: 'what a free_quota counts',
    }),
  ),
  hours: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: limits.passHoursMax,
      description: 'how long a time_pass is valid',
    }),
  ),
}

const settings = {
  tiers: Type.Optional(
    Type.Array(
      Type.Object(
        { above: Type.Integer({ minimum: 1, maximum: 1e12 }), amount: AtomicInput },
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
      description: 'of tiers and of a free_quota, in UTC; month when not given',
    }),
  ),
  quantity: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 1e12,
      description: 'requests, rows or KB of a free_quota',
    }),
  ),
}

export const Rule = Type.Object(
  { ...naming, amount: Type.Optional(AtomicInput), ...settings },
  { $id: 'PriceRule', additionalProperties: false },
)

export const Split = Type.Object(
  {
    app_owner_percentage: Type.Number({ minimum: 0, maximum: 100 }),
    platform_percentage: Type.Number({ minimum: 0, maximum: 100 }),
  },
  { $id: 'Split' },
)

const version = Type.String({
  description:
    'changes with every rule; If-Match with it, or with the ETag that has it, refuses what was made from older rules',
})
const Rules = Type.Object({ rules: Type.Array(Rule), split: Split, version })

const ChangedRules = Type.Object({
  rules: Type.Array(Rule),
  split: Split,
  version,
  added: Type.Array(Rule),
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
  ),
  removed: Type.Array(Rule),
})

const currencyMembers = { currency: Type.String(), decimals: Type.Integer() }
const Compared = {
  earned: Type.String({ description: 'atomic units' }),
  simulated: Type.String({ description: 'atomic units' }),
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
    body: Type.Object({ rules: Type.Array(Rule, { maxItems: 1000 }), confirm_free }),
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
    body: Type.Object({
      set: Type.Optional(Type.Array(Rule, { maxItems: 1000 })),
      remove: Type.Optional(
        Type.Array(Type.Object(naming, { additionalProperties: false }), { maxItems: 1000 }),
      ),
      confirm_free,
    }),
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
    body: Type.Object({
      rules: Type.Array(Rule, { maxItems: 1000 }),
      from: Type.Optional(Moment),
      to: Type.Optional(Moment),
    }),
    reply: Type.Object({
      from: Time,
      to: Time,
      ...currencyMembers,
      sales: Type.Integer({ description: 'those that were simulated' }),
      ...Compared,
      usd: defineUsd('earned', 'simulated', 'difference'),
      items: Type.Array(
        Type.Object({
          item: Type.Object({ kind: Type.String(), name: Type.String() }),
          operation: StringEnum(['read', 'write', 'pass']),
          sales: Type.Integer(),
          ...Compared,
          not_for_sale: Type.Integer({ description: 'sales that could not have been made' }),
        }),
        { description: 'those that earned or would have earned most first; the first hundred' },
      ),
      not_simulated: Type.Object(
        {
          sales: Type.Integer(),
          earned: Type.String({ description: 'atomic units' }),
          reasons: Type.Object({
            older: Type.Integer({ description: 'made before sales noted what was used' }),
            granted: Type.Integer({ description: 'used by views of other applications' }),
            gone: Type.Integer({ description: 'what was sold is not there any more' }),
            field: Type.Integer({ description: 'the field that has a price now had none then' }),
          }),
        },
        { description: 'sales that nobody can price anew; in no other number' },
      ),
      confirm_free: Type.Array(Target, {
        description: 'what PUT with these rules would ask to be confirmed',
      }),
      assumes: Type.Array(Type.String()),
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
    body: Type.Object({
      app_id: Type.Optional(Type.String()),
      app: Type.Optional(Type.String({ description: 'the same' })),
      operation_type: Type.Optional(StringEnum(['read', 'write'])),
      size_kb: Type.Optional(Type.Number({ minimum: 0, maximum: 1_000_000 })),
      collection: Type.Optional(Type.String()),
      monthly_volume_kb: Type.Optional(Type.Number({ minimum: 0 })),
      rows: Type.Optional(Type.Integer({ minimum: 0, maximum: limits.rowsMax })),
      data: Type.Optional(Type.Unknown()),
      query: Type.Optional(Type.Union([Name, AnyQuery])),
      parameters: Type.Optional(
        Type.Object({}, { ...open, description: 'of a predefined query, by name' }),
      ),
      version: Type.Optional(Type.Integer({ minimum: 1 })),
      max_kb: Type.Optional(
        Type.Integer({ minimum: 1, maximum: limits.paidResultBytesMax / 1024 }),
      ),
    }),
    reply: Type.Object(
      {
        type: StringEnum(['read_quote', 'write_quote_with_indexing']),
        total_cost: Type.Number({ description: 'whole tokens, for reading' }),
        total_cost_atomic: Type.String({ description: 'the most that it can cost' }),
        rows: Type.Integer(),
        bytes: Type.Optional(Type.Integer()),
        price: Type.Object(
          {},
          { ...open, description: 'parts of the cost, such as `per_row`, in atomic units' },
        ),
        decimals: Type.Integer(),
        usd: defineUsd('total_cost'),
        currency: Type.String(),
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
