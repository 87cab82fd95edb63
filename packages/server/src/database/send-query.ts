import { type Client, type Connection, Query, type QueryResult } from 'pg'

export type Row = Record<string, unknown>

export type Sent = {
  readonly text: string
  /** With values, were they none, the extended protocol is used, which refuses text that holds several statements. */
  readonly values?: readonly unknown[]
  /** To prepare it under. */
  readonly name?: string | undefined
  /** How long to wait for an answer; 0 is for ever. */
  readonly timeoutMs: number
  /** Goes before it in the same message: where a part of it fails, nothing that follows is done. */
  readonly opening?: Opening | undefined
}

/** BEGIN and its settings; or that a BEGIN sent before must have succeeded, whose answer is not known yet. */
export type Opening = readonly [begin: string, ...settings: string[]] | 'begun'

/** The portal that BEGIN runs in. It lives as long as the transaction does, so naming it fails outside of one. */
const transactionPortal = 'transaction'

/**
 * What `client.query(config)` does; but pg copies each config by property descriptors, which costs more than all else
 * of sending, and a query made of its text alone has nothing to copy.
 */
export function sendQuery(client: Client, sent: Sent): Promise<QueryResult> {
  const { text, values, name, timeoutMs, opening } = sent
  return new Promise((resolve, reject) => {
    const query = new Query(text, values === undefined ? undefined : [...values])
    client.query(
      Object.assign(query, {
        ...(values !== undefined && { queryMode: 'extended' }),
        ...(opening !== undefined && { submit: submitAfter(opening, query) }),
        name,
        query_timeout: timeoutMs,
        callback: (error: Error | null, result: QueryResult | readonly QueryResult[]) => {
          if (error === null || error === undefined) return resolve(lastOf(result))
          // Otherwise its stack tells of the socket alone.
          Error.captureStackTrace(error)
          reject(error)
        },
      }),
    )
  })
}

/** Without a Sync between, so that the server, after an error, passes over everything up to the query's own. */
function submitAfter(opening: Opening, query: Query) {
  const { submit } = query
  return (connection: Connection) => {
    connection.stream.cork()
    try {
      if (opening === 'begun') connection.describe({ type: 'P', name: transactionPortal }, false)
      else open(connection, opening)
      return submit.call(query, connection)
    } finally {
      connection.stream.uncork()
    }
  }
}

function open(connection: Connection, statements: readonly string[]): void {
  for (const [at, text] of statements.entries()) {
    const portal = at === 0 ? transactionPortal : ''
    connection.parse({ name: '', text, types: [] }, false)
    connection.bind({ portal }, false)
    connection.execute({ portal }, false)
  }
}

/** Of several statements each has a result. */
function lastOf(result: QueryResult | readonly QueryResult[]): QueryResult {
  if ('rows' in result) return result
  const last = result.at(-1)
  if (last === undefined) throw new Error('a query has no result')
  return last
}
