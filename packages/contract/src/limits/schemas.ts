/** Bounds on schemas, and on checking records by them. */
export const schemaLimits = {
  /** Values that a collection's schema is made of, fields and keywords, lists and texts alike; and its characters. */
  schemaValuesMax: 10_000,
  schemaCharsMax: 256 * 1024,
  /** Parts of the patterns of a schema together, repetitions written out: `^[a-z]{2}$` has four. */
  schemaPatternSizeMax: 30_000,
  /**
   * Characters of the address of a part (`$id`), those that it is relative to included: a schema may have thousands of
   * parts, each of which makes such an address again.
   */
  schemaAddressCharsMax: 512,
  /** Problems that one call reports of records that break a schema. */
  schemaProblemsMax: 1_000,
  /**
   * Steps that judging the records of one call may take; about two seconds, in turns. A step is one of matching a
   * pattern, or two or three values that are judged by a part of the schema.
   */
  schemaStepsMax: 20_000_000,
  /** Steps for one record, during which everything else waits; about 20 milliseconds. */
  recordSchemaStepsMax: 200_000,
} as const
