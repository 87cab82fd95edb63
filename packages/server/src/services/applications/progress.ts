/** Counts of versions. */
export type ResealingProgress = {
  done: number
  readonly total: number
  /** Bytes of files that its blobs have in both forms. */
  fileBytes: number
  /** The reason for which it waits. */
  readonly problem?: string
}

/** Counts of records. */
export type MigrationProgress = { checked: number; migrated: number; of: number }
