/** The part of a pino logger that the rooms use. */
export type Log = {
  readonly info: (fields: object, text: string) => void
  readonly warn: (fields: object, text: string) => void
  readonly error: (fields: object, text: string) => void
}

export const noLog: Log = {
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
}
