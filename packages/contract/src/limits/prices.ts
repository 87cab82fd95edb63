/** Bounds on prices, passes, and reports about sales. */
export const priceLimits = {
  /** A price of more atomic units than this is a typing error (1 billion dollars at 6 decimals). */
  amountAtomicMax: 10n ** 15n,
  /** Amounts of a price by volume beside the first. */
  priceTiersMax: 5,
  /** Hours of a pass: a year. */
  passHoursMax: 8784,
  /** Sales that one simulation prices anew, those before its period that count for tiers and quotas included. */
  simulatedSalesMax: 50_000,
  /** Lines of one page of sales or of a statement. */
  billingLinesMax: 10_000,
} as const
