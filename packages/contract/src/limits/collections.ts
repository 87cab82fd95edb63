/** Bounds on collections, and on what belongs to them: indexes, relations, data sets, shards, migrations. */
export const collectionLimits = {
  collectionsPerApplicationMax: 2_000,
  indexesPerCollectionMax: 32,
  /** Declared fields of a collection that have a column of their own, in the order of its schema. */
  fieldColumnsMax: 16,
  /** Values that the condition of a partial index compares with. */
  partialIndexValuesMax: 32,
  /** Characters of SQL that a new condition of a partial index takes: each test of a field has its name some ten times. */
  partialIndexCharsMax: 4_096,
  /** Characters of a text that a word search looks at. */
  searchedCharsMax: 65_536,
  relationsPerApplicationMax: 2_000,
  dataSetsPerApplicationMax: 100,
  /** Values or networks of one data set of an application, and of a file of the operator. */
  dataSetEntriesMax: 50_000,
  dataSetFileEntriesMax: 1_000_000,
  shardKeysMax: 4,
  shardBucketsMax: 65_536,
  /** Records that a migration reads at once, and problems that it reports. */
  migrationBatchMax: 5_000,
  migrationErrorsMax: 100,
  nameCharsMax: 200,
  descriptionCharsMax: 2_000,
} as const
