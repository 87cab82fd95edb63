export const taskLimits = {
  /** Tasks of one list, and the records of stores that such a list names. */
  tasksListedMax: 1_000,
  taskRecordsListedMax: 10_000,
  /** Blocks that a list of tasks looks through, from the newest one, and their bytes. */
  taskBlocksMax: 2_000,
  taskBlockBytesMax: 64 * 1024 * 1024,
} as const
