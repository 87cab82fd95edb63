/** Bounds on one SQL statement. */
export const sqlLimits = {
  /** Characters of a statement. */
  sqlCharsMax: 65_536,
  /**
   * Words and signs of one statement without values and commas, and all tokens together: they decide how long it
   * takes to parse.
   */
  sqlWordsMax: 4_096,
  sqlTokensMax: 24_576,
  /** Nesting of expressions and sub-queries. */
  sqlDepthMax: 64,
  /** Characters of the compiled statement. */
  sqlCompiledCharsMax: 1024 * 1024,
  /** Steps of reading a statement, and of printing it (query/steps.ts): a turn of the event loop each. */
  sqlStepsMax: 100_000,
  /** Operators of a chain such as a + b + c, or SELECTs joined by UNION; a chain is one level. */
  sqlLinksMax: 512,
  /** Rows of one VALUES: each is a SELECT to the planner, whose time grows with their square. */
  sqlValuesRowsMax: 128,
  /** Rows of one generate_series. */
  sqlSeriesRowsMax: 100_000,
  /** Tables of a statement that name themselves: PostgreSQL keeps the rows of each in memory. */
  sqlRecursionsMax: 4,
  /** Steps of one WITH RECURSIVE under UNION ALL; rows and bytes that it finds, and bytes of one of its rows. */
  sqlRecursionStepsMax: 1_000,
  sqlRecursionRowsMax: 100_000,
  sqlRecursionBytesMax: 64 * 1024 * 1024,
  sqlRecursionRowBytesMax: 1024 * 1024,
  /** Sets that ROLLUP, CUBE and GROUPING SETS of one GROUP BY come to. */
  sqlGroupingSetsMax: 128,
  /** Different collections of a statement, and uses of them, with those of functions in FROM. */
  sqlSourcesMax: 16,
  sqlSourceUsesMax: 64,
  /** Bytes of a text that an expression may make, and bytes of a whole row. */
  textBytesMax: 16 * 1024 * 1024,
  rowBytesMax: 272 * 1024 * 1024,
  /** Characters of a text that regexp_replace and regexp_match look through. */
  regexTextCharsMax: 10_000,
  /** Columns of a row, those of all queries of a statement together, and values given for the parameters. */
  sqlColumnsMax: 256,
  sqlAllColumnsMax: 2_048,
  sqlParametersMax: 1_000,
} as const
