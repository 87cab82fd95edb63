/** The x402 scheme `upto`: a payer signs for the most, and the true amount is taken by Permit2. */
export const uptoScheme = 'upto'

/** The same address on every chain, as the next one. */
export const permit2Address = '0x000000000022d473030f116ddee9f6b43ac78ba3'
/** The contract that payers name as the spender: it lets the named facilitator alone take a payment. */
export const uptoProxyAddress = '0x4020a4f3b7b90cca423b9fabcc0ce57c6c240002'

/** The part that other payments lack. */
export type UptoTerms = {
  /** Atomic units: the most that may be taken. */
  readonly permitted: bigint
  /** The key that may take it. */
  readonly facilitator: string
}
