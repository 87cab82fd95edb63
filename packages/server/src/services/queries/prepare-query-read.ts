import { limits } from '@tollbase/contract/limits'
import { makeInvalidFault } from '../../base/fault.ts'
import { findPrimaryColumn } from '../../model/readable.ts'
import type { KeptQuery } from '../../model/stored-query.ts'
import {
  bindValues,
  needsClock,
  ownParameters,
  type ParameterValue,
} from '../../query/parameter.ts'
import {
  type GivenArguments,
  readArguments,
  type SentTexts,
} from '../../query/predefined/arguments.ts'
import { smallRowsMax, type Template, type Variant } from '../../query/predefined/template.ts'
import type { CompiledStatement } from '../../query/sql-text.ts'
import { type Caller, canRead } from '../access/access.ts'
import type { Tenant } from '../applications/tenants.ts'
import type { Call } from '../call.ts'
import type { PageSize, ReadRequest } from '../reading/answer-query.ts'
import {
  type AuthorizedSource,
  makeDerivationFault,
  makeTableResolver,
  type SourceParts,
} from '../reading/authorize-sources.ts'
import { listPricedSources, type PricedSource } from '../reading/priced-sources.ts'
import { findPositionRow, findViewSort } from '../reading/view-sources.ts'
import { type Format, makeWriter } from './answer-format.ts'
import { type AuthorizedUses, authorizeUses, requireFirstSource } from './authorize-query.ts'
import type { PlannedStatement, QueryPlan } from './query-plans.ts'
import { computeQueryPrice } from './query-price.ts'
import type { QueryLookup } from './stored-queries.ts'

/** Parameters of the endpoint beside those of the query. */
const others: ReadonlySet<string> = new Set([
  'limit',
  'offset',
  'version',
  'format',
  'max_kb',
  'api_key',
])

/** One run of a query, as it is requested. */
export type QueryRun = {
  /** The values of its parameters. */
  readonly given: GivenArguments
  /** Rows that are given at most; undefined: all. */
  readonly limit: number | undefined
  readonly offset: number
}

/** Parses the parameters of a request; a 400 names the one that is wrong. */
export function parseRun(template: Template, sent: SentTexts): QueryRun {
  const { parameters, limitMost } = template
  const texts = renamePageParameters(template, sent)
  const given = readArguments(parameters, texts, others)
  const named = (kind: 'limit' | 'offset') => parameters.find(({ use }) => use.kind === kind)?.name
  const findNumber = (name: string | undefined): number | undefined => {
    const value = name === undefined ? undefined : given.get(name)
    return typeof value === 'number' ? value : undefined
  }
  const isText = (name: string) => parameters.some((one) => one.name === name)
  const asked = findNumber(named('limit')) ?? parseCount(texts, 'limit', isText)
  const skipped = findNumber(named('offset')) ?? parseCount(texts, 'offset', isText) ?? 0
  const own = findNumber(template.limitBy)
  // A limit in the query itself holds, however many rows are skipped.
  const bounds = [limitMost, own].flatMap((most) =>
    most === undefined ? [] : [Math.max(0, most - skipped)],
  )
  const wanted = asked ?? template.limitDefault
  const all = [...bounds, ...(wanted === undefined ? [] : [wanted])]
  return {
    given,
    limit: all.length === 0 ? undefined : Math.min(...all),
    offset: template.offset + skipped,
  }
}

/** `limit` and `offset` are also names of the parameters for them, with their bounds. */
function renamePageParameters({ parameters }: Template, sent: SentTexts): SentTexts {
  let texts = sent
  for (const kind of ['limit', 'offset'] as const) {
    const name = parameters.find(({ use }) => use.kind === kind)?.name
    const text = texts[kind]
    if (name === undefined || name === kind || text === undefined) continue
    if (texts[name] !== undefined)
      throw makeInvalidFault(`/query/${kind}`, `is another name of ${name}`)
    const rest = Object.entries(texts).filter(([each]) => each !== kind)
    texts = { ...Object.fromEntries(rest), [name]: text }
  }
  return texts
}

/** Parses a count that the contract's schema has checked; a parameter of the query may have its name. */
function parseCount(
  texts: SentTexts,
  name: 'limit' | 'offset',
  isText: (name: string) => boolean,
): number | undefined {
  const text = texts[name]
  return typeof text === 'string' && !isText(name) ? Number(text) : undefined
}

export type QueryRunRequest = {
  readonly tenant: Tenant
  readonly found: QueryLookup
  readonly plan: QueryPlan
  readonly run: QueryRun
  readonly format: Format
  readonly maxKb: number | undefined
}

/** Prepares the run of a query: authorizes it and prices it for the caller. */
export async function prepareQueryRead(
  call: Call<SourceParts>,
  asked: QueryRunRequest,
): Promise<ReadRequest> {
  const { tenant, found, plan, run, format, maxKb } = asked
  const { template } = plan
  const { stored } = found
  const authorized = await authorizeUses(call, tenant, template.uses)
  const write = makeWriter(
    format,
    { query: stored.name, version: stored.version },
    template.columns,
  )
  const { sources } = authorized
  const { world } = call.service
  const now = world.now()
  return {
    operation: 'query',
    sources,
    priced: listPricedParts(call.caller, asked, authorized),
    definition: buildQueryMeaning(stored),
    limit: run.limit,
    offset: 0,
    maxKb,
    limitMissing: { pointer: '/query/limit', problem: 'is needed' },
    isHeavy: template.isHeavy,
    // Only JSON can say that it was cut.
    isRows: template.isRows,
    compile: (size) => bindStatement(plan, { run, size, sources, now, bind: bindValues }),
    reply: (page, _total, turn) => write.text(page, { now, turn }),
    contentType: write.contentType,
    makeCacheKey: () => makeAnswerKey(asked, sources),
  }
}

