import { limits } from '@tollbase/contract/limits'
import { sql } from '../../database/sql.ts'
import { getQueriedTable } from '../../model/encrypted-collections.ts'
import { getIndexName } from '../../projections/index-ddl.ts'
import type { Call } from '../../services/call.ts'
import { explainForCaller } from '../../services/indexes/explain-statement.ts'
import { toParameterTexts } from '../../services/queries/parameter-texts.ts'
import { parseRun, prepareQueryRead } from '../../services/queries/prepare-query-read.ts'
import { isPublic, requireQuery } from '../../services/queries/stored-queries.ts'
import { quoteRead, type ReadRequest } from '../../services/reading/answer-query.ts'
import type { SourceParts } from '../../services/reading/authorize-sources.ts'
import { makeFreeTurn } from '../../services/reading/query-turn.ts'
import { makeReader } from '../../services/reading/run-query.ts'
import type { Operation } from '../operation.ts'

export const dryRunQuery: Operation<
  'dryRunQuery',
  SourceParts | 'queryRunner' | 'queryPlans'
> = async (call, { params, query, body }) => {
  const { service, requestInfo } = call
  const tenant = await service.tenants.load(params.app)
  const found = requireQuery(tenant.data.catalog, params.name, query.version)
  const plan = await service.queryPlans.load(service.tenants, tenant, {
    stored: found.stored,
    onRead: requestInfo.context.noteRead,
  })
  const run = parseRun(plan.template, toParameterTexts(body.parameters ?? {}))
  const asked = { tenant, found, plan, run, format: 'json', maxKb: undefined } as const
  const request = await prepareQueryRead(call, asked)
  const bytesMax = limits.resultBytesMax
  const { text, values } = request.compile({ limit: run.limit, bytesMax, total: false })
  const reader = makeReader(service.queryRunner, makeFreeTurn(call, params.app))
  const { cost, indexes } = await explainForCaller(reader, tenant, {
    sources: request.sources,
    statement: sql.compiled(text, values),
  })
  const names = request.sources.flatMap(({ readable }) =>
    readable.indexes.filter((index) => indexes.includes(getIndexName(index))),
  )
  const readable = request.sources[0]?.readable
  const table = readable === undefined ? '' : getQueriedTable(readable)
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
      ? describeCap(await prepareQueryRead(makeOutsiderCall(call), asked))
      : null,
  }
}

/** The call as somebody without any key would make it. */
function makeOutsiderCall<Own extends Call>(call: Own): Own {
  return { ...call, caller: { kind: 'anonymous' } }
}

function describeCap(request: ReadRequest) {
  const isOpen =
    request.limit === undefined &&
    request.priced?.some(({ price }) => price !== undefined && price.perRow > 0n)
  if (isOpen === true) return null
  const { cap, breakdown } = quoteRead(request)
  return {
    amount: String(cap),
    per_access: String(breakdown.per_access),
    per_row: String(breakdown.per_row),
    per_kb: String(breakdown.per_kb),
    ...(breakdown.derive !== undefined && { derive: String(breakdown.derive) }),
  }
}
