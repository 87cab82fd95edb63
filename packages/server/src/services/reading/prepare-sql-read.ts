import type { Tollbase } from '@tollbase/contract/contract'
import { limits } from '@tollbase/contract/limits'
import type { Input } from '@tollbase/contract/route'
import { invalid } from '../../base/fault.ts'
import { declaredTypes } from '../../model/declared-types.ts'
import { refuseUnshardedQuery } from '../../model/shard-keys.ts'
import { compileQuery } from '../../query/compile/compile-query.ts'
import { parseHistory } from '../../query/list-query.ts'
import { queryOfSource } from '../../query/sql/parse-sql.ts'
import { applicationsIn, modelsIn, readSource } from '../../query/sql/source-text.ts'
import type { Query } from '../../query/tree/query.ts'
import { isRowQuery, sourcesOfQuery } from '../../query/tree/query-sources.ts'
import type { Call } from '../call.ts'
import type { Page, Question } from './answer-query.ts'
import { type JudgedSource, judgeSources, namedSource, tablesOf } from './authorize-sources.ts'
import { lagText, positionOf } from './view-sources.ts'

/** The statement, checked and judged for the caller. */
export async function sqlQuestion(
  call: Call,
  body: Input<Tollbase['querySql']>['body'],
): Promise<Question> {
  const history = parseHistory(body.include_history)
  const options = { now: call.service.world.now(), parameters: body.params }
  if (body.sql.length > limits.sqlCharsHere) refuseUnknown(call, body.sql)
  const text = await readSource(body.sql)
  // What the fields are declared as may be used only where the collections may be read, so they are judged first.
  const untyped = queryOfSource(text, options)
  const sources = await judge(call, untyped, history)
  const [first] = sources
  if (first === undefined) throw invalid('/sql', 'names no collection')
  const types = new Map(
    sources.map(({ model, collection }) => [model, declaredTypes(collection.schema_definition)]),
  )
  const hasTypes = [...types.values()].some(({ size }) => size > 0)
  const query = hasTypes
    ? queryOfSource(text, { ...options, typesOf: (model) => types.get(model) })
    : untyped
  refuseUnshardedQuery(new Map(sources.map(({ model, collection }) => [model, collection])), query)
  return {
    operation: 'sql',
    sources,
    limit: query.limit,
    offset: query.offset,
    maxKb: body.max_kb,
    limitMissing: { pointer: '/sql', problem: 'needs a LIMIT' },
    isHeavy: true,
    isRows: isRowQuery(query),
    compile: ({ limit, bytesMax }) =>
      compileQuery(
        { ...query, limit },
        {
          schema: first.tenant.schema,
          caps: { rows: limits.rowsMax, bytes: bytesMax },
          resolve: tablesOf(sources),
          history,
          position: positionOf(sources),
        },
      ),
    reply: (page) => replyText(page, { statement: body.sql, first, now: options.now }),
  }
}

/** Reading a long statement is work that is not done for applications that are not there. */
function refuseUnknown({ service }: Call, sql: string): void {
  const names = applicationsIn(sql)
  if (names === undefined) return
  const [first] = names
  if (first === undefined) throw invalid('/sql', 'names no collection')
  // One that is there may still be hidden: that is judged collection by collection.
  const { applications } = service.tenancy.system
  if (names.every((name) => applications.get(name) === undefined))
    service.tenancy.application(first)
}

/** Judges whether the caller may read what a statement names, though it may not say what can be asked. */
export async function judgeNamed(call: Call, sql: string): Promise<void> {
  if (sql.length > limits.sqlCharsHere) refuseUnknown(call, sql)
  for (const model of modelsIn(await readSource(sql))) await namedSource(call, model, '')
}

function judge(call: Call, query: Query, history: boolean): Promise<JudgedSource[]> {
  const requests = sourcesOfQuery(query).map((use) => ({ ...use, history }))
  // In SQL every collection is written with its application.
  return judgeSources(call, requests, '')
}

function replyText(
  { row, records }: Page,
  { statement, first, now }: { statement: string; first: JudgedSource; now: number },
): string {
  const { tenant, collection } = first
  const names = [statement, tenant.application.app_id, collection.name].map((name) =>
    JSON.stringify(name),
  )
  return `{"data":[${records}],"count":${row.count},"query":${names[0]},"app_id":${names[1]},"collection":${names[2]},"as_of":{"block_height":${row.height},"sequence":${row.sequence}}${lagText(row, now)}}`
}