/**
 * Makes the cache key of a run's answer from all that decides it but positions; undefined where the time decides it
 * too.
 */
function makeAnswerKey(
  { plan, run, format }: QueryRunRequest,
  sources: readonly AuthorizedSource[],
): string | undefined {
  const variant = makeVariant(plan.template, run, computeRowsMax(run.limit))
  const { key, isTimed } = compileVariant(plan, variant, sources)
  return isTimed
    ? undefined
    : `${key} ${format} ${JSON.stringify([run.limit, run.offset, [...run.given]])}`
}

/** Returns what a name and a version stand for; the sources that it reads are described beside it. */
function buildQueryMeaning(stored: KeptQuery): readonly unknown[] {
  const { name, version, sql, source_collection, base_query, parameters, min_group_size } = stored
  return [name, version, sql, source_collection, base_query, parameters, min_group_size]
}

/** Lists the query's own price, unless the caller may read its application, and those of others' sources. */
function listPricedParts(
  caller: Caller,
  { tenant, found, plan }: QueryRunRequest,
  authorized: AuthorizedUses,
): PricedSource[] {
  const { app_id: app } = tenant.application
  // The author of the query can make its size depend on any value of what others sell.
  const foreign = listPricedSources(authorized.foreign).map((one) => ({
    ...one,
    isQuotedByResult: false,
  }))
  if (canRead(caller, tenant.application)) return [...foreign]
  const { name } = found.stored
  const price = computeQueryPrice(tenant.data.catalog, found.stored, plan.own)?.price
  // Its owner set no price, and a source has come to have a price without allowing derivation.
  if (price === undefined) throw makeDerivationFault(`${app}::${name}`)
  return [
    {
      kind: 'rows',
      tenant,
      name: `${app}::${name}`,
      soldAs: 'query',
      measuredBy: 'rows',
      version: found.stored.version,
      emptyAnswerFree: false,
      isQuotedByResult: found.stored.quote === 'by_result',
      price,
    },
    ...foreign,
  ]
}

type StatementRequest = {
  readonly run: QueryRun
  readonly size: PageSize
  readonly sources: readonly AuthorizedSource[]
  /** Milliseconds since 1970. */
  readonly now: number
  readonly bind: typeof bindValues
}

/** Binds the statement of a run: its text is compiled once for all runs alike, and only the values are new. */
export function bindStatement(
  plan: QueryPlan,
  { run, size, sources, now, bind }: StatementRequest,
): CompiledStatement {
  const rows = computeRowsMax(size.limit)
  const { statement } = compileVariant(plan, makeVariant(plan.template, run, rows), sources)
  const own: readonly (readonly [string, ParameterValue])[] = [
    [ownParameters.limit, rows],
    [ownParameters.offset, run.offset],
    [ownParameters.bytes, size.bytesMax],
    [ownParameters.now, new Date(now).toISOString().slice(0, -1)],
  ]
  const { text, values } = statement
  return { text, values: bind(values, new Map([...run.given, ...own])) }
}

/** Computes the rows to read: one more than an answer may have tells that there are too many. */
function computeRowsMax(limit: number | undefined): number {
  return Math.min(limit ?? limits.rowsMax + 1, limits.rowsMax + 1)
}

function makeVariant({ parameters }: Template, { given }: QueryRun, rows: number): Variant {
  const sort = parameters.find(({ use }) => use.kind === 'sort')
  const value = sort && given.get(sort.name)
  return {
    given: new Set(given.keys()),
    sort: value === undefined ? undefined : String(value),
    isSmall: rows <= smallRowsMax,
  }
}

function compileVariant(
  plan: QueryPlan,
  variant: Variant,
  sources: readonly AuthorizedSource[],
): PlannedStatement {
  const { template, statements } = plan
  const key = makeStatementKey(plan, variant, sources)
  const known = statements.get(key)
  if (known !== undefined) return known
  const { tenant, readable } = requireFirstSource(sources)
  const statement = template.compile(variant, {
    schema: tenant.schema,
    primaryColumn: findPrimaryColumn(readable),
    resolve: makeTableResolver(sources),
    position: findPositionRow(sources),
    sort: findViewSort(readable),
  })
  const planned = { key, statement, isTimed: needsClock(statement.values) }
  statements.set(key, planned)
  return planned
}

/** The key names the tables of data sets, since a data set's name means another table for another caller. */
function makeStatementKey(
  { template, number }: QueryPlan,
  { given, isSmall, sort = '' }: Variant,
  sources: readonly AuthorizedSource[],
): string {
  const isGiven = template.parameters.map(({ name }) => (given.has(name) ? '1' : '0')).join('')
  const dataSets = sources.flatMap((source) =>
    [...source.dataSets.values()].map(({ schema, table }) => `${schema}.${table}`),
  )
  return JSON.stringify([number, isGiven, isSmall, sort, ...dataSets])
}
