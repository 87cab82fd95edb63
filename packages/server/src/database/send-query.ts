import { type Client, Query, type QueryResult } from 'pg'

export type Sent = {
  readonly text: string
  /** With values, were they none, the extended protocol is used, which refuses text that holds several statements. */
  readonly values?: readonly unknown[]
  /** To prepare it under. */
  readonly name?: string | undefined
  /** How long to wait for an answer; 0 is for ever. */
  readonly timeoutMs: number
}

/**
 * What `client.query(config)` does; but pg copies each config by property descriptors, which costs more than all else
 * of sending, and a query made of its text alone has nothing to copy.
 */
export function sendQuery(
  client: Client,
  { text, values, name, timeoutMs }: Sent,
): Promise<QueryResult> {
  return new Promise((resolve, reject) => {
    const query = new Query(text, values === undefined ? undefined : [...values])
    client.query(
      Object.assign(query, {
        ...(values !== undefined && { queryMode: 'extended' }),
        name,
        query_timeout: timeoutMs,
        callback: (error: Error | null, result: QueryResult) => {
          if (error === null || error === undefined) return resolve(result)
          // Otherwise its stack tells of the socket alone.
          Error.captureStackTrace(error)
          reject(error)
        },
      }),
    )
  })
}
