import { limits } from '@tollbase/contract/limits'
import { assert, requirePresent } from '../base/assert.ts'
import { compileCondition } from './compile-condition.ts'
import { compileBody, printWithMembers } from './compile-selection.ts'
import type { Join, Resolve, Source } from './join.ts'
import type { Selection } from './select.ts'
import { type Parameters, quoteName } from './sql-text.ts'

type Options = {
  readonly values: Parameters
  readonly caps: { readonly bytes: number }
  readonly resolve: Resolve | undefined
  /** Reads joined records as of the moment when the chain had so many leaves; undefined is now. */
  readonly size: bigint | undefined
}

/** The parts that joins add to the statement that reads a page. */
export type JoinedPart = {
  /** The name of the page's rows. */
  readonly page: string
  /** The common tables, given the SQL of the page's rows (leaf, data, body). */
  readonly with: (rows: string) => string
  /** SQL that is true when too many records or bytes were fetched. */
  readonly isOver: string
  /** Joins the texts of the joined records to a row of the page. */
  readonly from: (row: string) => string
  /** The JSON text of a row with its joined records. */
  readonly render: (row: string) => string
}

/** One level: a common table of pairs (parent, record) and one of the texts per parent. */
type Level = { readonly pairs: string; readonly texts: string; readonly names: Names }
type Names = { readonly pairs: string; readonly texts: string }
type Body = { readonly select: Selection | undefined; readonly joins: readonly Join[] }

/**
 * Compiles joins to common tables beside the page's rows, which are read first: per join one join of tables over
 * all rows and one aggregation, never a query per row. Undefined if there are no joins.
 */
export function compileJoins(query: Body, options: Options): JoinedPart | undefined {
  if (query.joins.length === 0) return undefined
  const levels: Level[] = []
  const top = query.joins.map((join) => addLevel(join, { parent: 'page_rows', levels, options }))
  const all = (value: string) =>
    levels.map(({ names }) => `(SELECT ${value} FROM ${names.pairs})`).join(' + ')
  const rows = options.values.add(limits.joinedRowsMax, 'int8')
  const bytes = options.values.add(options.caps.bytes, 'int8')
  const tables = (page: string) => [
    `page_rows AS MATERIALIZED (SELECT page_row.*, page_row.leaf AS id FROM (${page}) AS page_row)`,
    ...levels.map((level) => level.pairs),
    `fan_out AS MATERIALIZED (SELECT ${all('count(*)')} > ${rows}
  OR ${all('coalesce(sum(octet_length(body)), 0)')} > ${bytes} AS over)`,
    // The texts of inner joins come first, as those of the outer joins contain them.
    ...levels.toReversed().map((level) => level.texts),
  ]
  return {
    page: 'page_rows',
    with: (page) => `WITH ${tables(page).join(',\n')}\n`,
    isOver: '(SELECT over FROM fan_out)',
    from: (row) => joinTexts(top, row),
    render: (row) => render(query, { levels: top, row }),
  }
}

type JoinPlace = { readonly parent: string; readonly levels: Level[]; readonly options: Options }

function addLevel(join: Join, { parent, levels, options }: JoinPlace): Names {
  const number = levels.length + 1
  const names: Names = { pairs: `join_${number}`, texts: `join_text_${number}` }
  const place = levels.push({
    pairs: compilePairs(join, { parent, names, options }),
    texts: '',
    names,
  })
  const inner = join.joins.map((each) => addLevel(each, { parent: names.pairs, levels, options }))
  const level = requirePresent(levels[place - 1], 'the level')
  levels[place - 1] = { ...level, texts: compileTexts(join, { names, inner }) }
  return names
}

/** Compiles the joined records, each with the id of its row; at most one more than allowed. */
function compilePairs(
  join: Join,
  place: { readonly parent: string; readonly names: Names; readonly options: Options },
): string {
  const { values, resolve, size } = place.options
  const source = resolve?.(join.model)
  assert(source !== undefined, `the source ${join.model} is not resolved`)
  const condition = compileCondition(join.where, {
    record: 'record.data',
    parent: 'parent.data',
    parameters: values,
    dataSets: source.dataSets,
  })
  const most = values.add(limits.joinedRowsMax + 1, 'int8')
  const first = join.many ? '' : 'DISTINCT ON (parent.id) '
  const order = join.many ? '' : ' ORDER BY parent.id, record.leaf'
  // Ids and data are kept only where further joins inside this one need them.
  const [id, data] =
    join.joins.length === 0 ? ['', ''] : ['row_number() OVER () AS id, ', 'record.data, ']
  return `${place.names.pairs} AS MATERIALIZED (SELECT ${id}pair.*
 FROM (SELECT ${first}parent.id AS parent, record.leaf, ${data}record.body
  FROM ${place.parent} AS parent JOIN ${liveRows(source, size === undefined ? undefined : values.add(size, 'int8'))} AS record
   ON NOT record.deleted AND ${condition}${order}
  LIMIT ${most}) AS pair)`
}

/**
 * Prints the latest versions, deleted ones included: as of now, or as of `then` in two parts, each with an index of
 * its own.
 */
function liveRows({ schema, table }: Source, then: string | undefined): string {
  const part = (test: string) =>
    `SELECT leaf, deleted, data, body FROM ${quoteName(schema, table)} WHERE ${test}`
  if (then === undefined) return `(${part('superseded_by IS NULL')})`
  return `(${part(`superseded_by IS NULL AND leaf < ${then}`)}
   UNION ALL ${part(`superseded_by >= ${then} AND leaf < ${then}`)})`
}

function compileTexts(
  join: Join,
  { names, inner }: { readonly names: Names; readonly inner: readonly Names[] },
): string {
  const record = render(join, { levels: inner, row: 'pair' })
  const text = join.many
    ? `'[' || string_agg(${record}, ',' ORDER BY pair.leaf) || ']'`
    : `min(${record})`
  return `${names.texts} AS (SELECT pair.parent, ${text} AS json
 FROM ${names.pairs} AS pair${joinTexts(inner, 'pair')} WHERE NOT (SELECT over FROM fan_out) GROUP BY pair.parent)`
}

function joinTexts(levels: readonly Names[], row: string): string {
  return levels.map(({ texts }) => ` LEFT JOIN ${texts} ON ${texts}.parent = ${row}.id`).join('')
}

/** Prints the record's text with one member per join at its end. */
function render(
  body: Body,
  place: { readonly levels: readonly Names[]; readonly row: string },
): string {
  const { row, levels } = place
  const own = compileBody(body.select, `${row}.body`)
  if (body.joins.length === 0) return own
  const members = body.joins.map((join, at) => {
    const { texts } = requirePresent(levels[at], 'the level')
    return { name: join.alias, json: `coalesce(${texts}.json, '${join.many ? '[]' : 'null'}')` }
  })
  return printWithMembers(own, { data: `${row}.data`, members })
}
