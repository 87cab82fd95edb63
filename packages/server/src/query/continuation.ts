import { printKeyExpression, printTieExpression } from './index-key.ts'
import type { ListQuery, Sort } from './list-query.ts'
import { type CompiledStatement, makeParameters, type Parameters, quoteName } from './sql-text.ts'

/**
 * The last row of a page, as far as the order needs it: its leaf, and the JSON texts of the values that rows are
 * sorted by.
 */
export type LastRow = {
  readonly leaf: bigint
  /** The value of `printKeyExpression`; null if the rows are not sorted, or the field is null or missing. */
  readonly key: string | null
  /** The value of `printTieExpression`. */
  readonly tie: string | null
}

/** The remainder of a list after one of its pages, as of the moment when the chain had `size` leaves. */
export type Continuation = { readonly size: bigint; readonly after: LastRow }

/**
 * Compiles a statement that reads the keys of a page's last row, which never change. It gives no row if there is
 * none with this leaf.
 */
export function compileLastRow(
  sort: Sort,
  row: { readonly schema: string; readonly table: string; readonly leaf: bigint },
): CompiledStatement {
  const values = makeParameters()
  const text = `SELECT (${printKeyExpression(sort.path, 'record.data')})::text AS key, (${printTieExpression(sort.path, 'record.data')})::text AS tie
FROM ${quoteName(row.schema, row.table)} AS record WHERE record.leaf = ${values.add(row.leaf, 'int8')}`
  return { text, values: values.values }
}

/** A part of the rows: FROM, with `record` as the rows' name, and the conditions of WHERE. */
export type Part = { readonly from: string; readonly where: readonly string[] }

/**
 * Lists the remaining rows in parts, each served by an index; no row is in two. The live rows come first, as their
 * indexes have no others; the rows that were live then and are not any more come last.
 */
export function listRemainingParts(
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
  const replaced = `(SELECT old.* FROM ${table} AS old WHERE old.superseded_by >= ${then} OFFSET 0) AS record`
  return [
    ...parts.map((part) => ({ from, where: [...live, part] })),
    { from: replaced, where: ['NOT record.deleted', stored, `(${parts.join(' OR ')})`] },
  ]
}

/** Lists conditions of the rows that come after one; each is a range of an index on the sorted field. */
function rowsAfter(
  sort: Sort | undefined,
  { leaf, key, tie }: LastRow,
  values: Parameters,
): readonly string[] {
  const later = `record.leaf > ${values.add(leaf, 'int8')}`
  if (sort === undefined) return [later]
  const field = `(${printKeyExpression(sort.path, 'record.data')})`
  if (key === null) {
    const alike = `${field} IS NULL AND ${later}`
    return sort.descending ? [alike, `${field} IS NOT NULL`] : [alike]
  }
  const [beyond, from] = sort.descending ? (['<', '<='] as const) : (['>', '>='] as const)
  const same = values.add(key, 'jsonb')
  const tied = tieAfter(sort, { tie, later, beyond }, values)
  // The first half is redundant, but tells where an index scan begins.
  const rest = `${field} ${from} ${same} AND (${field} ${beyond} ${same} OR ${tied})`
  return sort.descending ? [rest] : [rest, `${field} IS NULL`]
}

/** If two keys are equal, either both have a tie or neither has. */
function tieAfter(
  sort: Sort,
  { tie, later, beyond }: { tie: string | null; later: string; beyond: string },
  values: Parameters,
): string {
  if (tie === null) return later
  const field = `(${printTieExpression(sort.path, 'record.data')})`
  const same = values.add(tie, 'jsonb')
  return `${field} ${beyond} ${same} OR (${field} = ${same} AND ${later})`
}
