import { limits } from '@tollbase/contract/limits'
import type { QueryParameter } from '@tollbase/contract/queries'
import { present } from '../../base/assert.ts'
import { invalid } from '../../base/fault.ts'
import { type AggregateRequest, isAggregate, parseAggregate } from '../aggregate-request.ts'
import { compileQuery } from '../compile/compile-query.ts'
import { compileList } from '../compile-list.ts'
import { all, type Condition } from '../condition.ts'
import { parseJoinedFind } from '../find.ts'
import type { Resolve, SourceUse } from '../join.ts'
import { type ListQuery, parsePage, type Sort, sourcesOfList } from '../list-query.ts'
import type { PositionRow } from '../position.ts'
import { parseSelect } from '../select.ts'
import { queryOfSource } from '../sql/parse-sql.ts'
import { readSource, type SourceText } from '../sql/source-text.ts'
import type { CompiledStatement } from '../sql-text.ts'
import {
  type Expression,
  outputOf,
  type Query,
  relationsOf,
  type ValueType,
} from '../tree/query.ts'
import { isRowQuery, sourcesOfQuery } from '../tree/query-sources.ts'
import { findOfBase, type SentBase, selectOfBase, sortOfBase, takenFrom } from './base-query.ts'
import type { Declared, ItemType } from './declared-parameter.ts'
import { both, withGroupsOf } from './group-size.ts'
import { conditionOf } from './parameter-use.ts'
import { readDeclarations, refOf } from './read-declarations.ts'

/** What a stored query says; the same whenever it is read. */
export type TemplateText = {
  readonly sql?: string
  /** A collection of the application, or `app::collection`. */
  readonly source_collection?: string
  readonly base_query?: SentBase
  readonly parameters: readonly QueryParameter[]
  readonly minGroupSize: number | undefined
}

/** Which statement a run needs: the conditions that are left out, and the order, are part of its text. */
export type Variant = {
  /** Names of the parameters that have a value. */
  readonly given: ReadonlySet<string>
  /** As the parameter for it says, if there is one. */
  readonly sort: string | undefined
  /** At most 100 rows are asked for. */
  readonly isSmall: boolean
}

export type CompilePlace = {
  /** Of the application whose position the answer states. */
  readonly schema: string
  /** Gives the tables, and of the first source the field that is its primary key. */
  readonly resolve: Resolve
  readonly primaryColumn: string
  /** Of the views among the sources. */
  readonly position: PositionRow | undefined
  /** Of the first source, where that is a view: the order of its rows. */
  readonly sort: Sort | undefined
}

/** A stored query, read and checked: all that its text decides. */
export type Template = {
  readonly parameters: readonly Declared[]
  /** With every condition in place. */
  readonly uses: readonly SourceUse[]
  /** Names of the columns; undefined where records are given whole. */
  readonly columns: readonly string[] | undefined
  /** It joins, groups or combines, so it may take long. */
  readonly isHeavy: boolean
  /** Rows of its source are given one by one. */
  readonly isRows: boolean
  /** Rows that are given if a caller does not say; undefined: all. */
  readonly limitDefault: number | undefined
  /** No run gives more rows than this, which begin behind `offset`, whatever a caller says. */
  readonly limitMost: number | undefined
  readonly offset: number
  /** The parameter by which the text itself limits its rows. */
  readonly limitBy: string | undefined
  readonly compile: (variant: Variant, place: CompilePlace) => CompiledStatement
}

/** Rows up to which a statement is made for few of them (compile-list.ts). */
export const smallRowsMax = 100

/** The template of a stored query, or a 400 that names the place. `typesOf`: what collections declare of their fields. */
export async function readTemplate(
  text: TemplateText,
  options: {
    readonly home: string
    readonly typesOf: (model: string) => ReadonlyMap<string, ValueType> | undefined
  },
): Promise<Template> {
  const { sql, source_collection: source, base_query: base } = text
  if ((sql === undefined) === (source === undefined))
    throw invalid('', 'must have either sql or source_collection')
  if (sql !== undefined) {
    if (base !== undefined) throw invalid('/base_query', 'has no place beside sql')
    return ofSql(await readSource(sql), text, options)
  }
  const model = source?.includes('::') ? source : `${options.home}::${source}`
  return ofBase(model, text, options.typesOf)
}

