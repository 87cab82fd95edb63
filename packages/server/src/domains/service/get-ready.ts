import { limits } from '@tollbase/contract/limits'
import { sql } from '../../database/sql.ts'
import { jsonReply } from '../../http/reply.ts'
import type { Operation } from '../operation.ts'

export const getReady: Operation<'getReady'> = async ({ service }) => {
  const chains = [
    service.tenancy.system.chain,
    ...service.tenancy.tenants().map(({ chain }) => chain),
  ]
  const checks = {
    database: await service.database.query(sql`SELECT 1 AS one`).then(
      () => 'ok',
      () => 'unreachable',
    ),
    appliers: chains.every(
      (chain) => chain.failure === undefined && chain.lag() < limits.applierLagEntriesMax / 2,
    )
      ? 'ok'
      : 'behind',
    draining: service.info.draining() ? 'yes' : 'no',
  }
  const ready = checks.database === 'ok' && checks.appliers === 'ok' && checks.draining === 'no'
  return jsonReply({ ready, checks }, ready ? {} : { status: 503, headers: { 'retry-after': '1' } })
}
