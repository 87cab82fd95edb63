/** Bounds on retention, and on erasing a subject. */
export const retentionLimits = {
  /** Longest retention in days; the first of them that cost nothing. */
  retentionDaysMax: 36_500,
  retentionFreeDays: 30,
  /** Days that a monthly price of storage is for. */
  storageFeeMonthDays: 30,
  /** The most bytes that an operator gives away: 2^50. */
  storageFeeFreeBytesMax: 2 ** 50,
  /** Time after which a new retention takes effect, so that a mistake can be taken back. */
  retentionGraceMs: 3600 * 1000,
  /** Characters of the field and of the value that name a subject. */
  subjectCharsMax: 1_024,
} as const
