import { limits } from '@tollbase/contract/limits'
import { within } from '../../base/within.ts'
import { sql } from '../../database/sql.ts'
import { jsonReply } from '../../http/reply.ts'
import type { Service } from '../call.ts'
import type { Operation } from '../operation.ts'

/** Anybody may ask, so the answer names kinds of trouble and never an application. */
export const getReady: Operation<'getReady'> = async ({ service }) => {
  const { tenancy, info } = service
  const isBehind = tenancy
    .chains()
    .some(
      (chain) => chain.lag() > limits.readyLagEntriesMax || chain.lagMs() > limits.readyLagMsMax,
    )
  const checks = {
    database: (await answers(service)) ? 'ok' : 'unreachable',
    system_chain: tenancy.system.chain.failure === undefined ? 'ok' : 'stopped',
    appliers: isBehind ? 'behind' : 'ok',
    draining: info.draining() ? 'yes' : 'no',
  }
  const ready =
    checks.database === 'ok' &&
    checks.system_chain === 'ok' &&
    checks.appliers === 'ok' &&
    checks.draining === 'no'
  return jsonReply({ ready, checks }, ready ? {} : { status: 503, headers: { 'retry-after': '1' } })
}

const asked = new WeakMap<Service, Promise<boolean>>()

/** Whether the database answers; however many ask, it is asked by one at a time, and not waited for too long. */
function answers(service: Service): Promise<boolean> {
  const running = asked.get(service)
  if (running !== undefined) return running
  const question = service.database.query(sql`SELECT 1 AS one`).then(
    () => true,
    () => false,
  )
  const { world } = service
  const answer = within(question, { world, ms: limits.readyWaitMs, otherwise: false }).finally(() =>
    asked.delete(service),
  )
  asked.set(service, answer)
  return answer
}
