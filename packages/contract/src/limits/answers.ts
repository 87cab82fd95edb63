/** Bounds on an answer and its pages. */
export const answerLimits = {
  /**
   * Rows and bytes of one answer; past them the caller is told to page. An answer is one value of the database, and one
   * that is sold is hashed and kept for a retry: each is done at once, so a longer one would hold up other requests.
   */
  rowsMax: 200_000,
  resultBytesMax: 8 * 1024 * 1024,
  /** Columns of a CSV that whole records make, each with fields of its own; spreadsheets take as many. */
  csvColumnsMax: 16_384,
  /**
   * Characters of the JSON of which CSV and NDJSON are made at once, in turns: all of them wait in memory meanwhile. One
   * application has half of them at most, and one caller a quarter.
   */
  formattedCharsMax: 64 * 1024 * 1024,
  /**
   * Bounds on answers that their readers have not taken yet: bytes of all together, of which one address has a quarter
   * at most, and the time for each, beside the time that its bytes need at the lowest rate.
   */
  outgoing: {
    bytesMax: 512 * 1024 * 1024,
    patienceMs: 30_000,
    bytesPerSecondMin: 64 * 1024,
  },
  /** Records that a list may skip. */
  offsetMax: 1_000_000,
  /** Lifetime of a cursor, counted from the first page of its list. */
  cursorLifetimeSeconds: 3600,
  /** Records of a preview. */
  previewRowsMax: 20,
} as const
