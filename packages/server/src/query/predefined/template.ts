import { limits } from '@tollbase/contract/limits'
import type { QueryParameter } from '@tollbase/contract/query-definition'
import { requirePresent } from '../../base/assert.ts'
import { makeInvalidFault } from '../../base/fault.ts'
import {
  type AggregateRequest,
  isAggregate,
  parseAggregate,
  sortGroups,
} from '../aggregate-request.ts'
import { compileQuery } from '../compile/compile-query.ts'
import { compileList } from '../compile-list.ts'
import { type Condition, combineAll } from '../condition.ts'
import { parseJoinedFind } from '../find.ts'
import type { Resolve, SourceUse } from '../join.ts'
import { collectListSources, type ListQuery, parsePage, type Sort } from '../list-query.ts'
import type { PositionRow } from '../position.ts'
import { parseSelect } from '../select.ts'
import { buildQuery, type SqlOptions } from '../sql/parse-sql.ts'
import { readSource, type SourceText } from '../sql/source-text.ts'
import type { CompiledStatement } from '../sql-text.ts'
import {
  type Expression,
  getOutput,
  listRelations,
  type Query,
  type ValueType,
} from '../tree/query.ts'
import { collectQuerySources, isRowQuery } from '../tree/query-sources.ts'
import {
  readBaseFind,
  readBaseSelect,
  readBaseSort,
  type SentBase,
  takeDefault,
} from './base-query.ts'
import type { DeclaredParameter, ItemType } from './declared-parameter.ts'
import { addCondition, requireGroupSize } from './group-size.ts'
import { buildCondition } from './parameter-use.ts'
import { makeParameterRef, readDeclarations } from './read-declarations.ts'

/** The contents of a stored query; the same whenever it is read. */
export type TemplateText = {
  readonly sql?: string
  /** A collection of the application, or `app::collection`. */
  readonly source_collection?: string
  readonly base_query?: SentBase
  readonly parameters: readonly QueryParameter[]
  readonly minGroupSize: number | undefined
}

/** The variant of the statement that a run needs: omitted conditions and the order are part of its text. */
export type Variant = {
  /** Names of the parameters that have a value. */
  readonly given: ReadonlySet<string>
  /** The order as its parameter says, if there is one. */
  readonly sort: string | undefined
  /** True if at most 100 rows are asked for. */
  readonly isSmall: boolean
}

export type CompilePlace = {
  /** The schema of the application whose position the answer states. */
  readonly schema: string
  /** Resolves the tables, and the first source's primary key field. */
  readonly resolve: Resolve
  readonly primaryColumn: string | undefined
  /** The positions of the views among the sources. */
  readonly position: PositionRow | undefined
  /** The order of the first source's rows, if that source is a view. */
  readonly sort: Sort | undefined
}

/** A stored query, read and checked: everything that its text decides. */
export type Template = {
  readonly parameters: readonly DeclaredParameter[]
  /** The uses of sources with every condition in place. */
  readonly uses: readonly SourceUse[]
  /** The names of the columns; undefined if records are given whole. */
  readonly columns: readonly string[] | undefined
  /** True if it groups or combines, so it may take long; a list, with joins or without, is tried first. */
  readonly isHeavy: boolean
  /** True if rows of its source are given one by one. */
  readonly isRows: boolean
  /** The number of rows if a caller does not say; undefined: all. */
  readonly limitDefault: number | undefined
  /** The most rows that any run gives, beginning behind `offset`, whatever a caller says. */
  readonly limitMost: number | undefined
  readonly offset: number
  /** The parameter by which the text itself limits its rows. */
  readonly limitBy: string | undefined
  readonly compile: (variant: Variant, place: CompilePlace) => CompiledStatement
}

/** The number of rows up to which a statement is compiled for few of them (compile-list.ts). */
export const smallRowsMax = 100

/**
 * Reads the template of a stored query, or throws a 400 that names the place. `typesOf`: the types that collections
 * declare for their fields.
 */
export async function readTemplate(
  text: TemplateText,
  options: KnownSources & { readonly home: string },
): Promise<Template> {
  const { sql, source_collection: source, base_query: base } = text
  if ((sql === undefined) === (source === undefined))
    throw makeInvalidFault('', 'must have either sql or source_collection')
  if (sql !== undefined) {
    if (base !== undefined) throw makeInvalidFault('/base_query', 'has no place beside sql')
    return ofSql(await readSource(sql), text, options)
  }
  const model = source?.includes('::') ? source : `${options.home}::${source}`
  return ofBase(model, text, options)
}

