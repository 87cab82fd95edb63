import { type Client, type Connection, Query } from 'pg'
import type { Row } from './send-query.ts'
import { typeParsers } from './type-parsers.ts'

/** A read as it goes over a connection that others use too. */
export type NamedRead = {
  readonly text: string
  readonly values: readonly unknown[]
  /** To prepare it under. */
  readonly name: string
}

/** What `sendQuery` does for a prepared read, with less to and fro: its rows are described once for each connection. */
export function readPrepared(client: Client, read: NamedRead): Promise<Row[]> {
  return new Promise((resolve, reject) => {
    client.query(new PreparedRead(read, { resolve, reject }))
  })
}

type Answer = {
  readonly resolve: (rows: Row[]) => void
  readonly reject: (error: unknown) => void
}
type Column = { readonly name: string; readonly parse: (text: string) => unknown }
type Fields = readonly { readonly name: string; readonly dataTypeID: number }[]

/** What a connection knows of the statements that are prepared there: a name means the same rows as long as it lasts. */
class Described {
  readonly columns = new Map<string, readonly Column[]>()
  /** The same connection for what is described already: it asks for no description. */
  readonly quiet: Connection

  constructor(connection: Connection) {
    this.quiet = Object.assign(Object.create(connection), { describe: () => undefined })
  }
}

const described = new WeakMap<Connection, Described>()

function describedAt(connection: Connection): Described {
  const known = described.get(connection) ?? new Described(connection)
  described.set(connection, known)
  return known
}

const { submit: sendPrepared } = Query.prototype

/** pg calls what is named `handle...` here. */
class PreparedRead extends Query {
  readonly name: string
  readonly queryMode = 'extended'
  readonly callback: (error: Error | null) => void
  readonly #rows: Row[] = []
  #unreadable: unknown
  #described: Described | undefined
  #columns: readonly Column[] = []

  constructor({ text, values, name }: NamedRead, { resolve, reject }: Answer) {
    super(text, [...values])
    this.name = name
    this.callback = (error) => {
      if (error === null && this.#unreadable === undefined) return resolve(this.#rows)
      if (error === null) return reject(this.#unreadable)
      // Otherwise its stack tells of the socket alone.
      Error.captureStackTrace(error)
      reject(error)
    }
  }

  override submit = (connection: Connection) => {
    const known = describedAt(connection)
    const columns = known.columns.get(this.name)
    this.#described = known
    this.#columns = columns ?? []
    return sendPrepared.call(this, columns === undefined ? connection : known.quiet)
  }

  handleRowDescription({ fields }: { readonly fields: Fields }): void {
    this.#columns = fields.map(({ name, dataTypeID }) => ({
      name,
      parse: typeParsers.getTypeParser(dataTypeID),
    }))
    this.#described?.columns.set(this.name, this.#columns)
  }

  handleDataRow({ fields: texts }: { readonly fields: readonly (string | null)[] }): void {
    const row: Row = {}
    try {
      for (let at = 0; at < texts.length; at++) {
        const [column, text] = [this.#columns[at], texts[at]]
        if (column !== undefined) row[column.name] = text == null ? null : column.parse(text)
      }
      this.#rows.push(row)
    } catch (error) {
      // It would be thrown at the socket.
      this.#unreadable ??= error
    }
  }
}
