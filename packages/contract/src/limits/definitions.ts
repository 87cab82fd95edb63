/** Bounds on all that an application has defined. */
export const definitionLimits = {
  /**
   * Bytes that all definitions of an application stand for together; how they are counted, model/definition-bytes.ts
   * says. They are in memory as long as the application is open, those of every version of its queries, too.
   */
  definitionsBytesMax: 64 * 1024 * 1024,
} as const
