import { limits } from '@tollbase/contract/limits'
import { Fault } from '../../base/fault.ts'
import type { ListRow } from '../../query/compile-list.ts'
import type { CompiledStatement } from '../../query/sql-text.ts'
import type { Call } from '../../services/call.ts'
import { makeFreeTurn } from '../../services/reading/query-turn.ts'
import { runQuery } from '../../services/reading/run-query.ts'

/** Runs what one operation's conditions ask for. */
export type ConditionRunner = (compiled: CompiledStatement) => Promise<ListRow>

/**
 * Does the work of a batch, whose conditions run in the turns of the caller. Others who write to its collections wait
 * meanwhile, and are refused after 20 seconds. So all conditions together have less time than that, and their waits for turns
 * count.
 */
export async function runWithConditions<T>(
  call: Call<'world' | 'queryRunner'>,
  app: string,
  work: (runConditions: ConditionRunner) => Promise<T>,
): Promise<T> {
  const { world, queryRunner } = call.service
  const turn = makeFreeTurn(call, app)
  const late = new AbortController()
  let signal: AbortSignal | undefined
  const getSignal = () => {
    const gone = turn.getSignal?.()
    signal ??= gone === undefined ? late.signal : AbortSignal.any([late.signal, gone])
    return signal
  }
  const stop = world.every(limits.batchConditionsMs, () => late.abort())
  try {
    return await work(async (compiled) => {
      if (late.signal.aborted) throw makeLateFault()
      try {
        return await runQuery(queryRunner, compiled, {
          isHeavy: false,
          turn: { ...turn, getSignal },
        })
      } catch (error) {
        throw late.signal.aborted ? makeLateFault() : error
      }
    })
  } finally {
    stop()
  }
}

function makeLateFault(): Fault {
  return new Fault('QUERY_TIMEOUT', {
    message: `The conditions of a batch may take ${limits.batchConditionsMs / 1000} s together, as others who write to its collections wait meanwhile; narrow them, or send the batch in parts`,
  })
}