function ofSql(
  source: SourceText,
  text: TemplateText,
  { typesOf }: { readonly typesOf: (model: string) => ReadonlyMap<string, ValueType> | undefined },
): Template {
  const parameters = readDeclarations(text.parameters, { form: 'sql', typeOf: () => undefined })
  const declared = parameters.map(refOf)
  const read = queryOfSource(source, { now: 'run', declared, typesOf })
  const query = withGroupsOf(read, text.minGroupSize)
  return {
    ...ofQuery(query),
    parameters,
    limitDefault: undefined,
    limitMost: query.limit,
    offset: 0,
  }
}

/** What a tree decides. Its own limit and offset are part of it. */
function ofQuery(
  query: Query,
): Pick<Template, 'uses' | 'columns' | 'isHeavy' | 'isRows' | 'limitBy' | 'compile'> {
  const isRows = isRowQuery(query)
  const { columns, records } = outputOf(query)
  return {
    uses: sourcesOfQuery(query),
    columns: records.length > 0 ? undefined : columns.map(({ name }) => name),
    isHeavy: !isRows,
    isRows: isRows,
    limitBy: query.limitBy?.name,
    compile: (_variant, { schema, resolve, position }) =>
      compileQuery(query, { schema, resolve, position, caps: capsOfRun, ofRun: true }),
  }
}

/** The bytes are an argument of each run. */
const capsOfRun = { rows: limits.rowsMax, bytes: limits.resultBytesMax }

function ofBase(
  model: string,
  text: TemplateText,
  typesOf: (model: string) => ReadonlyMap<string, ValueType> | undefined,
): Template {
  const base = text.base_query ?? {}
  const types = typesOf(model)
  const { find, sent } = withDefaults(findOfBase(base), text.parameters)
  const parameters = readDeclarations(sent, {
    form: 'base',
    typeOf: (field) => itemTypes[types?.get(field) ?? 'json'],
  })
  const select = selectOfBase(base.select)
  const { group_by, aggregate, distinct } = base
  const asked: Asked = {
    model,
    parameters,
    request: { find, select, group_by, aggregate, distinct },
    sort: base.sort,
    window: windowOf(base, parameters),
  }
  if (isAggregate(asked.request)) return ofGroups(asked, text.minGroupSize)
  if (text.minGroupSize !== undefined) throw invalid('/min_group_size', 'is of a query that groups')
  return ofList(asked)
}

/** A base query with its parameters beside it. */
type Asked = {
  readonly model: string
  readonly parameters: readonly Declared[]
  readonly request: AggregateRequest
  readonly sort: unknown
  readonly window: Pick<Template, 'limitDefault' | 'limitMost' | 'offset'>
}

function ofGroups(asked: Asked, minGroupSize: number | undefined): Template {
  const { model, parameters, request, window } = asked
  const queryFor = (variant: Variant) => {
    const grouped = parseAggregate({ ...request, ...sortFor(variant, asked) }, model)
    return withGroupsOf(withCondition(grouped, conditionFor(variant, parameters)), minGroupSize)
  }
  for (const sort of sortsOf(parameters)) queryFor({ ...everything(parameters), sort })
  return {
    ...ofQuery(queryFor(everything(parameters))),
    ...window,
    parameters,
    compile: (variant, place) => ofQuery(queryFor(variant)).compile(variant, place),
  }
}

