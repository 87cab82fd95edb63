/** Every bound of the service, in one place; each is tested at the limit and one past it. */
export const limits = {
  /** Largest JSON request body in bytes (the public clients check the same 5 MiB). */
  bodyBytesMax: 5 * 1024 * 1024,
  /** Largest body of an endpoint that takes no records. */
  plainBodyBytesMax: 512 * 1024,
  /** Bodies up to so many bytes are read at once, longer ones in slices of so many characters with turns of others between. */
  bodyBytesAtOnce: 64 * 1024,
  /** Members of one object of a body. */
  objectMembersMax: 10_000,
  /** Address and headers of a request together; a payment header of the largest size fits. */
  headerBytesMax: 32 * 1024,
  /** How long a request may take to arrive, headers and body together. */
  requestTimeoutMs: 30_000,
  /** Largest single record in bytes of UTF-8. */
  recordBytesMax: 1024 * 1024,
  recordsPerStoreMax: 10_000,
  batchOperationsMax: 1_000,
  /** Records that the conditions of one operation of a batch may match. */
  batchMatchesMax: 1_000,
  /** Nesting of a record within its request, and of conditions. */
  jsonDepthMax: 64,
  /** Nesting of a whole request body, whatever it is. */
  bodyDepthMax: 128,
  /** Characters of a primary key. */
  recordKeyCharsMax: 512,
  collectionsPerApplicationMax: 2_000,
  indexesPerCollectionMax: 32,
  relationsPerApplicationMax: 2_000,
  dataSetsPerApplicationMax: 100,
  /** Values or networks of one data set of an application, and of a file of the operator. */
  dataSetEntriesMax: 50_000,
  dataSetFileEntriesMax: 1_000_000,
  /** Values that a collection's schema is made of, fields and keywords, lists and texts alike; and its characters. */
  schemaValuesMax: 10_000,
  schemaCharsMax: 256 * 1024,
  /** References ($ref) of a JSON Schema, each of which is looked for in all of it. */
  schemaReferencesMax: 32,
  /** Problems that one call reports of records that break a schema. */
  schemaProblemsMax: 1_000,
  shardKeysMax: 4,
  shardBucketsMax: 65_536,
  /** Records that a migration reads at once, and problems that it reports. */
  migrationBatchMax: 5_000,
  migrationErrorsMax: 100,
  fieldPathCharsMax: 256,
  fieldPathDepthMax: 16,
  /** Conditions of one find, nested ones counted. */
  conditionsMax: 256,
  /** Objects of one find, empty ones too; its regular expressions, of which PostgreSQL keeps as many prepared; values of all its lists. */
  findObjectsMax: 1_024,
  patternsMax: 32,
  inListMax: 10_000,
  inValuesMax: 20_000,
  /** Fields named in one select, nested ones counted. */
  selectedFieldsMax: 500,
  regexCharsMax: 512,
  /** Steps of matching that a schema's patterns may take for the records of one call; about two seconds, in turns. */
  patternStepsMax: 20_000_000,
  /** The same for one record, whose matching holds up all others; about 20 milliseconds. */
  recordPatternStepsMax: 200_000,
  /** Characters of the words that a text is searched for; none may have more than PostgreSQL takes in a word. */
  searchCharsMax: 500,
  /** Of a text so many characters are searched for words. */
  searchedCharsMax: 65_536,
  /** Values that the condition of a partial index compares with. */
  partialIndexValuesMax: 32,
  /** Joins of one find, nested ones counted, and how deep they nest. */
  joinsMax: 16,
  joinDepthMax: 4,
  /** Records that the joins of one answer may fetch in all. */
  joinedRowsMax: 200_000,
  groupFieldsMax: 16,
  aggregatesMax: 64,
  /** One SQL statement: characters, nesting of expressions and sub-queries, collections, columns of a row, values. */
  sqlCharsMax: 65_536,
  /** Words and signs of one, values and commas not counted, and all together: reading it takes the time of so many. */
  sqlWordsMax: 4_096,
  sqlTokensMax: 24_576,
  /** Statements up to so many characters are read where the request is; longer ones in a thread of their own. */
  sqlCharsHere: 1_024,
  /** Long statements that wait to be read. */
  sqlReadingMax: 64,
  sqlDepthMax: 64,
  /** Characters of the statement that is made of it. */
  sqlCompiledCharsMax: 1024 * 1024,
  sqlSourcesMax: 16,
  /** Bytes of a text that an expression could make, of all of a row, and characters that lpad and rpad make. */
  textBytesMax: 16 * 1024 * 1024,
  rowBytesMax: 272 * 1024 * 1024,
  padCharsMax: 1_000,
  sqlColumnsMax: 256,
  sqlParametersMax: 1_000,
  /** Predefined queries of an application, versions of one, bytes of one as it is stored, and its parameters. */
  queriesPerApplicationMax: 1_000,
  queryVersionsMax: 100,
  queryDefinitionBytesMax: 128 * 1024,
  queryParametersMax: 32,
  /** Values of one list, and characters of one text, that a caller may give. */
  queryListMax: 1_000,
  queryTextCharsMax: 4_000,
  /** Versions of queries that one process keeps read and compiled. */
  queryPlansMax: 1_000,
  offsetMax: 1_000_000,
  /** Rows and bytes of one answer; past them the caller is told to page. */
  rowsMax: 200_000,
  resultBytesMax: 64 * 1024 * 1024,
  /**
   * Answers that their readers have not taken yet: bytes of all together; how long each may take, beside the time
   * that its bytes need at the lowest rate.
   */
  outgoing: {
    bytesMax: 512 * 1024 * 1024,
    patienceMs: 30_000,
    bytesPerSecondMin: 64 * 1024,
  },
  /** Bytes of all large bodies of callers without a key together, from their arrival to their answer. */
  incomingBytesMax: 256 * 1024 * 1024,
  /** Largest answer that can be sold in one call: it is spooled, hashed and kept for a retry. */
  paidResultBytesMax: 8 * 1024 * 1024,
  statementTimeoutMs: 15_000,
  /**
   * Any other list that takes longer is stopped, and asked again as one of the former below. Whose list was so slow asks
   * what is not known to be quick that way at once, for so long. And how many of one caller are asked at once.
   */
  quickReadMs: 100,
  slowReaderMs: 10_000,
  quickReadsOfCallerMax: 16,
  /**
   * SQL, joins and groups that run at once, so that they never take all connections; how many of those who pay, of
   * those with a key and of those with neither wait: in all, for one application, and of one caller; and how long.
   */
  queriesAtOnceMax: 4,
  queriesWaitingMax: 256,
  queriesWaitingOfApplicationMax: 64,
  queriesWaitingOfCallerMax: 32,
  queryWaitMs: 10_000,
  /** Temporary space on disk that one of them may take for sorting and joining, in KB. */
  queryTemporaryKbMax: 512 * 1024,
  /** Indexes that one process builds at once, and how long one may take. */
  indexBuildsMax: 2,
  indexBuildMs: 6 * 3600 * 1000,
  /** Attempts at an index before it counts as failed. */
  indexAttemptsMax: 6,
  viewsPerApplicationMax: 200,
  viewVariablesMax: 64,
  /** A view's definition in JSON: values in all, and those that become words and signs of a statement. */
  viewValuesMax: 24_576,
  viewWordsMax: 6_144,
  /** SELECTs that it becomes where common tables and other views are written out. */
  viewSelectsMax: 128,
  /** How many views lie over each other at most. */
  viewDepthMax: 8,
  grantsPerApplicationMax: 1_000,
  /** Views that one process fills at once, how long one statement of that may take, and attempts before it stands still. */
  viewBuildsMax: 3,
  viewBuildsPerApplicationMax: 2,
  viewBuildMs: 3600 * 1000,
  viewAttemptsMax: 4,
  /** What a live view may take of the writes' time in one turn, and all of an application together. */
  viewAdvanceMs: 1_000,
  viewAdvancesMs: 5_000,
  /** Where writes come closer together than the first, live views take in several at once, unless they were read within the second. */
  viewPauseMs: 100,
  viewReadMs: 60_000,
  /** Entries of a chain that a live view may lack when it joins the writes; more are caught up beside them. */
  viewGapEntriesMax: 1_000,
  /** Entries and bytes of one block. */
  blockEntriesMax: 10_000,
  blockBytesMax: 8 * 1024 * 1024,
  /** Entries appended but not yet projected, per application, before writes are asked to wait. */
  applierLagEntriesMax: 200_000,
  /** GET /ready says no where a chain's tables are further behind its log than this. */
  readyLagEntriesMax: 100_000,
  readyLagMsMax: 30_000,
  /** So long after a block that the storage did not take, and no later one, the storage counts as full or read only. */
  readyStorageMs: 30_000,
  /** A database that takes longer than this to say a word is not ready. */
  readyWaitMs: 2_000,
  /** Buckets of one rate limit in memory; past them the one unused the longest is forgotten. */
  rateLimitBucketsMax: 20_000,
  /** How long a cursor counts from the first page of its list on. */
  cursorLifetimeSeconds: 3600,
  /** Of one answer of a feed of changes: versions, and bytes of their records, which the first may exceed. */
  changesMax: 1_000,
  changesBytesMax: 8 * 1024 * 1024,
  /** How long an answer of a feed may wait for a change, and how many wait at once, per application. */
  changesWaitSecondsMax: 25,
  changesWaitingMax: 100,
  keysPerApplicationMax: 100,
  signedRequestWindowSeconds: 300,
  keyOverlapSecondsMax: 30 * 24 * 3600,
  quoteLifetimeSeconds: 300,
  /** How long an authorization may be valid yet; clients sign for a quote's life. A payment that is not known to have settled is looked up until then. */
  authorizationSecondsMax: 2 * 3600,
  /** How long after a transfer its hash is taken as a payment. */
  nativeProofSeconds: 24 * 3600,
  paymentHeaderBytesMax: 16 * 1024,
  keptReplySeconds: 24 * 3600,
  /** Below so many free bytes on the disk of our own database nothing new is taken in; what is under way has this room. */
  storageFreeBytesMin: 64 * 1024 * 1024,
  /** Bytes of all kept replies together; the oldest go first. */
  keptRepliesBytesMax: 1024 * 1024 * 1024,
  previewRowsMax: 20,
  nameCharsMax: 200,
  descriptionCharsMax: 2_000,
  /** A price of more atomic units than this is a typing error (1 billion dollars at 6 decimals). */
  amountAtomicMax: 10n ** 15n,
  /** A payment that is still not known to have settled after so long does not keep an application from being archived. */
  openPaymentSeconds: 60 * 60,
} as const
