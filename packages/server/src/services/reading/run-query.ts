import { Fault } from '../../base/fault.ts'
import { type Turn, unwanted } from '../../base/semaphore.ts'
import { sql } from '../../database/sql.ts'
import type { ListRow } from '../../query/compile-list.ts'
import type { CompiledStatement } from '../../query/sql-text.ts'
import { deletedMeanwhile } from '../access/authorize-collections.ts'
import type { Service } from '../call.ts'

export type Run = {
  /** It may take long, so it waits for its turn. */
  readonly isHeavy: boolean
  readonly turn: Turn
}

type Ports = Pick<Service, 'queryDatabase' | 'querySlots' | 'quickReads'>

/**
 * The one row of a compiled query. A heavy one waits for its slot, so that such queries never hold all connections of
 * lists, and so does a list that proves slow; the connections themselves are for reading alone, with bounds of time and of temporary space. There is no
 * bound by the planner's estimate: it would tell how much a collection holds to those who have not paid for it.
 */
export async function runQuery(
  ports: Ports,
  compiled: CompiledStatement,
  { isHeavy, turn }: Run,
): Promise<ListRow> {
  const { signal } = turn
  try {
    const [row] = await rowsOf(ports, compiled, { isHeavy, turn })
    if (row === undefined) throw new Error('the watermark is missing')
    return row
  } catch (error) {
    if (signal?.aborted === true) throw unwanted()
    throw queryFault(error) ?? deletedMeanwhile(error) ?? error
  }
}

async function rowsOf(
  { queryDatabase, querySlots, quickReads }: Ports,
  compiled: CompiledStatement,
  { isHeavy, turn }: Run,
): Promise<ListRow[]> {
  const statement = sql.compiled(compiled.text, compiled.values)
  const { signal } = turn
  const long = () => queryDatabase.long<ListRow>(statement, { signal })
  if (isHeavy) return querySlots.run(turn, long)
  const read = { turn, text: compiled.text }
  const rows = await quickReads.attempt(read, () => queryDatabase.quick<ListRow>(statement))
  return rows ?? querySlots.run(turn, () => quickReads.learn(read, long))
}

/** What PostgreSQL says of a query that is too much for it (SQLSTATE), without its text, which may tell values. */
export function queryFault(error: unknown): Fault | undefined {
  const state = error instanceof Error && 'code' in error ? String(error.code) : ''
  // query_canceled: the statement's time ran out.
  if (state === '57014') return new Fault('QUERY_TIMEOUT', { cause: error })
  // Program limits, among them the depth of the stack; memory; temporary space.
  if (/^54[0-9A-Z]{3}$/.test(state) || state === '53200' || state === '53400')
    return new Fault('QUERY_TOO_EXPENSIVE', { cause: error })
  // numeric_value_out_of_range, datetime_field_overflow
  if (state === '22003' || state === '22008')
    return new Fault('VALIDATION_FAILED', {
      message: 'The query reckons with a number or a time that is out of range',
      cause: error,
    })
  return undefined
}
