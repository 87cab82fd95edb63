/** The part of a pino logger that the database uses. */
export type DatabaseLog = {
  readonly info: (fields: object, text: string) => void
  readonly warn: (fields: object, text: string) => void
  readonly error: (fields: object, text: string) => void
}
