/** Bounds on keys, signed requests, authorizations and grants. */
export const accessLimits = {
  /** Live keys of an application, those that a rotation lets go on for a while among them. */
  keysPerApplicationMax: 100,
  /** Applications that a key, or an authorization, may be limited to. */
  payTargetsMax: 100,
  /**
   * Bytes of the dead keys of an application that are listed, those that died last, and of dead authorizations through
   * it. A record counts 512, and 1.5 for each of its characters.
   */
  deadKeysBytesMax: 256 * 1024,
  /** Longest time for which a rotated key goes on beside its successor. */
  keyOverlapSecondsMax: 30 * 24 * 3600,
  /** Time for which the signature of a wallet on a request holds. */
  signedRequestWindowSeconds: 300,
  /** Live authorizations of one account in one application, and days of one whose end is not given. */
  authorizationsOfAccountMax: 100,
  authorizationDays: 365,
  /** Bytes, counted the same way, of all live authorizations that wallets gave through one application. */
  walletAuthorizationsBytesMax: 16 * 1024 * 1024,
  /** The same through all applications, dead ones that are listed among them; each may have as much as stays free. */
  allWalletAuthorizationsBytesMax: 256 * 1024 * 1024,
  grantsPerApplicationMax: 1_000,
} as const