function ofList(asked: Asked): Template {
  const { model, parameters, request, window } = asked
  const { where, joins } = parseJoinedFind(request.find, '/base_query/find')
  const select = parseSelect(request.select, '/base_query/select')
  const listFor = (variant: Variant): ListQuery => ({
    where: all([where, conditionFor(variant, parameters)]),
    joins,
    select,
    sort: parsePage(sortFor(variant, asked)).sort,
    limit: variant.isSmall ? smallRowsMax : undefined,
    offset: 0,
    history: false,
  })
  for (const sort of sortsOf(parameters)) listFor({ ...everything(parameters), sort })
  const list = listFor(everything(parameters))
  return {
    ...window,
    parameters,
    uses: withSorts(sourcesOfList(list, model), sortsOf(parameters)),
    columns: columnsOf(list),
    isHeavy: joins.length > 0,
    isRows: true,
    limitBy: undefined,
    compile: (variant, place) => {
      const { table, dataSets } = present(place.resolve(model), 'the source')
      const asVariant = listFor(variant)
      const query = { ...asVariant, sort: asVariant.sort ?? place.sort }
      return compileList(query, {
        ...place,
        table,
        caps: capsOfRun,
        ofRun: true,
        total: false,
        dataSets,
      })
    },
  }
}

/** The variant with every condition in it. */
function everything(parameters: readonly Declared[]): Variant {
  return { given: new Set(parameters.map(({ name }) => name)), sort: undefined, isSmall: false }
}

function conditionFor({ given }: Variant, parameters: readonly Declared[]): Condition {
  return all(
    parameters.flatMap((one) =>
      one.use.kind === 'condition' && given.has(one.name) ? [conditionOf(one.use, refOf(one))] : [],
    ),
  )
}

function sortFor({ sort }: Variant, asked: Asked) {
  return sortOfBase(sort ?? asked.sort)
}

/** What a collection declares of a field, as the type of a parameter. */
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

/** Where a parameter has the place of a value in the find, that value is its default. */
function withDefaults(
  find: unknown,
  parameters: readonly QueryParameter[],
): { readonly find: unknown; readonly sent: readonly QueryParameter[] } {
  let rest = find
  const sent = parameters.map((one) => {
    const taken = takenFrom(rest, one.field_path)
    rest = taken.find
    const isDefault = taken.value !== undefined && one.default === undefined
    return isDefault ? { ...one, default: taken.value } : one
  })
  return { find: rest, sent }
}

function sortsOf(parameters: readonly Declared[]): readonly string[] {
  const sort = parameters.find(({ use }) => use.kind === 'sort')
  return (sort?.values ?? []).map(String)
}

/** A caller may sort by any field of the parameter for it. */
function withSorts(uses: readonly SourceUse[], sorts: readonly string[]): readonly SourceUse[] {
  const fields = sorts.map((sort) => sort.replace(/^-/, ''))
  return uses.map((use, at) =>
    at > 0
      ? use
      : { ...use, used: { ...use.used, sort: [...new Set([...use.used.sort, ...fields])] } },
  )
}

/** Without a parameter for it the limit of a base query is a bound; with one it is what is taken if nothing is said. */
function windowOf(
  base: SentBase,
  parameters: readonly Declared[],
): Pick<Template, 'limitDefault' | 'limitMost' | 'offset'> {
  const own = base.limit ?? undefined
  const offset = base.offset ?? 0
  const declared = parameters.find(({ use }) => use.kind === 'limit')
  if (declared === undefined) return { limitDefault: own, limitMost: own, offset }
  // What every answer is bounded by says nothing of what is wanted.
  const most = declared.max === limits.rowsMax ? undefined : declared.max
  const bounds = [own, most].flatMap((bound) => bound ?? [])
  const limitDefault = bounds.length === 0 ? undefined : Math.min(...bounds)
  return { limitDefault, limitMost: undefined, offset }
}

function withCondition(query: Query, condition: Condition): Query {
  if (query.kind !== 'select' || condition.kind === 'always') return query
  const [root] = relationsOf(query.from)
  if (root?.kind !== 'collection') return query
  const test: Expression = {
    kind: 'condition',
    type: 'boolean',
    relation: root.id,
    model: root.model,
    condition,
    parent: undefined,
  }
  return Object.freeze({ ...query, where: both(query.where, test) })
}

function columnsOf({ select, joins }: ListQuery): readonly string[] | undefined {
  if (select === undefined || select.mode === 'drop') return undefined
  return [...select.fields.keys(), ...joins.map(({ alias }) => alias)]
}
