import { limits } from '@tollbase/contract/limits'
import { sql } from '../../database/sql.ts'
import { indexNameOf } from '../../projections/index-ddl.ts'
import type { Call } from '../../services/call.ts'
import { planToTell } from '../../services/indexes/explain-statement.ts'
import { textsOf } from '../../services/queries/parameter-texts.ts'
import { questionOf, readRun } from '../../services/queries/prepare-query-read.ts'
import { findQuery, isPublic } from '../../services/queries/stored-queries.ts'
import { type Question, quoteQuestion } from '../../services/reading/answer-query.ts'
import type { Operation } from '../operation.ts'

export const dryRunQuery: Operation<'dryRunQuery'> = async (call, { params, query, body }) => {
  const { service } = call
  const tenant = await service.tenancy.tenant(params.app)
  const found = findQuery(tenant.data.catalog, params.name, query.version)
  const plan = await service.predefined.plans.planOf(service.tenancy, tenant, found.stored)
  const run = readRun(plan.template, textsOf(body.parameters ?? {}))
  const asked = { tenant, found, plan, run, format: 'json', maxKb: undefined } as const
  const question = await questionOf(call, asked)
  const bytesMax = limits.resultBytesMax
  const { text, values } = question.compile({ limit: run.limit, bytesMax, total: false })
  const { cost, indexes } = await planToTell(service.database, tenant, {
    sources: question.sources,
    statement: sql.compiled(text, values),
  })
  const names = question.sources.flatMap(({ collection }) =>
    collection.indexes.filter((index) => indexes.includes(indexNameOf(index))),
  )
  const { table } = question.sources[0]?.collection ?? { table: '' }
  return {
    query: found.stored.name,
    version: found.stored.version,
    parameters: Object.fromEntries(run.given),
    columns: plan.template.columns === undefined ? null : [...plan.template.columns],
    plan: {
      estimated_cost: cost,
      indexes_used: [
        ...(indexes.includes(`${table}_key`) ? ['primary key'] : []),
        ...new Set(names.map(({ name }) => name)),
      ],
      statement_characters: text.length,
      values_bound: values.length,
    },
    price_cap: isPublic(tenant.data.catalog, found)
      ? capFor(await questionOf(asOutsider(call), asked))
      : null,
  }
}

/** What somebody without any key would be asked for. */
function asOutsider(call: Call): Call {
  return { ...call, caller: { kind: 'anonymous' } }
}

function capFor(question: Question) {
  const isOpen =
    question.limit === undefined &&
    question.charges?.some(({ price }) => price !== undefined && price.perRow > 0n)
  if (isOpen === true) return null
  const { cap, breakdown } = quoteQuestion(question)
  return {
    amount: String(cap),
    per_access: String(breakdown.per_access),
    per_row: String(breakdown.per_row),
    per_kb: String(breakdown.per_kb),
    ...(breakdown.derive !== undefined && { derive: String(breakdown.derive) }),
  }
}
