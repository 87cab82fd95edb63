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

export type RunningMigration = MigrationProgress & {
  /** Bytes that its end adds to the definitions of the application, which are kept free for it. */
  readonly endBytes: number
}
