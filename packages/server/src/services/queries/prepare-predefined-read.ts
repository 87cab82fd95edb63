import type { Call } from '../call.ts'
import type { ReadRequest } from '../reading/answer-query.ts'
import type { SourceParts } from '../reading/authorize-sources.ts'
import { toParameterTexts } from './parameter-texts.ts'
import { parseRun, prepareQueryRead } from './prepare-query-read.ts'
import { requireAskableQuery } from './query-access.ts'

/**
 * Prepares a run of a query without running it: authorizes it and prices it for the caller. Where the size of the answer
 * makes the quote, the quote runs it, and counts as a run.
 */
export async function preparePredefinedRead(
  call: Call<SourceParts | 'queryPlans' | 'queryRates'>,
  app: string,
  asked: {
    readonly name: string
    readonly version?: number
    /** By name; `limit` and `offset` among them. */
    readonly parameters?: object
    readonly max_kb?: number
  },
): Promise<ReadRequest> {
  const { service } = call
  const { name, version, parameters = {}, max_kb: maxKb } = asked
  const tenant = await service.tenants.load(app)
  const found = requireAskableQuery(call.caller, tenant, { name, version })
  if (found.stored.quote === 'by_result') {
    const { caller, requestInfo } = call
    const visit = { caller, address: requestInfo.remoteAddress, nowMs: service.world.now() }
    service.queryRates.take(visit, tenant, found.stored)
  }
  const plan = await service.queryPlans.load(service.tenants, tenant, {
    stored: found.stored,
    onRead: call.requestInfo.context.noteRead,
  })
  const run = parseRun(plan.template, toParameterTexts(parameters))
  return prepareQueryRead(call, { tenant, found, plan, run, format: 'json', maxKb })
}
