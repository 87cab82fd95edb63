/** The money of every account, as replies state it. */
export const currency = { currency: 'USDC', decimals: 6 } as const
