import { limits } from '@tollbase/contract/limits'
import { invalid } from '../../base/fault.ts'
import { compileQuery } from '../../query/compile/compile-query.ts'
import { parseHistory } from '../../query/list-query.ts'
import { parseSql } from '../../query/sql/parse-sql.ts'
import type { Query } from '../../query/tree/query.ts'
import { isRowQuery, sourcesOfQuery } from '../../query/tree/sources.ts'
import type { Call } from '../call.ts'
import { declaredTypes } from '../collections/declared-types.ts'
import type { Operation } from '../operation.ts'
import { answerQuery, type Page } from './answer-query.ts'
import { type JudgedSource, judgeSources, tablesOf } from './sources.ts'

export const querySql: Operation<'querySql'> = async (call, { body }) => {
  const history = parseHistory(body.include_history)
  const options = { now: call.service.world.now(), parameters: body.params }
  // What the fields are declared as may be used only where the collections may be read, so they are judged first.
  const untyped = await parseSql(body.sql, options)
  const sources = await judge(call, untyped, history)
  const [first] = sources
  if (first === undefined) throw invalid('/sql', 'names no collection')
  refuseShardedSources(sources)
  const types = new Map(
    sources.map(({ model, collection }) => [model, declaredTypes(collection.schema_definition)]),
  )
  const hasTypes = [...types.values()].some(({ size }) => size > 0)
  const query = hasTypes
    ? await parseSql(body.sql, { ...options, typesOf: (model) => types.get(model) })
    : untyped
  return answerQuery(call, {
    operation: 'sql',
    sources,
    limit: query.limit,
    offset: query.offset,
    maxKb: body.max_kb,
    limitMissing: { pointer: '/sql', problem: 'needs a LIMIT' },
    isHeavy: true,
    isCuttable: isRowQuery(query),
    compile: ({ limit, bytesMax }) =>
      compileQuery(
        { ...query, limit },
        {
          schema: first.tenant.schema,
          caps: { rows: limits.rowsMax, bytes: bytesMax },
          resolve: tablesOf(sources),
          history,
        },
      ),
    reply: (page) => replyText(page, body.sql, first),
  })
}

function judge(call: Call, query: Query, history: boolean): Promise<JudgedSource[]> {
  const requests = sourcesOfQuery(query).map((use) => ({ ...use, history }))
  // In SQL every collection is written with its application.
  return judgeSources(call, requests, '')
}

/** Whether a statement states the keys is not looked into. */
function refuseShardedSources(sources: readonly JudgedSource[]): void {
  const sharded = sources.find(({ collection }) => collection.sharding?.enforce_in_queries === true)
  if (sharded === undefined) return
  throw invalid(
    '/sql',
    `cannot name ${sharded.model}: its owner wants every query to state a shard key; use POST /list`,
  )
}

function replyText(page: Page, statement: string, { tenant, collection }: JudgedSource): string {
  const cut = page.truncated ? ',"truncated":true' : ''
  const names = [statement, tenant.application.app_id, collection.name].map((name) =>
    JSON.stringify(name),
  )
  return `{"data":[${page.records}],"count":${page.count},"query":${names[0]},"app_id":${names[1]},"collection":${names[2]}${cut},"as_of":{"block_height":${page.height},"sequence":${page.sequence}}}`
}
