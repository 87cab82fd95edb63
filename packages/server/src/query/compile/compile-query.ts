import { limits } from '@tollbase/contract/limits'
import type { Resolve } from '../join.ts'
import { makePlainValue, ownParameters } from '../parameter.ts'
import { type PositionRow, printPosition } from '../position.ts'
import {
  type CompiledStatement,
  makeSharedParameters,
  type Parameters,
  quoteText,
} from '../sql-text.ts'
import { limitSteps, makeTooComplex } from '../steps.ts'
import { getOutput, type Query } from '../tree/query.ts'
import { printJson } from './convert.ts'
import { makeQueryPrinter } from './print-query.ts'

export type CompileQueryOptions = {
  /** The schema of the application whose position the answer states (the first source's). */
  readonly schema: string
  readonly caps: { readonly rows: number; readonly bytes: number }
  readonly resolve: Resolve
  /** Reads every version of a record instead of the latest, in all collections. */
  readonly history?: boolean
  /**
   * Takes limit, offset and bytes of the whole as arguments of each run (`ownParameters`), within those of the
   * query.
   */
  readonly limitsAtRun?: boolean
  /** Counts the rows before limit and offset; only for queries made from a request's aggregates. */
  readonly total?: boolean
  /** The positions of the views among the sources. */
  readonly position?: PositionRow | undefined
}

/**
 * Compiles one statement, so one snapshot, that gives one `ListRow`: the rows as JSON texts joined by commas, their
 * count and bytes, and the position at which they were read. The members of a row stand in the order of the query's
 * columns.
 */
export function compileQuery(query: Query, options: CompileQueryOptions): CompiledStatement {
  return limitSteps(() => compile(query, options))
}

function compile(query: Query, options: CompileQueryOptions): CompiledStatement {
  const { resolve } = options
  const values = makeSharedParameters()
  const print = makeQueryPrinter({ resolve, history: options.history ?? false, top: query })
  const printer = {
    values,
    query: print,
    dataSets: (model: string) => resolve(model)?.dataSets,
    grouped: new Set<number>(),
    fieldColumns: new Map(),
    filterColumns: new Map(),
    work: { chars: 0 },
  }
  const rows = values.add(options.caps.rows, 'int8')
  const bytes = values.add(
    options.limitsAtRun === true ? makePlainValue(ownParameters.bytes) : options.caps.bytes,
    'int8',
  )
  // The counted query is computed once, for both the count and the page of it.
  const counted =
    options.total === true ? print({ ...query, limit: undefined, offset: 0 }, printer) : undefined
  const from = counted === undefined ? `(${print(query, printer)})` : 'counted'
  const limited = `SELECT page_row.* FROM ${from} AS page_row LIMIT ${printLimit(query, options, values)}`
  const position = printPosition(options.schema, options.position)
  const text = `${counted === undefined ? '' : `WITH counted AS MATERIALIZED (${counted})\n`}SELECT watermark.height, watermark.sequence,
 CASE WHEN page.count > ${rows} OR page.bytes > ${bytes} THEN NULL ELSE coalesce(page.records, '') END AS records,
 page.count, ${counted === undefined ? 'NULL::int8' : '(SELECT count(*) FROM counted)'} AS total, page.bytes, page.count > ${rows} OR page.bytes > ${bytes} AS over${position.columns}
FROM ${position.from}
CROSS JOIN (SELECT count(*)::int4 AS count, coalesce(max(item.running), 0) AS bytes,
 string_agg(item.json, ',' ORDER BY item.position) FILTER (WHERE item.running <= ${bytes}) AS records
FROM (SELECT numbered.json, numbered.position,
  sum(octet_length(numbered.json) + 1) OVER (ORDER BY numbered.position ROWS UNBOUNDED PRECEDING) - 1 AS running
 FROM (SELECT row_number() OVER () AS position, ${printRow(query)} AS json
  FROM (${limited}) AS item) AS numbered) AS item) AS page
WHERE ${position.where}`
  if (text.length > limits.sqlCompiledCharsMax) throw makeTooComplex()
  return { text, values: values.values }
}

/** Prints the LIMIT of the page: it reads one row more than allowed, so that too many are noticed. */
function printLimit(query: Query, options: CompileQueryOptions, values: Parameters): string {
  const { caps, limitsAtRun, total } = options
  const page = (limit: unknown, offset: unknown) =>
    `${values.add(limit, 'int8')} OFFSET ${values.add(offset, 'int8')}`
  if (limitsAtRun === true)
    return page(makePlainValue(ownParameters.limit), makePlainValue(ownParameters.offset))
  const most = caps.rows + 1
  return total === true
    ? page(Math.min(query.limit ?? most, most), query.offset)
    : values.add(most, 'int8')
}

/** Prints the JSON text of a row `item`. */
export function printRow(query: Query): string {
  const { columns, records } = getOutput(query)
  const bodies = records.map((_, at) => `coalesce(item.body${at === 0 ? '' : at}, '{}')`)
  const members = objectText(
    columns.map((column, at) => ({
      path: column.path,
      text: printJson(`item.c${at}`, column.type),
    })),
  )
  const [body] = bodies
  if (body === undefined) return members
  if (bodies.length === 1 && columns.length === 0) return body
  return mergedText(columns.length === 0 ? bodies : [...bodies, members])
}

type Member = { readonly path: readonly string[]; readonly text: string }

/** Prints an object's text; members with longer paths stand in objects of their own. */
function objectText(members: readonly Member[]): string {
  const byName = new Map<string, Member[]>()
  for (const { path, text } of members) {
    const [name = '', ...rest] = path
    byName.set(name, [...(byName.get(name) ?? []), { path: rest, text }])
  }
  const parts = [...byName].map(([name, inside]) => {
    const [only] = inside
    const value = only?.path.length === 0 ? only.text : objectText(inside)
    return `${quoteText(`${JSON.stringify(name)}:`)} || ${value}`
  })
  return parts.length === 0 ? `'{}'` : `'{' || ${parts.join(` || ',' || `)} || '}'`
}

/** If objects have members of the same name, that of the last object counts, in that object's place. */
function mergedText(objects: readonly string[]): string {
  const all = objects.map(
    (object, part) =>
      `SELECT ${part} AS part, each_member.* FROM json_each((${object})::json) WITH ORDINALITY AS each_member(key, value, place)`,
  )
  return `(SELECT '{' || coalesce(string_agg(to_json(last_of.key)::text || ':' || last_of.value, ',' ORDER BY last_of.part, last_of.place), '') || '}'
 FROM (SELECT DISTINCT ON (member.key) member.key, member.value::text AS value, member.part, member.place
  FROM (${all.join(' UNION ALL ')}) AS member ORDER BY member.key, member.part DESC, member.place DESC) AS last_of)`
}
