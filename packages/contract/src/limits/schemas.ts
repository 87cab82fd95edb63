/** Bounds on schemas, and on checking records by them. */
export const schemaLimits = {
  /** Values that a collection's schema is made of, fields and keywords, lists and texts alike; and its characters. */
  schemaValuesMax: 10_000,
  schemaCharsMax: 256 * 1024,
  /** References ($ref) of a JSON Schema, each of which is looked for in all of it. */
  schemaReferencesMax: 32,
  /** Values that are looked at until each reference is found, over all of them; those in a list count twice. */
  schemaSearchMax: 100_000,
  /** The same for one record, during which everything else waits, 30 to 90 milliseconds; and for all of one call. */
  recordSearchMax: 300_000,
  callSearchMax: 20_000_000,
  /** Problems that one call reports of records that break a schema. */
  schemaProblemsMax: 1_000,
  /** Steps of matching that a schema's patterns may take for the records of one call; about two seconds, in turns. */
  patternStepsMax: 20_000_000,
  /** Steps for one record, during which everything else waits; about 20 milliseconds. */
  recordPatternStepsMax: 200_000,
} as const
