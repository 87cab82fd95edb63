/** The running program's knowledge of itself, for health, info and discovery. */
export type ProgramInfo = {
  readonly version: string
  readonly startedAtMs: number
  /** Scheme, host and port of the public URL. */
  readonly origin: () => string
  /** Returns whether the program was told to end. */
  readonly isDraining: () => boolean
  /** The interface as text, made once. */
  readonly openapiJson: string
  readonly docsHtml: () => string
}
