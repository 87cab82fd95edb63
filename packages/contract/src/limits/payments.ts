/** Bounds on quotes and payments: how long each holds, and how many may fail. */
export const paymentLimits = {
  /** Time for which a quote holds: its prices are those of the sale until then. */
  quoteLifetimeSeconds: 300,
  /**
   * Longest time until an authorization expires; clients sign for a quote's lifetime. A payment that is not known
   * to have settled is looked up until then.
   */
  authorizationSecondsMax: 2 * 3600,
  /**
   * The same of one that pays a seller's own wallet, or by `upto` at prices by use: until then the platform's share is held
   * on the seller's balance, and the answer is kept.
   */
  directAuthorizationSecondsMax: 600,
  /** Characters of the name that a payer gives a payment (the extension payment-identifier). */
  paymentIdentifierCharsMin: 16,
  paymentIdentifierCharsMax: 128,
  /** Time after a transfer during which its hash is accepted as a payment. */
  nativeProofSeconds: 24 * 3600,
  /** Time for which a wallet's sign-in for a request (the extension sign-in-with-x) is good. */
  signInSeconds: 300,
  /** Bytes of a header that brings a payment, or a sign-in. */
  paymentHeaderBytesMax: 16 * 1024,
  /** Least amount of a deposit, in atomic units: each costs a transaction. */
  depositAtomicMin: 1_000n,
  /**
   * Least share of the platform in a sale, in atomic units, that pays for the entry of the sale, which is kept for good. A
   * sale with a smaller share counts in the rate limit of payments that buy nothing.
   */
  entryShareAtomicMin: 10n,
  /** Held payments that one call releases. */
  heldReleasedMax: 100,
  /** Payments of one payer that may fail on our gas, and the time for which each counts. */
  failedPaymentsMax: 3,
  failedPaymentSeconds: 3600,
  /** The same of all wallets with code together, in a day. */
  failedPaymentsByCodeMax: 100,
  /** Time after which a payment of unknown outcome no longer keeps an application from being archived. */
  openPaymentSeconds: 60 * 60,
  /** Time for which the answer that a payment bought is kept, and given again. */
  keptReplySeconds: 24 * 3600,
  /**
   * Bytes of the answers that are kept for the payments of one payer before these are made, and of all such answers; one
   * that has no room is not made. Those of one seller take at most half of all, and less where others have some; the last
   * quarter is for payers without any. Each counts with 8 KiB for its claim.
   */
  unpaidAnswersBytesMax: 64 * 1024 * 1024,
  allUnpaidAnswersBytesMax: 1024 * 1024 * 1024,
  /**
   * Bytes of all bought answers that are kept. Sellers share them evenly, as the buyers of one seller share its part; beyond
   * its part the oldest answers of a buyer go first. Those that are yet to be paid, and short ones, do not count, and stay.
   */
  keptRepliesBytesMax: 1024 * 1024 * 1024,
  /** Bytes of an answer that is kept whatever others buy. */
  shortReplyBytesMax: 4 * 1024,
} as const
