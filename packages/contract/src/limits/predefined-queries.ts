/** Bounds on predefined queries. */
export const predefinedQueryLimits = {
  /** Predefined queries of an application, versions of one, stored bytes of one, and its parameters. */
  queriesPerApplicationMax: 1_000,
  queryVersionsMax: 100,
  queryDefinitionBytesMax: 128 * 1024,
  queryParametersMax: 32,
  /** Values of one list, and characters of one text, that a caller may give. */
  queryListMax: 1_000,
  queryTextCharsMax: 4_000,
} as const
