import { assert } from '../base/assert.ts'
import { compileCondition } from './compile-condition.ts'
import { compileJoins, type JoinedPart } from './compile-joins.ts'
import { compileNearest, type NearestParts, type VectorSearch } from './compile-nearest.ts'
import { compileBody, printWithMembers } from './compile-selection.ts'
import {
  type Condition,
  combineAll,
  type FieldPath,
  type ParameterRef,
  type Scalar,
} from './condition.ts'
import { type Continuation, listRemainingParts } from './continuation.ts'
import type { DataSets } from './data-set.ts'
import type { FieldColumns } from './field-column.ts'
import { printKeyExpression, printTieExpression, printValueExpression } from './index-key.ts'
import type { Resolve } from './join.ts'
import type { ListQuery, Sort } from './list-query.ts'
import { makeJsonValue, makePlainValue, ownParameters } from './parameter.ts'
import { type PositionRow, printPosition } from './position.ts'
import { type CompiledStatement, makeParameters, type Parameters, quoteName } from './sql-text.ts'

export type CompileListOptions = {
  readonly schema: string
  readonly table: string
  /** The most rows, and bytes of their joined texts, that one answer may have. */
  readonly caps: { readonly rows: number; readonly bytes: number }
  /** Counts all matches. */
  readonly total: boolean
  /** The field whose text (for a safe integer: its digits) is the column `key`, by which it is looked up too. */
  readonly primaryColumn?: string | undefined
  /** The data sets that conditions name. */
  readonly dataSets?: DataSets | undefined
  /** The columns of fields that conditions may test; see `Source`. */
  readonly filterColumns?: FieldColumns | undefined
  /** The collections that joins name; needed where there are any. */
  readonly resolve?: Resolve
  /** Takes limit, offset and bytes as arguments of each run (`ownParameters`); the query's limit bounds them. */
  readonly limitsAtRun?: boolean
  /** Continues after an earlier page; then there is no total, and joins are only of collections of the same chain. */
  readonly from?: Continuation | undefined
  /** Rows that stand in for the table's: the live ones, or every version where the query asks for those. */
  readonly rows?: GivenRows | undefined
  /** The positions of the views among the sources, which may differ from their application's position. */
  readonly position?: PositionRow | undefined
  /** The ways in which this server can look for what is nearest; undefined: only the exact scan. */
  readonly vectorSearch?: VectorSearch | undefined
}

/**
 * Rows that are settings of the transaction, in parts, as one value with all of them would be too long: a part has its
 * leaves as the text of an array, and its records' texts joined by the separator.
 */
export type GivenRows = {
  readonly parts: number
  /** The names of these settings, without the number of the part. */
  readonly leaves: string
  readonly bodies: string
  readonly separator: string
}

/** The one row that a compiled list gives. */
export type ListRow = {
  /** The position of the application's chain at which the answer was read. */
  readonly height: bigint
  readonly sequence: number
  /** The number of the chain's leaves up to that position. */
  readonly size: bigint
  /** The leaf of the page's last row; null if it has no row or the query no limit. */
  readonly last: bigint | null
  /** JSON texts of the page's records, joined by commas; null if a cap was passed. */
  readonly records: string | null
  /** The number of rows of the page; with `over`, of rows read. */
  readonly count: number
  /** Matches before limit and offset; null if not asked for. */
  readonly total: bigint | null
  /** The bytes of `records`, or the bytes that it would have. */
  readonly bytes: bigint
  readonly over: boolean
  /** True if it was the joins that fetched too many records or bytes; present only with joins. */
  readonly fan_out?: boolean
  /** True if an index chose the nearest; not present if none was asked. */
  readonly approximate?: boolean
  /**
   * For a view: the number of blocks that it is behind its application, and the time of its last refresh
   * (milliseconds since 1970).
   */
  readonly lag?: bigint
  readonly refreshed_at?: bigint
}

/** The number of rows up to which texts are joined without a running sum: their sizes cannot add up to a danger. */
const plainRowsMax = 100

/**
 * Compiles one statement, so one snapshot, that reads a page of a collection and the position at which it was read.
 * Its text depends on the shape of the query (fields, operators, types of operands, options used), not on values.
 * Rows are ordered by the sort field, then by leaf, so pages never overlap.
 */
