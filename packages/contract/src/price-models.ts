/** Members that a price rule can have beside its target, operation and model. */
export const ruleMembers = [
  'amount',
  'field',
  'tiers',
  'period',
  'unit',
  'quantity',
  'hours',
] as const
export type RuleMember = (typeof ruleMembers)[number]

type PriceModel = {
  readonly operations: readonly ('read' | 'write')[]
  /** Without these the rule says nothing. */
  readonly needs: readonly RuleMember[]
  /** Those that a rule for reading may have beside them. */
  readonly may: readonly RuleMember[]
  /** True where it asks for money by itself, for each request: all others only change what is asked. */
  readonly asks: boolean
  readonly says: string
}

const plain = { operations: ['read', 'write'], needs: ['amount'], may: [], asks: true } as const
const byVolume = { ...plain, may: ['tiers', 'period'] } as const

/** Every model of price rules: one row each, which validation, documentation and commands share. */
export const priceModels = {
  per_access: { ...byVolume, says: 'each request costs the amount' },
  per_row: {
    ...byVolume,
    says: 'each row of the answer, or record written, costs the amount',
  },
  per_record: { ...byVolume, says: 'the same as per_row' },
  per_kb: {
    ...byVolume,
    says: 'each KB of the answer, or of the records written, costs the amount',
  },
  field_value: {
    ...plain,
    operations: ['write'],
    needs: ['field'],
    says: 'each record written costs the value of the field, in dollars',
  },
  minimum: { ...plain, says: 'a request costs at least the amount' },
  maximum: { ...plain, asks: false, says: 'a request costs at most the amount' },
  free_quota: {
    operations: ['read'],
    needs: ['unit', 'quantity'],
    may: ['period'],
    asks: false,
    says: 'so many requests, rows or KB are free in each period for buyers who have paid once',
  },
  time_pass: {
    operations: ['read'],
    needs: ['amount', 'hours'],
    may: [],
    asks: false,
    says: 'for the amount a buyer gets a pass, with which requests are free for so many hours',
  },
} as const satisfies Readonly<Record<string, PriceModel>>

export type PriceModelName = keyof typeof priceModels

export const priceModelNames = Object.keys(priceModels) as readonly PriceModelName[]

/** A quote is made of the request alone, or of what the answer holds at that moment, which shows its count. */
export const quoteKinds = ['request', 'by_result'] as const

/** Tiers and quotas begin anew with each day or month, in UTC. */
export const pricePeriods = ['day', 'month'] as const
export const quotaUnits = ['request', 'row', 'kb'] as const