/** The declarations of collections that a statement's meaning depends on, as in SqlOptions. */
type KnownSources = Pick<
  SqlOptions,
  'sizesOf' | 'primaryOf' | 'lacks' | 'leavesOpen' | 'isStored' | 'isBounded'
> & {
  readonly typesOf: (model: string) => ReadonlyMap<string, ValueType> | undefined
}

function ofSql(
  source: SourceText,
  text: TemplateText,
  { typesOf, ...known }: KnownSources,
): Template {
  const parameters = readDeclarations(text.parameters, {
    form: 'sql',
    typeOf: () => undefined,
    isStored: known.isStored,
    isBounded: known.isBounded,
  })
  const declared = parameters.map(makeParameterRef)
  const read = buildQuery(source, { now: 'run', declared, typesOf, ...known })
  const query = requireGroupSize(read, text.minGroupSize)
  return {
    ...planQuery(query),
    parameters,
    limitDefault: undefined,
    limitMost: query.limit,
    offset: 0,
  }
}

/** Plans a query by its tree, which includes its own limit and offset. */
function planQuery(
  query: Query,
): Pick<Template, 'uses' | 'columns' | 'isHeavy' | 'isRows' | 'limitBy' | 'compile'> {
  const isRows = isRowQuery(query)
  const { columns, records } = getOutput(query)
  return {
    uses: collectQuerySources(query),
    columns: records.length > 0 ? undefined : columns.map(({ name }) => name),
    isHeavy: !isRows,
    isRows: isRows,
    limitBy: query.limitBy?.name,
    compile: (_variant, { schema, resolve, position }) =>
      compileQuery(query, { schema, resolve, position, caps: capsOfRun, limitsAtRun: true }),
  }
}

/** The bytes are an argument of each run. */
const capsOfRun = { rows: limits.rowsMax, bytes: limits.resultBytesMax }

function ofBase(
  model: string,
  text: TemplateText,
  { typesOf, isStored, isBounded }: KnownSources,
): Template {
  const base = text.base_query ?? {}
  const types = typesOf(model)
  const { find, sent } = withDefaults(readBaseFind(base), text.parameters)
  const parameters = readDeclarations(sent, {
    form: 'base',
    typeOf: (field) => itemTypes[types?.get(field) ?? 'json'],
    isStored,
    isBounded,
  })
  const select = readBaseSelect(base.select)
  const { group_by, aggregate, distinct } = base
  const asked: BaseRequest = {
    model,
    parameters,
    request: { find, select, group_by, aggregate, distinct },
    sort: base.sort,
    window: readLimits(base, parameters),
  }
  if (isAggregate(asked.request)) return ofGroups(asked, text.minGroupSize)
  if (text.minGroupSize !== undefined)
    throw makeInvalidFault('/min_group_size', 'is of a query that groups')
  return ofList(asked)
}

/** A base query with its parameters beside it. */
type BaseRequest = {
  readonly model: string
  readonly parameters: readonly DeclaredParameter[]
  readonly request: AggregateRequest
  readonly sort: unknown
  readonly window: Pick<Template, 'limitDefault' | 'limitMost' | 'offset'>
}

function ofGroups(asked: BaseRequest, minGroupSize: number | undefined): Template {
  const { model, parameters, request, window } = asked
  // The find may be long, and there may be many orders.
  const groups = parseAggregate(request, model)
  const queryFor = (variant: Variant) => {
    const sorted = sortGroups(groups, sortFor(variant, asked))
    return requireGroupSize(withCondition(sorted, conditionFor(variant, parameters)), minGroupSize)
  }
  for (const sort of listSorts(parameters)) queryFor({ ...everything(parameters), sort })
  return {
    ...planQuery(queryFor(everything(parameters))),
    ...window,
    parameters,
    compile: (variant, place) => planQuery(queryFor(variant)).compile(variant, place),
  }
}