export function compileList(query: ListQuery, options: CompileListOptions): CompiledStatement {
  assert(options.from === undefined || !options.total, 'what is left of a list has no total')
  const values = makeParameters()
  const matches = compileMatches(query, options, values)
  const rowsMax = options.caps.rows + 1
  const isOfRun = options.limitsAtRun === true
  const rows = values.add(
    isOfRun ? makePlainValue(ownParameters.limit) : Math.min(query.limit ?? rowsMax, rowsMax),
    'int8',
  )
  const offset = isOfRun
    ? values.add(makePlainValue(ownParameters.offset), 'int8')
    : query.offset === 0
      ? undefined
      : values.add(query.offset, 'int8')
  const near = findNearest(query, options, { matches, rows, offset, values })
  const limited = near?.rows ?? limitedRows(query, { matches, rows, offset })
  const joined = compileJoins(query, {
    values,
    caps: options.caps,
    resolve: options.resolve,
    size: options.from?.size,
  })
  const isPlain = query.limit !== undefined && query.limit <= plainRowsMax
  const caps = {
    rows: values.add(options.caps.rows, 'int8'),
    bytes: values.add(isOfRun ? makePlainValue(ownParameters.bytes) : options.caps.bytes, 'int8'),
  }
  const from = joined === undefined ? `(${limited})` : joined.page
  const page = isPlain
    ? plainPage(from, { query, joined })
    : boundedPage(from, { query, joined, bytes: caps.bytes })
  const last = query.limit === undefined || isOfRun ? 'NULL::int8' : 'page.leaves[page.count]'
  const over = `(page.count > ${caps.rows} OR page.bytes > ${caps.bytes}${joined === undefined ? '' : ` OR ${joined.isOver}`})`
  const position = printPosition(options.schema, options.position)
  const approximate =
    near?.isApproximate === undefined ? '' : `, ${near.isApproximate} AS approximate`
  const text = `${near?.with ?? ''}${joined === undefined ? '' : joined.with(limited)}SELECT watermark.height, watermark.sequence, watermark.leaf AS size, ${last} AS last,
 CASE WHEN ${over} THEN NULL ELSE coalesce(page.records, '') END AS records,
 page.count, ${options.total ? totalCount(matches, { rows, offset }) : 'NULL::int8'} AS total,
 page.bytes, ${over} AS over${joined === undefined ? '' : `, ${joined.isOver} AS fan_out`}${approximate}${position.columns}
FROM ${position.from}
CROSS JOIN (${page}) AS page
WHERE ${position.where}`
  return { text, values: values.values }
}

/** Compiles FROM and WHERE of the matching rows, in one part or several that share no row. */
function compileMatches(
  query: ListQuery,
  options: CompileListOptions,
  values: Parameters,
): readonly string[] {
  const live = query.history ? [] : ['record.superseded_by IS NULL', 'NOT record.deleted']
  const conjuncts = query.where.kind === 'all' ? query.where.conditions : [query.where]
  const primary = conjuncts.find((each) => isOfKey(each, options.primaryColumn))
  const rest = combineAll(conjuncts.filter((each) => each !== primary))
  const conditions = [
    ...(primary?.kind === 'one-of' ? [keyCondition(primary, values)] : []),
    ...(primary?.kind === 'parameter' ? [keyParameter(primary, values)] : []),
    ...(rest.kind === 'always'
      ? []
      : [
          compileCondition(rest, {
            record: 'record.data',
            parameters: values,
            dataSets: options.dataSets,
            columns: findColumns(options),
          }),
        ]),
  ]
  const table =
    options.rows === undefined
      ? quoteName(options.schema, options.table)
      : compileRows(options.rows, values)
  const parts =
    options.from === undefined
      ? [{ from: `${table} AS record`, where: live }]
      : listRemainingParts(query, options.from, { table, values })
  return parts.map(({ from, where }) => {
    const tests = [...where, ...conditions]
    return `FROM ${from}${tests.length === 0 ? '' : ` WHERE ${tests.join('\n  AND ')}`}`
  })
}

