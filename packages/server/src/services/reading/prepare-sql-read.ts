import type { Tollbase } from '@tollbase/contract/contract'
import { limits } from '@tollbase/contract/limits'
import type { Input } from '@tollbase/contract/route'
import { type Fault, makeInvalidFault } from '../../base/fault.ts'
import {
  findPrimaryColumn,
  getFieldTypes,
  getRowSizes,
  hasNoField,
  type Readable,
} from '../../model/readable.ts'
import { refuseUnshardedQuery } from '../../model/shard-keys.ts'
import { compileQuery } from '../../query/compile/compile-query.ts'
import { parseHistory } from '../../query/list-query.ts'
import { buildQuery } from '../../query/sql/parse-sql.ts'
import { sqlCharsHere } from '../../query/sql/parser.ts'
import { listApplications, listModels, readSource } from '../../query/sql/source-text.ts'
import { awaitTurnAfterSteps } from '../../query/steps.ts'
import type { Expression, Query } from '../../query/tree/query.ts'
import { collectQuerySources, isRowQuery } from '../../query/tree/query-sources.ts'
import { requirePermission } from '../access/access.ts'
import type { Tenant } from '../applications/tenants.ts'
import type { Call } from '../call.ts'
import type { Page, ReadRequest } from './answer-query.ts'
import {
  type AuthorizedSource,
  authorizeSources,
  makeTableResolver,
  requireSource,
  type SourceParts,
} from './authorize-sources.ts'
import { findPositionRow, formatLag } from './view-sources.ts'

/** Checks the statement and authorizes it for the caller. */
export async function prepareSqlRead(
  call: Call<SourceParts>,
  body: Input<Tollbase['querySql']>['body'],
): Promise<ReadRequest> {
  const history = parseHistory(body.include_history)
  const options = { now: call.service.world.now(), parameters: body.params }
  if (body.sql.length > sqlCharsHere) refuseUnknown(call, body.sql)
  const text = await readSource(body.sql)
  // Declared types may be used only where the collections may be read, so the sources are authorized first.
  const untyped = buildQuery(text, { ...options, leavesOpen: true })
  await awaitTurnAfterSteps()
  const named = await authorizeQuery(call, untyped, history)
  const query = buildQuery(text, { ...options, ...describeSources(named, history) })
  await awaitTurnAfterSteps()
  // Names that were left open are decided now, so the fields that are used may be others.
  const isSame = isSameUse(untyped, query)
  const sources = isSame ? named : await authorizeQuery(call, query, history)
  const { tenant, name } = await loadFirst(call, sources)
  refuseUnshardedQuery(new Map(sources.map(({ model, readable }) => [model, readable])), query)
  const app = tenant.application.app_id
  return {
    operation: 'sql',
    sources,
    limit: query.limit,
    offset: query.offset,
    maxKb: body.max_kb,
    limitMissing: { pointer: '/sql', problem: 'needs a LIMIT' },
    isHeavy: true,
    isRows: isRowQuery(query),
    isComputed: !isPlain(query),
    compile: ({ limit, bytesMax }) =>
      compileQuery(
        { ...query, limit },
        {
          schema: tenant.schema,
          caps: { rows: limits.rowsMax, bytes: bytesMax },
          resolve: makeTableResolver(sources),
          history,
          position: findPositionRow(sources),
        },
      ),
    reply: (page) => formatReply(page, { statement: body.sql, app, name, now: options.now }),
  }
}

/**
 * Returns the application whose position the answer states, and the collection that it names: those of the first
 * source. A statement without any costs nothing but time, which counts for an application: that of the caller's key.
 */
async function loadFirst(
  { caller, service }: Call<'tenants'>,
  [first]: readonly AuthorizedSource[],
): Promise<{ readonly tenant: Tenant; readonly name: string }> {
  if (first !== undefined) return { tenant: first.tenant, name: first.readable.name }
  if (caller.kind !== 'key') throw makeNoCollectionFault()
  const { app_id: appId } = caller.key
  const { tenants } = service
  requirePermission(caller, 'Read', { appId, tenants })
  return { tenant: await tenants.load(appId), name: '' }
}

