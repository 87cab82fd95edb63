/** Bounds on the conditions, joins and groups of a request that lists records. */
export const listQueryLimits = {
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
  /** Characters of the words to search for; PostgreSQL bounds the length of a word too. */
  searchCharsMax: 500,
  /** Numbers of the list whose nearest neighbours are asked for. */
  vectorNumbersMax: 4_096,
  /** Joins of one find, nested ones counted, and their depth. */
  joinsMax: 16,
  joinDepthMax: 4,
  /** Records that the joins of one answer may fetch in all. */
  joinedRowsMax: 200_000,
  groupFieldsMax: 16,
  aggregatesMax: 64,
} as const
