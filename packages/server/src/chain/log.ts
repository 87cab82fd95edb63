/** The part of a pino logger that a chain uses. */
export type ChainLog = {
  readonly info: (fields: object, text: string) => void
  readonly warn: (fields: object, text: string) => void
  readonly error: (fields: object, text: string) => void
}

export const noLog: ChainLog = {
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
}
