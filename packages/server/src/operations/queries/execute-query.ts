import { oneHeader } from '../../http/request-info.ts'
import { acceptedFormat } from '../../services/queries/answer-format.ts'
import { questionOf, readRun } from '../../services/queries/prepare-query-read.ts'
import { askableQuery } from '../../services/queries/query-access.ts'
import { answerQuery } from '../../services/reading/answer-query.ts'
import type { Operation } from '../operation.ts'

export const executeQuery: Operation<'executeQuery'> = async (call, { params, query }) => {
  const { service, facts } = call
  const { plans, rates } = service.predefined
  const tenant = await service.tenancy.tenant(params.app)
  const { name } = params
  const found = askableQuery(call, tenant, { name, version: query.version })
  const visit = { caller: call.caller, address: facts.remoteAddress, nowMs: service.world.now() }
  rates.take(visit, tenant, found.stored)
  const plan = await plans.planOf(service.tenancy, tenant, found.stored)
  const run = readRun(plan.template, facts.query)
  const format = query.format ?? acceptedFormat(oneHeader(facts, 'accept'))
  const asked = { tenant, found, plan, run, format, maxKb: query.max_kb }
  return answerQuery(call, await questionOf(call, asked))
}
