import { keyExpression, tieExpression } from './index-key.ts'
import type { ListQuery, Sort } from './list-query.ts'
import { type CompiledStatement, type Parameters, parameters, quoteName } from './sql-text.ts'

/** A row where a page ended, as far as the order goes: its leaf, and JSON texts of what the rows are sorted by. */
export type Position = {
  readonly leaf: bigint
  /** Of `keyExpression`; null where the rows are not sorted, or the field is null or missing. */
  readonly key: string | null
  /** Of `tieExpression`. */
  readonly tie: string | null
}

/** What is left of a list after one of its pages, as everything was when the chain had `size` leaves. */
export type Continuation = { readonly size: bigint; readonly after: Position }

/** Reads the keys of the row where a page ended: a row never changes. No row where there is none of this leaf. */
export function compilePosition(
  sort: Sort,
  row: { readonly schema: string; readonly table: string; readonly leaf: bigint },
): CompiledStatement {
  const values = parameters()
  const text = `SELECT (${keyExpression(sort.path, 'record.data')})::text AS key, (${tieExpression(sort.path, 'record.data')})::text AS tie
FROM ${quoteName(row.schema, row.table)} AS record WHERE record.leaf = ${values.add(row.leaf, 'int8')}`
  return { text, values: values.values }
}

/** Some of the rows: FROM, with `record` as the rows' name, and the conditions of WHERE. */
export type Part = { readonly from: string; readonly where: readonly string[] }

/**
 * The rows that are left, parted so that an index serves each part; no row is in two. First the live ones, whose
 * indexes have no others; last those that were live then and are not any more.
 */
export function remainingParts(
  query: ListQuery,
  { size, after }: Continuation,
  { table, values }: { readonly table: string; readonly values: Parameters },
): readonly Part[] {
  const from = `${table} AS record`
  const then = values.add(size, 'int8')
  const stored = `record.leaf < ${then}`
  const parts = rowsAfter(query.sort, after, values)
  if (query.history) return parts.map((part) => ({ from, where: [stored, part] }))
  const live = ['record.superseded_by IS NULL', 'NOT record.deleted', stored]
  // OFFSET keeps the planner from walking through the whole table in the order of leaves instead.
  const replaced = `(SELECT old.leaf, old.key, old.deleted, old.data, old.body
  FROM ${table} AS old WHERE old.superseded_by >= ${then} OFFSET 0) AS record`
  return [
    ...parts.map((part) => ({ from, where: [...live, part] })),
    { from: replaced, where: ['NOT record.deleted', stored, `(${parts.join(' OR ')})`] },
  ]
}

/** Conditions of the rows that come after one; each is a range of an index on the sorted field. */
function rowsAfter(
  sort: Sort | undefined,
  { leaf, key, tie }: Position,
  values: Parameters,
): readonly string[] {
  const later = `record.leaf > ${values.add(leaf, 'int8')}`
  if (sort === undefined) return [later]
  const field = `(${keyExpression(sort.path, 'record.data')})`
  if (key === null) {
    const alike = `${field} IS NULL AND ${later}`
    return sort.descending ? [alike, `${field} IS NOT NULL`] : [alike]
  }
  const [beyond, from] = sort.descending ? (['<', '<='] as const) : (['>', '>='] as const)
  const same = values.add(key, 'jsonb')
  const tied = tieAfter(sort, { tie, later, beyond }, values)
  // The first half says nothing new; it is where an index begins.
  const rest = `${field} ${from} ${same} AND (${field} ${beyond} ${same} OR ${tied})`
  return sort.descending ? [rest] : [rest, `${field} IS NULL`]
}

/** Of two equal keys both have a tie, or none has. */
function tieAfter(
  sort: Sort,
  { tie, later, beyond }: { tie: string | null; later: string; beyond: string },
  values: Parameters,
): string {
  if (tie === null) return later
  const field = `(${tieExpression(sort.path, 'record.data')})`
  const same = values.add(tie, 'jsonb')
  return `${field} ${beyond} ${same} OR (${field} = ${same} AND ${later})`
}
