/** What the bare server is started with, as JSON. */
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
}

export const valuePlace = 'the value of the request'
