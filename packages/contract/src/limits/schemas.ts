/** Bounds on schemas, and on checking records by them. */
export const schemaLimits = {
  /** Values that a collection's schema is made of, fields and keywords, lists and texts alike; and its characters. */
  schemaValuesMax: 10_000,
  schemaCharsMax: 256 * 1024,
  /** References ($ref) of a JSON Schema, each of which is looked for in all of it. */
  schemaReferencesMax: 32,
  /** Problems that one call reports of records that break a schema. */
  schemaProblemsMax: 1_000,
  /** Steps of matching that a schema's patterns may take for the records of one call; about two seconds, in turns. */
  patternStepsMax: 20_000_000,
  /** Steps for one record, during which everything else waits; about 20 milliseconds. */
  recordPatternStepsMax: 200_000,
} as const