function ofList(asked: BaseRequest): Template {
  const { model, parameters, request, window } = asked
  const { where, joins } = parseJoinedFind(request.find, '/base_query/find')
  const select = parseSelect(request.select, '/base_query/select')
  const listFor = (variant: Variant): ListQuery => ({
    where: combineAll([where, conditionFor(variant, parameters)]),
    joins,
    select,
    sort: parsePage(sortFor(variant, asked)).sort,
    limit: variant.isSmall ? smallRowsMax : undefined,
    offset: 0,
    history: false,
  })
  for (const sort of listSorts(parameters)) listFor({ ...everything(parameters), sort })
  const list = listFor(everything(parameters))
  return {
    ...window,
    parameters,
    uses: withSorts(collectListSources(list, model), listSorts(parameters)),
    columns: findColumns(list),
    isHeavy: false,
    isRows: true,
    limitBy: undefined,
    compile: (variant, place) => {
      const { table, dataSets, filterColumns } = requirePresent(place.resolve(model), 'the source')
      const asVariant = listFor(variant)
      const query = { ...asVariant, sort: asVariant.sort ?? place.sort }
      return compileList(query, {
        ...place,
        table,
        caps: capsOfRun,
        limitsAtRun: true,
        total: false,
        dataSets,
        filterColumns,
      })
    },
  }
}

/** The variant with every condition in it. */
function everything(parameters: readonly DeclaredParameter[]): Variant {
  return { given: new Set(parameters.map(({ name }) => name)), sort: undefined, isSmall: false }
}

function conditionFor({ given }: Variant, parameters: readonly DeclaredParameter[]): Condition {
  return combineAll(
    parameters.flatMap((one) =>
      one.use.kind === 'condition' && given.has(one.name)
        ? [buildCondition(one.use, makeParameterRef(one))]
        : [],
    ),
  )
}

function sortFor({ sort }: Variant, asked: BaseRequest) {
  return readBaseSort(sort ?? asked.sort)
}

/** The type of a parameter, by the type that a collection declares for the field. */
const itemTypes: Readonly<Record<ValueType, ItemType | undefined>> = {
  json: undefined,
  number: 'number',
  text: 'string',
  boolean: 'boolean',
  timestamp: 'date',
  date: 'date',
  interval: undefined,
  null: undefined,
}

/** Makes a value in the find the default of the parameter that replaces it. */
function withDefaults(
  find: unknown,
  parameters: readonly QueryParameter[],
): { readonly find: unknown; readonly sent: readonly QueryParameter[] } {
  let rest = find
  const sent = parameters.map((one) => {
    const taken = takeDefault(rest, one.field_path)
    rest = taken.find
    const isDefault = taken.value !== undefined && one.default === undefined
    return isDefault ? { ...one, default: taken.value } : one
  })
  return { find: rest, sent }
}

function listSorts(parameters: readonly DeclaredParameter[]): readonly string[] {
  const sort = parameters.find(({ use }) => use.kind === 'sort')
  return (sort?.values ?? []).map(String)
}

/** Adds the fields that a caller may sort by. */
function withSorts(uses: readonly SourceUse[], sorts: readonly string[]): readonly SourceUse[] {
  const fields = sorts.map((sort) => sort.replace(/^-/, ''))
  return uses.map((use, at) =>
    at > 0
      ? use
      : { ...use, used: { ...use.used, sort: [...new Set([...use.used.sort, ...fields])] } },
  )
}

/** Reads the limits of a base query. Without a parameter for it the limit is a bound; with one it is the default. */
function readLimits(
  base: SentBase,
  parameters: readonly DeclaredParameter[],
): Pick<Template, 'limitDefault' | 'limitMost' | 'offset'> {
  const own = base.limit ?? undefined
  const offset = base.offset ?? 0
  const declared = parameters.find(({ use }) => use.kind === 'limit')
  if (declared === undefined) return { limitDefault: own, limitMost: own, offset }
  // A maximum equal to the bound of every answer says nothing about the owner's wish.
  const most = declared.max === limits.rowsMax ? undefined : declared.max
  const bounds = [own, most].flatMap((bound) => bound ?? [])
  const limitDefault = bounds.length === 0 ? undefined : Math.min(...bounds)
  return { limitDefault, limitMost: undefined, offset }
}

function withCondition(query: Query, condition: Condition): Query {
  if (query.kind !== 'select' || condition.kind === 'always') return query
  const [root] = listRelations(query.from)
  if (root?.kind !== 'collection') return query
  const test: Expression = {
    kind: 'condition',
    type: 'boolean',
    relation: root.id,
    model: root.model,
    condition,
    parent: undefined,
  }
  return Object.freeze({ ...query, where: addCondition(query.where, test) })
}

function findColumns({ select, joins }: ListQuery): readonly string[] | undefined {
  if (select === undefined || select.mode === 'drop') return undefined
  return [...select.fields.keys(), ...joins.map(({ alias }) => alias)]
}
