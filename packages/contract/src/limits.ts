/**
 * Every bound that a caller or operator can meet, in one place; each is tested at the limit and one past it. A number
 * that only decides how a part works inside (how often it sweeps, how many it builds at once) stands in that part.
 */
export const limits = {
  /** Largest JSON request body in bytes (the public clients check the same 5 MiB). */
  bodyBytesMax: 5 * 1024 * 1024,
  /** Largest body of an endpoint that takes no records. */
  plainBodyBytesMax: 512 * 1024,
  /**
   * Bytes of a body that are read at once; longer bodies are read in slices of so many characters, and other
   * requests get turns in between.
   */
  bodyBytesAtOnce: 64 * 1024,
  /** Members of one object of a body. */
  objectMembersMax: 10_000,
  /** Address and headers of a request together; a payment header of the largest size fits. */
  headerBytesMax: 32 * 1024,
  /** Requests that wait behind another one on its connection (pipelining); one more closes the connection. */
  requestsBehindMax: 64,
  /** Longest time for a request to arrive, headers and body together. */
  requestTimeoutMs: 30_000,
  /** Largest blob in bytes where the operator sets nothing else; the public clients expect 2 MiB. */
  blobBytesMax: 2 * 1024 * 1024,
  /** Bytes of the `metadata` of a blob, and of all else in a form beside the blob. */
  blobMetadataBytesMax: 64 * 1024,
  blobFormBytesMax: 256 * 1024,
  /** Characters of a blob's file name. */
  filenameCharsMax: 255,
  /** Uploads that one process takes at once, and of one application. */
  uploadsMax: 64,
  uploadsOfApplicationMax: 16,
  /** Bounds on an upload: patience beside the time that its bytes need at the lowest rate. */
  upload: { patienceMs: 30_000, bytesPerSecondMin: 16 * 1024 },
  /** Resumable uploads that are open, and those of one application; the time after which nothing came for one. */
  openUploadsMax: 256,
  openUploadsOfApplicationMax: 32,
  openUploadMs: 24 * 3600 * 1000,
  /** Files that are read at once, and by one address. */
  downloadsMax: 512,
  downloadsOfAddressMax: 64,
  /** Longest retention in days; the first of them that cost nothing. */
  retentionDaysMax: 36_500,
  retentionFreeDays: 30,
  /** Time after which a new retention takes effect, so that a mistake can be taken back. */
  retentionGraceMs: 3600 * 1000,
  /** Characters of the field and of the value that name a subject. */
  subjectCharsMax: 1_024,
  /** Largest single record in bytes of UTF-8. */
  recordBytesMax: 1024 * 1024,
  recordsPerStoreMax: 10_000,
  batchOperationsMax: 1_000,
  /** Lines of one page of sales or of a statement. */
  billingLinesMax: 10_000,
  /** Sales that one simulation prices anew, those before its period that count for tiers and quotas included. */
  simulatedSalesMax: 50_000,
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
  /**
   * Objects of one find (empty ones count), its regular expressions (PostgreSQL keeps as many prepared), and the
   * values of one list and of all its lists.
   */
  findObjectsMax: 1_024,
  patternsMax: 32,
  inListMax: 10_000,
  inValuesMax: 20_000,
  /** Fields named in one select, nested ones counted. */
  selectedFieldsMax: 500,
  regexCharsMax: 512,
  /** Characters of a text that regexp_replace and regexp_match look through. */
  regexTextCharsMax: 10_000,
  /** Steps of matching that a schema's patterns may take for the records of one call; about two seconds, in turns. */
  patternStepsMax: 20_000_000,
  /** Steps for one record, during which everything else waits; about 20 milliseconds. */
  recordPatternStepsMax: 200_000,
  /** Characters of the words to search for; PostgreSQL bounds the length of a word too. */
  searchCharsMax: 500,
  /** Numbers of the list whose nearest neighbours are asked for. */
  vectorNumbersMax: 4_096,
  /** Characters of a text that a word search looks at. */
  searchedCharsMax: 65_536,
  /** Values that the condition of a partial index compares with. */
  partialIndexValuesMax: 32,
  /** Joins of one find, nested ones counted, and their depth. */
  joinsMax: 16,
  joinDepthMax: 4,
  /** Records that the joins of one answer may fetch in all. */
  joinedRowsMax: 200_000,
  groupFieldsMax: 16,
  aggregatesMax: 64,
  /** One SQL statement: characters, nesting of expressions and sub-queries, collections, columns of a row, values. */
  sqlCharsMax: 65_536,
  /**
   * Words and signs of one statement without values and commas, and all tokens together: they decide how long it
   * takes to parse.
   */
  sqlWordsMax: 4_096,
  sqlTokensMax: 24_576,
  sqlDepthMax: 64,
  /** Characters of the compiled statement. */
  sqlCompiledCharsMax: 1024 * 1024,
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
  sqlColumnsMax: 256,
  sqlParametersMax: 1_000,
  /** Predefined queries of an application, versions of one, stored bytes of one, and its parameters. */
  queriesPerApplicationMax: 1_000,
  queryVersionsMax: 100,
  queryDefinitionBytesMax: 128 * 1024,
  queryParametersMax: 32,
  /** Values of one list, and characters of one text, that a caller may give. */
  queryListMax: 1_000,
  queryTextCharsMax: 4_000,
  /** Characters of an upstream's URL and of one of its headers, and headers of one. */
  upstreamUrlCharsMax: 2_000,
  upstreamHeaderCharsMax: 4_096,
  upstreamHeadersMax: 20,
  upstreamCacheSecondsMax: 24 * 3600,
  /** Largest answer of an upstream, and the time for all of it, its address included. */
  upstreamBytesMax: 1024 * 1024,
  upstreamMs: 10_000,
  /**
   * Requests to upstreams at once: of one application, and in all; those that may wait for a turn, of each rank; and
   * the longest wait.
   */
  upstreamsAtOnceOfApplicationMax: 8,
  upstreamsAtOnceMax: 64,
  upstreamsWaitingMax: 128,
  upstreamsWaitingOfApplicationMax: 32,
  upstreamsWaitingOfCallerMax: 16,
  upstreamWaitMs: 5_000,
  offsetMax: 1_000_000,
  /** Records of an encrypted collection that one list opens, and bytes of their envelopes. */
  openedRecordsMax: 50_000,
  openedBytesMax: 32 * 1024 * 1024,
  /** Tokens by which one list looks for records; where a list of values has more, all records are opened. */
  fieldTokensMax: 20_000,
  /** Time that a call for a change of encryption waits for the records, before it answers with a task. */
  resealingWaitMs: 5_000,
  /** Rows and bytes of one answer; past them the caller is told to page. */
  rowsMax: 200_000,
  resultBytesMax: 64 * 1024 * 1024,
  /**
   * Bounds on answers that their readers have not taken yet: bytes of all together, and the time for each, beside
   * the time that its bytes need at the lowest rate.
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
   * A list of records that takes longer than `quickReadMs` is cancelled and repeated as a heavy
   * query. For `slowReaderMs` after that, lists of the same caller that are not known to be short start as heavy
   * queries. `quickReadsOfCallerMax` bounds the short lists that one caller runs at once.
   */
  quickReadMs: 100,
  slowReaderMs: 10_000,
  quickReadsOfCallerMax: 16,
  /**
   * Heavy queries (SQL, groups, slow lists) that run at once, so that they never take all connections. The waiting
   * limits apply to each rank (payers, keys, neither): in all, for one application, and for one caller. The last is
   * the longest wait.
   */
  queriesAtOnceMax: 4,
  queriesWaitingMax: 256,
  queriesWaitingOfApplicationMax: 64,
  queriesWaitingOfCallerMax: 32,
  queryWaitMs: 10_000,
  /** Temporary space on disk that one heavy query may take for sorting and joining, in KB. */
  queryTemporaryKbMax: 512 * 1024,
  viewsPerApplicationMax: 200,
  viewVariablesMax: 64,
  /** A view's definition in JSON: values in all, and those that become words and signs of a statement. */
  viewValuesMax: 24_576,
  viewWordsMax: 6_144,
  /** Tables that one view is kept in; each min, max and count(DISTINCT) has its own. */
  viewTablesMax: 64,
  /** SELECTs that it becomes where common tables and other views are written out. */
  viewSelectsMax: 128,
  /** Views that may build on one another, as a depth. */
  viewDepthMax: 8,
  grantsPerApplicationMax: 1_000,
  /** Entries and bytes of one block. */
  blockEntriesMax: 10_000,
  blockBytesMax: 8 * 1024 * 1024,
  /** Entries appended but not yet projected, per application, before writes are asked to wait. */
  applierLagEntriesMax: 200_000,
  /** Lag of a chain's tables behind its log above which GET /ready says no. */
  readyLagEntriesMax: 100_000,
  readyLagMsMax: 30_000,
  /** Least pause before a refusal of too much, or of a long body, is sent (twice that at most); and such refusals that wait at once. */
  refusalPauseMs: 250,
  refusalsWaitingMax: 1_000,
  /** Lifetime of a cursor, counted from the first page of its list. */
  cursorLifetimeSeconds: 3600,
  /** Versions in one answer of a change feed, and bytes of their records; the first record may exceed the bytes. */
  changesMax: 1_000,
  changesBytesMax: 8 * 1024 * 1024,
  /** Longest wait of a change feed for a change, and waits at once, per application. */
  changesWaitSecondsMax: 25,
  changesWaitingMax: 100,
  keysPerApplicationMax: 100,
  /** Live authorizations of one account in one application, and days of one whose end is not given. */
  authorizationsOfAccountMax: 100,
  authorizationDays: 365,
  signedRequestWindowSeconds: 300,
  keyOverlapSecondsMax: 30 * 24 * 3600,
  /** Amounts of a price by volume beside the first. */
  priceTiersMax: 5,
  /** A year. */
  passHoursMax: 8784,
  quoteLifetimeSeconds: 300,
  /**
   * Longest time until an authorization expires; clients sign for a quote's lifetime. A payment that is not known
   * to have settled is looked up until then.
   */
  authorizationSecondsMax: 2 * 3600,
  /** Time after a transfer during which its hash is accepted as a payment. */
  nativeProofSeconds: 24 * 3600,
  /** Time until a destination of payouts counts that its owner has not signed. */
  payoutDestinationSeconds: 24 * 3600,
  /** Time in which a withdrawal or payout must have been made; its money is given back after it. */
  transferSeconds: 24 * 3600,
  /** Least amount of a deposit, in atomic units: each costs a transaction. */
  depositAtomicMin: 1_000n,
  /** Least deposit into a payment channel, in atomic units: each costs a transaction. */
  channelDepositAtomicMin: 1_000_000n,
  /** The time that a payer waits for what it takes out of a channel by itself; stock clients name it. */
  channelWithdrawSeconds: 24 * 3600,
  /**
   * Smallest payments of its network that a channel must have been charged since its last refund, for the gas of the next
   * one; where it was not, one refund in so many seconds for each payer, and so many in that time for all. Those of
   * channels that were never charged have a part of them.
   */
  channelRefundPayments: 5n,
  channelRefundSeconds: 24 * 3600,
  channelRefundsMax: 100,
  channelUnusedRefundsMax: 50,
  /** Payments of one payer that may fail on our gas, and the time for which each counts. */
  failedPaymentsMax: 3,
  failedPaymentSeconds: 3600,
  /** The same of all wallets with code together, in a day. */
  failedPaymentsByCodeMax: 100,
  /** Settlements for other x402 servers by the day: of one caller, of all, and those of one caller that may fail. */
  facilitatedPerCallerMax: 1_000,
  facilitatedPerDayMax: 10_000,
  facilitatedFailuresMax: 20,
  /** Longest wait of a payment for another one of its channel. */
  channelWaitMs: 10_000,
  paymentHeaderBytesMax: 16 * 1024,
  keptReplySeconds: 24 * 3600,
  /** Time for which a request is known by its Idempotency-Key, and the longest wait for one that is under way. */
  namedRequestSeconds: 24 * 3600,
  namedRequestWaitMs: 10_000,
  /** Such requests of one application (or wallet), and bytes of their answers; beyond them the oldest go first. */
  namedRequestsMax: 100_000,
  namedAnswersBytesMax: 64 * 1024 * 1024,
  /** Free bytes on the disk of our own database below which nothing new is admitted; work under way has this room. */
  storageFreeBytesMin: 64 * 1024 * 1024,
  /** Bytes of all kept replies together; the oldest go first. */
  keptRepliesBytesMax: 1024 * 1024 * 1024,
  previewRowsMax: 20,
  nameCharsMax: 200,
  descriptionCharsMax: 2_000,
  /** A price of more atomic units than this is a typing error (1 billion dollars at 6 decimals). */
  amountAtomicMax: 10n ** 15n,
  /** Time after which a payment of unknown outcome no longer keeps an application from being archived. */
  openPaymentSeconds: 60 * 60,
} as const
