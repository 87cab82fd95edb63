/** Bounds on keys, signed requests, authorizations and grants. */
export const accessLimits = {
  keysPerApplicationMax: 100,
  /** Longest time for which a rotated key goes on beside its successor. */
  keyOverlapSecondsMax: 30 * 24 * 3600,
  /** Time for which the signature of a wallet on a request holds. */
  signedRequestWindowSeconds: 300,
  /** Live authorizations of one account in one application, and days of one whose end is not given. */
  authorizationsOfAccountMax: 100,
  authorizationDays: 365,
  grantsPerApplicationMax: 1_000,
} as const
