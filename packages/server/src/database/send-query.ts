import type { ClientBase, QueryConfig, QueryResult } from 'pg'
import { requirePresent } from '../base/assert.ts'

export type Row = Record<string, unknown>

export type QueryMessage = {
  readonly text: string
  readonly values: readonly unknown[]
  /** Name to prepare it under. */
  readonly name?: string | undefined
  /**
   * The wait for an answer before the connection is given up, in milliseconds. 0 waits for ever; the default is the
   * client's own.
   */
  readonly timeoutMs?: number
}

/** Its types leave out what pg takes since 8.12 and 8.13. */
type Config = QueryConfig<unknown[]> & {
  readonly queryMode?: 'extended'
  readonly query_timeout?: number
}

/** Sends one statement by the extended protocol, which refuses text that holds several. */
export function sendQuery(client: ClientBase, sent: QueryMessage): Promise<QueryResult<Row>> {
  const { text, values, name, timeoutMs } = sent
  // No more than it needs: pg copies this property by property, which costs more than all else of sending.
  const config: Config = {
    text,
    values: [...values],
    ...(name === undefined ? { queryMode: 'extended' } : { name }),
    ...(timeoutMs !== undefined && { query_timeout: timeoutMs }),
  }
  return client.query<Row, unknown[]>(config)
}

/**
 * Sends statements without values as one message of the simple protocol: the server runs none behind one that fails.
 * Returns the result of the last one.
 */
export async function sendScript(
  client: ClientBase,
  statements: readonly string[],
  timeoutMs: number,
): Promise<QueryResult<Row>> {
  const config: Config = { text: statements.join('; '), query_timeout: timeoutMs }
  // pg's types leave out that several statements have several results.
  const results: QueryResult<Row> | QueryResult<Row>[] = await client.query<Row>(config)
  return requirePresent([results].flat().at(-1), 'a result for each statement')
}
