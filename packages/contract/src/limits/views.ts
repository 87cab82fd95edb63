/** Bounds on views. */
export const viewLimits = {
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
} as const