function makeNoCollectionFault(): Fault {
  return makeInvalidFault('/sql', 'names no collection, which only the key of an application may')
}

/** Returns what the sources declare. With every version of a record, no field names one of them. */
function describeSources(sources: readonly AuthorizedSource[], history: boolean) {
  const readables = new Map(sources.map(({ model, readable }) => [model, readable]))
  const of = <T>(find: (readable: Readable) => T) => {
    return (model: string): T | undefined => {
      const readable = readables.get(model)
      return readable === undefined ? undefined : find(readable)
    }
  }
  return {
    typesOf: of(getFieldTypes),
    sizesOf: of(getRowSizes),
    // An earlier version may be of an earlier schema.
    lacks: (model: string, name: string) =>
      !history && (of((readable) => hasNoField(readable, name))(model) ?? false),
    primaryOf: history ? () => undefined : of(findPrimaryColumn),
  }
}

/** Returns whether a statement gives fields of its records as they are. */
function isPlain(query: Query): boolean {
  return (
    query.kind === 'select' &&
    isRowQuery(query) &&
    query.columns.every(({ expression }) => isField(expression))
  )
}

function isField(expression: Expression): boolean {
  const { kind } = expression
  if (kind === 'cast' || kind === 'convert') return isField(expression.argument)
  return kind === 'field'
}

function isSameUse(one: Query, other: Query): boolean {
  const [a, b] = [one, other].map((each) => JSON.stringify(collectQuerySources(each)))
  return a === b
}

/** Refuses a long statement for applications that do not exist, before the work of reading it. */
function refuseUnknown({ caller, service }: Call<'tenants'>, sql: string): void {
  const names = listApplications(sql)
  if (names === undefined) return
  const [first] = names
  if (first === undefined) {
    if (caller.kind !== 'key') throw makeNoCollectionFault()
    return
  }
  // An application that exists may still be hidden; each collection is authorized by itself.
  const { applications } = service.tenants.system
  if (names.every((name) => applications.get(name) === undefined))
    service.tenants.requireApplication(first)
}

/** Judges whether the caller may read what a statement names, though it may not say what can be asked. */
export async function judgeNamed(call: Call<'tenants'>, sql: string): Promise<void> {
  if (sql.length > sqlCharsHere) refuseUnknown(call, sql)
  for (const model of listModels(await readSource(sql))) await requireSource(call, model, '')
}

function authorizeQuery(
  call: Call<SourceParts>,
  query: Query,
  history: boolean,
): Promise<AuthorizedSource[]> {
  const requests = collectQuerySources(query).map((use) => ({ ...use, history }))
  // In SQL every collection is written with its application.
  return authorizeSources(call, requests, { home: '' })
}

function formatReply(
  { row, records }: Page,
  {
    statement,
    app,
    name,
    now,
  }: {
    readonly statement: string
    readonly app: string
    readonly name: string
    readonly now: number
  },
): string {
  const names = [statement, app, name].map((each) => JSON.stringify(each))
  return `${replyStart}${records}${recordsEnd}${row.count},"query":${names[0]},"app_id":${names[1]},"collection":${names[2]},"as_of":{"block_height":${row.height},"sequence":${row.sequence}}${formatLag(row, now)}}`
}

const replyStart = '{"data":['
const recordsEnd = '],"count":'

/**
 * Reads what a reply says after its records, which may be megabytes: a text in it has no quotation marks that are not
 * escaped, so the last `],"count":` is their end.
 */
export function readSqlReplyEnd(reply: Buffer): { readonly query: string } {
  return JSON.parse(`${replyStart}${reply.toString('utf8', reply.lastIndexOf(recordsEnd))}`)
}