/** Finds the columns that conditions may test; given rows have none. */
function findColumns({ filterColumns, rows }: CompileListOptions) {
  return filterColumns === undefined || rows !== undefined
    ? undefined
    : { alias: 'record', fields: filterColumns }
}

/** Compiles given rows to a source with the columns of a table that a list uses; OFFSET keeps each text parsed once. */
function compileRows({ parts, leaves, bodies, separator }: GivenRows, values: Parameters): string {
  const count = values.add(parts, 'int8')
  const read = (name: string) => `current_setting(${values.add(name, 'text')} || part.number)`
  return `(SELECT given.leaf, NULL::int8 AS superseded_by, false AS deleted, given.body::jsonb AS data, given.body
 FROM generate_series(1, ${count}) AS part (number)
 CROSS JOIN LATERAL ROWS FROM (unnest(${read(leaves)}::int8[]), string_to_table(${read(bodies)}, ${values.add(separator, 'text')})) AS given (leaf, body) OFFSET 0)`
}

/**
 * Returns true if a condition is an equality with the primary key, which the column `key` can answer. A number that
 * is not a safe integer has several spellings, and the column holds only one of them.
 */
function isOfKey(condition: Condition, primaryColumn: string | undefined): boolean {
  if (!('path' in condition) || condition.path.join('.') !== primaryColumn) return false
  if (condition.kind === 'parameter')
    return condition.test === '=' && condition.parameter.type === 'text'
  if (condition.kind !== 'one-of') return false
  return condition.values.every((value) => typeof value === 'string' || Number.isSafeInteger(value))
}

/**
 * The field decides (the keys of 5 and "5" are the same); its value, not its index key, as the record is found
 * already.
 */
function keyCondition(
  condition: { readonly path: FieldPath; readonly values: readonly Scalar[] },
  values: Parameters,
): string {
  const field = `(${printValueExpression(condition.path, 'record.data')})`
  const [only] = condition.values
  if (only !== undefined && condition.values.length === 1) {
    const key = values.add(String(only), 'text')
    return `record.key = ${key} AND ${field} = ${values.add(JSON.stringify(only), 'jsonb')}`
  }
  const keys = values.add(condition.values.map(String), 'text[]')
  const exact = values.add(
    condition.values.map((value) => JSON.stringify(value)),
    'jsonb[]',
  )
  return `record.key = ANY (${keys}) AND ${field} = ANY (${exact})`
}

function keyParameter(
  { path, parameter }: { readonly path: FieldPath; readonly parameter: ParameterRef },
  values: Parameters,
): string {
  const wanted = values.add(makePlainValue(parameter.name), 'text')
  return `record.key = ${wanted} AND (${printValueExpression(path, 'record.data')}) = ${values.add(makeJsonValue(parameter), 'jsonb')}`
}

type Window = { readonly rows: string; readonly offset: string | undefined }

function limitedRows(
  query: ListQuery,
  { matches, rows, offset }: Window & { readonly matches: readonly string[] },
): string {
  const keys = listTerms(query.sort)
    .map(
      ({ path }, at) =>
        `, ${printKeyExpression(path, 'record.data')} AS sort_key${at}, ${printTieExpression(path, 'record.data')} AS sort_tie${at}`,
    )
    .join('')
  const parts = matches.map(
    (
      part,
    ) => `SELECT record.leaf, record.body${query.joins.length === 0 ? '' : ', record.data'}${keys}
 ${part}
 ORDER BY ${order(query)} LIMIT ${rows}${offset === undefined ? '' : ` OFFSET ${offset}`}`,
  )
  if (parts.length === 1) return parts.join()
  assert(offset === undefined, 'what has several parts begins at its beginning')
  return `SELECT part.* FROM (${parts.map((part) => `(${part})`).join('\n UNION ALL\n ')}) AS part
 ORDER BY ${order(query, 'part')} LIMIT ${rows}`
}

/** Compiles the page of what is nearest; given rows are few, and no index has them. */
function findNearest(
  { nearest, limit, offset }: ListQuery,
  options: CompileListOptions,
  window: Window & { readonly matches: readonly string[]; readonly values: Parameters },
): NearestParts | undefined {
  if (nearest === undefined) return undefined
  const isKnown = limit !== undefined && options.limitsAtRun !== true
  return compileNearest(nearest, {
    ...window,
    matches: window.matches.join(),
    table: quoteName(options.schema, options.table),
    end: isKnown ? limit + offset : undefined,
    search: options.rows === undefined ? options.vectorSearch : undefined,
  })
}

