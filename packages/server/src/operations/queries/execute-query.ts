import { findSingleHeader } from '../../http/request-info.ts'
import { chooseFormat } from '../../services/queries/answer-format.ts'
import { parseRun, prepareQueryRead } from '../../services/queries/prepare-query-read.ts'
import { requireAskableQuery } from '../../services/queries/query-access.ts'
import { type AnswerParts, answerQuery } from '../../services/reading/answer-query.ts'
import type { SourceParts } from '../../services/reading/authorize-sources.ts'
import type { Operation } from '../operation.ts'

export const executeQuery: Operation<
  'executeQuery',
  SourceParts | AnswerParts | 'queryPlans' | 'queryRates'
> = async (call, { params, query }) => {
  const { service, requestInfo } = call
  const tenant = await service.tenants.load(params.app)
  const { name } = params
  const found = requireAskableQuery(call.caller, tenant, { name, version: query.version })
  const visit = {
    caller: call.caller,
    address: requestInfo.remoteAddress,
    nowMs: service.world.now(),
  }
  service.queryRates.take(visit, tenant, found.stored)
  const plan = await service.queryPlans.load(service.tenants, tenant, {
    stored: found.stored,
    onRead: requestInfo.context.noteRead,
  })
  const run = parseRun(plan.template, requestInfo.query)
  const format = query.format ?? chooseFormat(findSingleHeader(requestInfo, 'accept'))
  const asked = { tenant, found, plan, run, format, maxKb: query.max_kb }
  return answerQuery(call, await prepareQueryRead(call, asked))
}
