import { printValueExpression } from './index-key.ts'
import { type Nearest, printNearness } from './nearest.ts'
import {
  isWithinSingle,
  printErrorBound,
  printIndexedVector,
  printListText,
  printSingleDistance,
  printTextVector,
} from './single-vector.ts'
import { type Parameters, quoteName } from './sql-text.ts'

/** The ways beside the exact scan in which a server can look for what is nearest. */
export type VectorSearch = {
  /** The schema of the extension pgvector. */
  readonly schema: string
  /** True if an index has the vectors of this field, of this measure and so many numbers. */
  readonly isIndexed: boolean
}

export type NearestPlace = {
  /** FROM and WHERE of the matching rows, under the alias `record`. */
  readonly matches: string
  /** The table of these rows, whose primary key is `leaf`. */
  readonly table: string
  /** SQL of the page's most rows, and of the rows before it. */
  readonly rows: string
  readonly offset: string | undefined
  /** The number of rows up to the page's end; undefined if only the run knows it. */
  readonly end: number | undefined
  readonly values: Parameters
  readonly search: VectorSearch | undefined
}

export type NearestParts = {
  /** WITH of the statement; empty if it needs none. */
  readonly with: string
  /** The page's rows with their exact distances, in their order. */
  readonly rows: string
  /** SQL of whether an approximate search gave the rows; undefined if none was made. */
  readonly isApproximate?: string
}

/**
 * Compiles the rows of a page in the order of their distance. The order and the distances are those of double
 * precision, however the rows are found: with pgvector, only those rows are compared exactly that can be among the
 * page's. An approximate search leaves the choice of these to an index; if that gives too few, the exact one is made.
 */
export function compileNearest(nearest: Nearest, place: NearestPlace): NearestParts {
  const { search, matches } = place
  if (search === undefined || !isWithinSingle(nearest.to))
    return { with: '', rows: printExactRows(nearest, place, matches) }
  const vector = place.values.add(JSON.stringify(nearest.to), 'text')
  const to = `${vector}::${quoteName(search.schema, 'vector')}`
  const found = { nearest, place, search, to }
  const approximate = nearest.approximate && search.isIndexed ? printNear(found) : undefined
  const bounded = printBounded(found, approximate?.isShort)
  const end = `greatest(${place.rows}${place.offset === undefined ? '' : ` + ${place.offset}`} - 1, 0)`
  const edge = `coalesce((SELECT edge.high FROM bounded AS edge ORDER BY edge.high LIMIT 1 OFFSET ${end}), 'Infinity')`
  const leaves = [
    ...(approximate === undefined ? [] : ['SELECT near.leaf FROM near']),
    `SELECT bounded.leaf FROM bounded WHERE bounded.low <= ${edge}`,
  ].join(' UNION ALL ')
  const candidates = `FROM ${place.table} AS record WHERE record.leaf = ANY (ARRAY(${leaves}))`
  return {
    with: `WITH ${approximate === undefined ? '' : `near AS MATERIALIZED (${approximate.text}),\n `}bounded AS MATERIALIZED (${bounded})\n`,
    rows: printExactRows(nearest, place, candidates),
    ...(approximate && { isApproximate: `NOT ${approximate.isShort}` }),
  }
}

/** Prints the nearest of some rows. Each distance is computed once, although it is sorted by, tested and given. */
function printExactRows(
  nearest: Nearest,
  { rows, offset, values }: NearestPlace,
  matches: string,
): string {
  const distance = printNearness(nearest, { record: 'record.data', parameters: values })
  return `SELECT found.* FROM (SELECT record.leaf, record.body, record.data, ${distance} AS distance
 ${matches} OFFSET 0) AS found WHERE found.distance IS NOT NULL
 ORDER BY found.distance, found.leaf LIMIT ${rows}${offset === undefined ? '' : ` OFFSET ${offset}`}`
}

type Found = {
  readonly nearest: Nearest
  readonly place: NearestPlace
  readonly search: VectorSearch
  /** SQL of the vector that all are compared with. */
  readonly to: string
}

/**
 * Prints the least and the greatest distance that each matching row can have; without limits where single precision
 * does not hold its list. No row is made if `condition` does not hold.
 */
function printBounded(
  { nearest, place, search, to }: Found,
  condition: string | undefined,
): string {
  const { measure, path } = nearest
  const listed = `SELECT record.leaf, (${printValueExpression(path, 'record.data')}) AS list ${place.matches} OFFSET 0`
  const texts = `SELECT listed.leaf, ${printListText('listed.list', nearest.to.length)} AS text FROM (${listed}) AS listed${condition === undefined ? '' : ` WHERE ${condition}`} OFFSET 0`
  const vectors = `SELECT item.leaf, ${printTextVector('item.text', quoteName(search.schema, 'vector'))} AS vector
 FROM (${texts}) AS item WHERE item.text IS NOT NULL OFFSET 0`
  const distance = printSingleDistance(measure, search.schema)('item.vector', to)
  const singles = `SELECT item.leaf, ${distance} AS single, ${quoteName(search.schema, 'vector_norm')}(item.vector) AS norm
 FROM (${vectors}) AS item OFFSET 0`
  const error = printErrorBound(measure, nearest.to, { single: 'item.single', norm: 'item.norm' })
  return `SELECT item.leaf, coalesce(item.single - item.error, '-Infinity') AS low, coalesce(item.single + item.error, 'Infinity') AS high
 FROM (SELECT item.*, ${error} AS error FROM (${singles}) AS item OFFSET 0) AS item`
}

/** Rows beyond the page's end that are compared, as single precision may have changed places. */
const spareRows = 6
/** Numbers of rows are multiples of it, so that few texts of statements differ. */
const rowsStep = 16
/** Entries of the index that a search keeps in view: more find more, and take longer. pgvector allows 1,000. */
const viewedMin = 200
const viewedMax = 1_000

/**
 * Prints the rows that the index gives, and whether they are fewer than the page needs: it stops after some thousands
 * that do not match, and has no lists that single precision does not hold. The settings are those of this statement, as
 * they are made with the value that the index is searched by. The number of rows is written out: the planner would take
 * an unknown one for too many for an index.
 */
function printNear({
  nearest,
  place,
  search,
  to,
}: Found): { text: string; isShort: string } | undefined {
  if (place.end === undefined) return undefined
  const count = Math.ceil((place.end + spareRows) / rowsStep) * rowsStep
  const viewed = Math.min(Math.max(count, viewedMin), viewedMax)
  const settings = [`'hnsw.ef_search', '${viewed}'`, `'hnsw.iterative_scan', 'relaxed_order'`]
  const tuned = settings.map((each) => `set_config(${each}, true) IS NOT NULL`).join(' AND ')
  const shape = { schema: search.schema, numbers: nearest.to.length }
  const distance = printSingleDistance(nearest.measure, search.schema)(
    printIndexedVector(`(${printValueExpression(nearest.path, 'record.data')})`, shape),
    `(SELECT CASE WHEN ${tuned} THEN ${to} END)`,
  )
  return {
    text: `SELECT item.leaf FROM (SELECT record.leaf, ${distance} AS single ${place.matches}
 ORDER BY single LIMIT ${count}) AS item WHERE item.single IS NOT NULL`,
    isShort: `(SELECT count(*) FROM near) < ${place.end}`,
  }
}
