/**
 * Members that public clients send beyond the contract, each with the reason. The service ignores them unless
 * stated otherwise, and never refuses them; every other unknown member is 400 UNKNOWN_MEMBER.
 */
export type Tolerated = {
  /** Operation ids; `all` is every one. */
  readonly operations: readonly string[] | 'all'
  /** JSON pointers into the body, or `?name` of the query string. */
  readonly members: readonly `${'/' | '?'}${string}`[]
  readonly reason: string
}

const indexCreation = ['createIndex', 'createCollectionIndex'] as const

export const tolerated: readonly Tolerated[] = [
  {
    operations: 'all',
    members: ['?api_key'],
    reason: 'A key of the application, as the sample applications carry it.',
  },
  {
    operations: indexCreation,
    members: ['/store_values', '/sort_enabled'],
    reason:
      'Settings of another storage engine, sent with each index by the SDK and the PHP and Python clients.',
  },
  {
    operations: indexCreation,
    members: ['/description', '/app_id'],
    reason: 'Sent by sample applications; the application is that of the path.',
  },
  {
    operations: indexCreation,
    members: [
      '/options/background',
      '/options/textIndexVersion',
      '/options/weights',
      '/index_config/store_values',
      '/index_config/compression',
      '/index_config/cache_priority',
      '/index_config/relationship_hints',
      '/index_config/performance_tuning',
    ],
    reason:
      'Hints of the SDK to another storage engine; an index here is built and kept by itself.',
  },
  {
    operations: indexCreation,
    members: ['/creator_premium_config'],
    reason: 'A price of the SDK that does not exist here; the answer warns of it.',
  },
  {
    operations: ['storeRecords'],
    members: ['/amount_utia', '/broker_address', '/payment_mode'],
    reason:
      'Beside the hash of a transfer PHP and Python clients say what was paid and to whom; the chain knows better.',
  },
  {
    operations: ['listRecords'],
    members: ['/fieldMap'],
    reason: "The SDK's rawQuery sends names for its own use along; no field is renamed.",
  },
  {
    operations: ['updateCollection'],
    members: ['/options/validate', '/options/migrate'],
    reason: 'Always sent by the SDK; records that are there are changed by POST .../migrate alone.',
  },
  {
    operations: ['setPricing'],
    members: ['/split', '/version'],
    reason:
      'GET answers them, and what was read may be sent back: the split is the operator’s, a version counts in If-Match.',
  },
  {
    operations: ['deleteCollection'],
    members: ['/force'],
    reason: 'Sent by the SDK beside cascade, which says what goes along.',
  },
]

/** Words of other interfaces that are not misspellings of ours, with the members that they may stand for. */
export const otherWords: Readonly<Record<string, readonly string[]>> = {
  where: ['find'],
  filter: ['find'],
  filters: ['find'],
  conditions: ['find'],
  sort: ['sortBy', 'order_by'],
  order: ['sortDirection'],
  fields: ['select', 'schema_definition'],
  take: ['limit'],
  skip: ['offset'],
  query: ['sql'],
  schema: ['schema_definition'],
  type: ['collection_type', 'operation'],
  records: ['data'],
  documents: ['data'],
  collection: ['root', 'source_collection', 'source_collections'],
}
