/** Members that a price rule can have beside its target, operation and model. */
export type RuleMember = 'amount' | 'field'

type PriceModel = {
  readonly operations: readonly ('read' | 'write')[]
  /** Without these the rule says nothing. */
  readonly needs: readonly RuleMember[]
  readonly says: string
}

/** Every model of price rules: one row each, which validation, documentation and commands share. */
export const priceModels = {
  per_access: {
    operations: ['read', 'write'],
    needs: ['amount'],
    says: 'each request costs the amount',
  },
  per_row: {
    operations: ['read', 'write'],
    needs: ['amount'],
    says: 'each row of the answer, or record written, costs the amount',
  },
  per_record: { operations: ['read', 'write'], needs: ['amount'], says: 'the same as per_row' },
  per_kb: {
    operations: ['read', 'write'],
    needs: ['amount'],
    says: 'each KB of the answer, or of the records written, costs the amount',
  },
  field_value: {
    operations: ['write'],
    needs: ['field'],
    says: 'each record written costs the value of the field, in dollars',
  },
  minimum: {
    operations: ['read', 'write'],
    needs: ['amount'],
    says: 'a request costs at least the amount',
  },
  maximum: {
    operations: ['read', 'write'],
    needs: ['amount'],
    says: 'a request costs at most the amount',
  },
} as const satisfies Readonly<Record<string, PriceModel>>

export type PriceModelName = keyof typeof priceModels

export const priceModelNames = Object.keys(priceModels) as readonly PriceModelName[]
