import { limits } from '@tollbase/contract/limits'
import { invalid } from '../../base/fault.ts'
import type { StoredQuery } from '../../model/definitions.ts'
import {
  bindValues,
  ownParameters,
  type ParameterValue,
  readsClock,
} from '../../query/parameter.ts'
import { type Given, readArguments, type SentTexts } from '../../query/predefined/arguments.ts'
import { smallRowsMax, type Template, type Variant } from '../../query/predefined/template.ts'
import type { CompiledStatement } from '../../query/sql-text.ts'
import { mayRead } from '../access/access.ts'
import type { Tenant } from '../applications/tenancy.ts'
import type { Call } from '../call.ts'
import type { PageSize, Question } from '../reading/answer-query.ts'
import { derivationDenied, type JudgedSource, tablesOf } from '../reading/authorize-sources.ts'
import { type Charge, chargesOf } from '../reading/charges.ts'
import { positionOf, sortOfView } from '../reading/view-sources.ts'
import { type Format, writerOf } from './answer-format.ts'
import { firstSource, type JudgedUses, judgeUses } from './authorize-query.ts'
import type { PlannedStatement, QueryPlan } from './query-plans.ts'
import { queryPriceOf } from './query-price.ts'
import { recallAnswer } from './read-through-cache.ts'
import type { FoundQuery } from './stored-queries.ts'

/** What the endpoint takes beside the parameters of the query. */
const others: ReadonlySet<string> = new Set([
  'limit',
  'offset',
  'version',
  'format',
  'max_kb',
  'api_key',
])

/** One run of a query, as it is asked for. */
export type Run = {
  /** The values of its parameters. */
  readonly given: Given
  /** Rows that are given at most; undefined: all. */
  readonly limit: number | undefined
  readonly offset: number
}

