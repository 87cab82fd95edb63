/** The configuration with which the bare server is started, as JSON. */
export type BareConfig = {
  readonly connection: {
    readonly host: string
    readonly port: number
    readonly user: string
    readonly database: string
  }
  readonly poolSize: number
  /** The statement of /list; in `values` the text `valuePlace` stands for the request's value, as text or as JSON. */
  readonly list?: { readonly text: string; readonly values: readonly unknown[] }
  /** Statements of /query by name; each gives one row with the texts of its records, joined by commas. */
  readonly statements?: Readonly<Record<string, string>>
}

/** The body of a request to /query. */
export type BareQuery = { readonly name: string; readonly values: readonly unknown[] }

export const valuePlace = 'the value of the request'

/** Makes the statement's values for one request. */
export function makeListValues(config: BareConfig, request: unknown): unknown[] {
  const { find } = request as { find: Record<string, { is: unknown }> }
  let value: unknown
  for (const field in find) value = find[field]?.is
  const asJson = JSON.stringify(valuePlace)
  return (config.list?.values ?? []).map((one) => {
    if (one === valuePlace) return value
    return one === asJson ? JSON.stringify(value) : one
  })
}
