import type { Call } from '../call.ts'
import type { Question } from '../reading/answer-query.ts'
import { textsOf } from './parameter-texts.ts'
import { questionOf, readRun } from './prepare-query-read.ts'
import { askableQuery } from './query-access.ts'

/** A run of a query, judged and priced for the caller, who does not ask it. */
export async function predefinedQuestion(
  call: Call,
  app: string,
  asked: {
    readonly name: string
    readonly version?: number
    /** By name; `limit` and `offset` among them. */
    readonly parameters?: object
    readonly max_kb?: number
  },
): Promise<Question> {
  const { service } = call
  const { name, version, parameters = {}, max_kb: maxKb } = asked
  const tenant = await service.tenancy.tenant(app)
  const found = askableQuery(call, tenant, { name, version })
  const plan = await service.predefined.plans.planOf(service.tenancy, tenant, found.stored)
  const run = readRun(plan.template, textsOf(parameters))
  return questionOf(call, { tenant, found, plan, run, format: 'json', maxKb })
}