/** What a request states, or a 400 that names the parameter. */
export function readRun(template: Template, sent: SentTexts): Run {
  const { parameters, limitMost } = template
  const texts = withPageNames(template, sent)
  const given = readArguments(parameters, texts, others)
  const named = (kind: 'limit' | 'offset') => parameters.find(({ use }) => use.kind === kind)?.name
  const numberOf = (name: string | undefined): number | undefined => {
    const value = name === undefined ? undefined : given.get(name)
    return typeof value === 'number' ? value : undefined
  }
  const isText = (name: string) => parameters.some((one) => one.name === name)
  const asked = numberOf(named('limit')) ?? countOf(texts, 'limit', isText)
  const skipped = numberOf(named('offset')) ?? countOf(texts, 'offset', isText) ?? 0
  const own = numberOf(template.limitBy)
  // Past a bound of the text itself there is nothing, however far somebody skips.
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
function withPageNames({ parameters }: Template, sent: SentTexts): SentTexts {
  let texts = sent
  for (const kind of ['limit', 'offset'] as const) {
    const name = parameters.find(({ use }) => use.kind === kind)?.name
    const text = texts[kind]
    if (name === undefined || name === kind || text === undefined) continue
    if (texts[name] !== undefined) throw invalid(`/query/${kind}`, `is another name of ${name}`)
    const rest = Object.entries(texts).filter(([each]) => each !== kind)
    texts = { ...Object.fromEntries(rest), [name]: text }
  }
  return texts
}

/** A count that the contract's schema has judged; a parameter of the text may have its name. */
function countOf(
  texts: SentTexts,
  name: 'limit' | 'offset',
  isText: (name: string) => boolean,
): number | undefined {
  const text = texts[name]
  return typeof text === 'string' && !isText(name) ? Number(text) : undefined
}

export type Asked = {
  readonly tenant: Tenant
  readonly found: FoundQuery
  readonly plan: QueryPlan
  readonly run: Run
  readonly format: Format
  readonly maxKb: number | undefined
}

/** The question that a run is, judged and priced for the caller. */
export async function questionOf(call: Call, asked: Asked): Promise<Question> {
  const { tenant, found, plan, run, format, maxKb } = asked
  const { template } = plan
  const { stored } = found
  const judged = await judgeUses(call, tenant, template.uses)
  const write = writerOf(format, { query: stored.name, version: stored.version }, template.columns)
  const { sources } = judged
  const { world, predefined } = call.service
  const now = world.now()
  return {
    operation: 'query',
    sources,
    charges: chargesFor(call, asked, judged),
    definition: meaningOfQuery(stored),
    limit: run.limit,
    offset: 0,
    maxKb,
    limitMissing: { pointer: '/query/limit', problem: 'is needed' },
    isHeavy: template.isHeavy,
    // Only JSON can say that it was cut.
    isRows: template.isRows,
    compile: (size) => statementOf(plan, { run, size, sources, now, bind: bindValues }),
    reply: (page) => write.text(page, now),
    contentType: write.contentType,
    recall: (make) =>
      recallAnswer(predefined.answers, { key: keyOfAnswer(asked, sources), sources }, make),
  }
}

/** The key of a run's answer, which says all that decides it but positions; undefined where the time does too. */
function keyOfAnswer(
  { plan, run, format }: Asked,
  sources: readonly JudgedSource[],
): string | undefined {
  const variant = variantOf(plan.template, run, rowsOf(run.limit))
  const { key, isTimed } = compiled(plan, variant, sources)
  return isTimed
    ? undefined
    : `${key} ${format} ${JSON.stringify([run.limit, run.offset, [...run.given]])}`
}

/** What a name and a version stand for; what it reads is judged beside it. */
function meaningOfQuery(stored: StoredQuery): readonly unknown[] {
  const { name, version, sql, source_collection, base_query, parameters, min_group_size } = stored
  return [name, version, sql, source_collection, base_query, parameters, min_group_size]
}

/** The query's own price, unless the caller may read its application; and what others' sources charge for themselves. */
function chargesFor(call: Call, { tenant, found, plan }: Asked, judged: JudgedUses): Charge[] {
  const { app_id: app } = tenant.application
  const foreign = chargesOf(judged.foreign)
  if (mayRead(call.caller, tenant.application)) return [...foreign]
  const { name } = found.stored
  const price = queryPriceOf(tenant.data.catalog, found.stored, plan.own)?.price
  // Its owner gave it no price, and a source has got one that does not allow derivation.
  if (price === undefined) throw derivationDenied(`${app}::${name}`)
  return [
    { kind: 'rows', tenant, name: `${app}::${name}`, emptyAnswerFree: false, price },
    ...foreign,
  ]
}

type Wanted = {
  readonly run: Run
  readonly size: PageSize
  readonly sources: readonly JudgedSource[]
  /** Milliseconds since 1970. */
  readonly now: number
  readonly bind: typeof bindValues
}

/** The statement of a run: its text is made once for all runs alike, and only values are new. */
export function statementOf(
  plan: QueryPlan,
  { run, size, sources, now, bind }: Wanted,
): CompiledStatement {
  const rows = rowsOf(size.limit)
  const { statement } = compiled(plan, variantOf(plan.template, run, rows), sources)
  const own: readonly (readonly [string, ParameterValue])[] = [
    [ownParameters.limit, rows],
    [ownParameters.offset, run.offset],
    [ownParameters.bytes, size.bytesMax],
    [ownParameters.now, new Date(now).toISOString().slice(0, -1)],
  ]
  const { text, values } = statement
  return { text, values: bind(values, new Map([...run.given, ...own])) }
}

/** One more than an answer may have tells that there are too many. */
function rowsOf(limit: number | undefined): number {
  return Math.min(limit ?? limits.rowsMax + 1, limits.rowsMax + 1)
}

function variantOf({ parameters }: Template, { given }: Run, rows: number): Variant {
  const sort = parameters.find(({ use }) => use.kind === 'sort')
  const value = sort && given.get(sort.name)
  return {
    given: new Set(given.keys()),
    sort: value === undefined ? undefined : String(value),
    isSmall: rows <= smallRowsMax,
  }
}

/** Of one query there are more kinds of runs than anybody asks for. */
const statementsMax = 64

function compiled(
  plan: QueryPlan,
  variant: Variant,
  sources: readonly JudgedSource[],
): PlannedStatement {
  const { template, statements } = plan
  const key = keyOf(plan, variant, sources)
  const known = statements.get(key)
  if (known !== undefined) return known
  const { tenant, collection } = firstSource(sources)
  const statement = template.compile(variant, {
    schema: tenant.schema,
    primaryColumn: collection.primary_column,
    resolve: tablesOf(sources),
    position: positionOf(sources),
    sort: sortOfView(tenant, collection),
  })
  const planned = { key, statement, isTimed: readsClock(statement.values) }
  if (statements.size >= statementsMax) statements.clear()
  statements.set(key, planned)
  return planned
}

/** What a name of a data set means is a matter of who asks. */
function keyOf(
  { template, number }: QueryPlan,
  { given, isSmall, sort = '' }: Variant,
  sources: readonly JudgedSource[],
): string {
  const isGiven = template.parameters.map(({ name }) => (given.has(name) ? '1' : '0')).join('')
  const dataSets = sources.flatMap((source) =>
    [...source.dataSets.values()].map(({ schema, table }) => `${schema}.${table}`),
  )
  return JSON.stringify([number, isGiven, isSmall, sort, ...dataSets])
}