/** Orders strings, numbers, false, true, objects and arrays, then null and missing; descending is the reverse. */
function order({ sort, nearest }: ListQuery, row?: string): string {
  const column = (name: string) => (row === undefined ? name : `${row}.${name}`)
  if (nearest !== undefined) return `${column('distance')}, ${column('leaf')}`
  if (sort === undefined) return row === undefined ? 'record.leaf' : column('leaf')
  const terms = listTerms(sort).map(({ descending, nulls }, at) => {
    const direction = descending ? ' DESC' : ''
    const ending = nulls === undefined ? direction : `${direction} NULLS ${nulls.toUpperCase()}`
    return `${column(`sort_key${at}`)}${ending}, ${column(`sort_tie${at}`)}${direction}, `
  })
  return `${terms.join('')}${column('leaf')}`
}

function listTerms(sort: Sort | undefined): readonly Sort[] {
  return sort === undefined ? [] : [sort, ...(sort.next ?? [])]
}

type Joined = { readonly query: ListQuery; readonly joined: JoinedPart | undefined }

function renderedBody({ query, joined }: Joined, row: string): string {
  if (joined !== undefined) return joined.render(row)
  const own = compileBody(query.select, `${row}.body`)
  const as = query.nearest?.as
  if (as === undefined) return own
  const members = [{ name: as, json: `${row}.distance::text` }]
  return printWithMembers(own, { data: `${row}.data`, members })
}

function joinedTo(joined: JoinedPart | undefined, row: string): string {
  return joined === undefined ? '' : joined.from(row)
}

/** Keeps a sub-query apart, so that the texts that it makes are made once for all their uses around it. */
const once = ' LIMIT ALL'

function plainPage(limited: string, { query, joined }: Joined): string {
  return `SELECT count(*)::int4 AS count, ${joinedBytes('sum(octet_length(item.json))')} AS bytes,
 array_agg(item.leaf ORDER BY ${order(query, 'item')}) AS leaves,
 string_agg(item.json, ',' ORDER BY ${order(query, 'item')}) AS records
FROM (SELECT page_row.*, ${renderedBody({ query, joined }, 'page_row')} AS json
 FROM ${limited} AS page_row${joinedTo(joined, 'page_row')}${once}) AS item`
}

/** Joins only the texts that fit, by a running sum, so that too large a page is noticed before it is built. */
function boundedPage(
  limited: string,
  { query, joined, bytes }: Joined & { readonly bytes: string },
): string {
  const leaves =
    query.limit === undefined ? '' : ' array_agg(item.leaf ORDER BY item.position) AS leaves,\n'
  return `SELECT count(*)::int4 AS count, coalesce(max(item.running), 0) AS bytes,
${leaves} string_agg(item.json, ',' ORDER BY item.position) FILTER (WHERE item.running <= ${bytes}) AS records
FROM (SELECT page_row.leaf, page_row.json, row_number() OVER so_far AS position,
  sum(octet_length(page_row.json) + 1) OVER so_far - 1 AS running
 FROM (SELECT limited.*, ${renderedBody({ query, joined }, 'limited')} AS json
  FROM ${limited} AS limited${joinedTo(joined, 'limited')}${once}) AS page_row
 WINDOW so_far AS (ORDER BY ${order(query, 'page_row')} ROWS UNBOUNDED PRECEDING)) AS item`
}

/** Adds the commas between the texts to their bytes. */
function joinedBytes(sum: string): string {
  return `(coalesce(${sum}, 0) + greatest(count(*) - 1, 0))::int8`
}

/** Takes the total from a page that ends before its limit; only otherwise are all matches counted. */
function totalCount(matches: readonly string[], { rows, offset = '0' }: Window): string {
  return `CASE WHEN page.count < ${rows} AND (page.count > 0 OR ${offset} = 0) THEN ${offset} + page.count
  ELSE (SELECT count(*) ${matches.join()}) END`
}
