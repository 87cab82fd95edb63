import type { Expression } from '../query/tree/query.ts'
import type { Bundle } from './flow.ts'
import type { Writing } from './writing.ts'

export type JoinOf = {
  readonly left: Bundle
  readonly right: Bundle
  /** Whether the rows of a side stay that match none of the other; the other's columns are then NULL. */
  readonly keeps: { readonly left: boolean; readonly right: boolean }
  readonly on: readonly Expression[]
}

/**
 * A join. With L and R as they are now and their changes dL and dR, the change of its pairs is
 * dL x R + L x dR - dL x dR, which asks only for rows of now, by the indexes that there are. A row that was kept for
 * having no match is added where the change begins with it (then the first two are outer joins), and where its
 * matches came or went; see `flips`.
 */
export function joinBundle(join: JoinOf): Bundle {
  const { left, right, keeps } = join
  const parts = [...left.parts, ...right.parts]
  const key = {}
  return {
    parts,
    rows: (writing) => {
      const word = wordOf(keeps.left, keeps.right)
      return `(${left.rows(writing)}\n ${word} JOIN ${right.rows(writing)} ON ${onText(join, writing)})`
    },
    change: (writing) => {
      const name = writing.common(key, () => changeOf(join, writing))
      return { from: spread(name, parts), weight: `${name}.w` }
    },
  }
}

function wordOf(left: boolean, right: boolean): string {
  if (left && right) return 'FULL'
  return left ? 'LEFT' : right ? 'RIGHT' : 'INNER'
}

function onText({ on }: JoinOf, writing: Writing): string {
  return on.length === 0 ? 'TRUE' : on.map(writing.print).join('\n AND ')
}

type Parts = Bundle['parts']

function changeOf(join: JoinOf, writing: Writing): string {
  const { left, right, keeps } = join
  const on = onText(join, writing)
  const [dl, dr] = [left.change(writing), right.change(writing)]
  const columns = [...left.parts, ...right.parts].flatMap(packed)
  const select = (weight: string, from: string) =>
    `SELECT ${columns.join(', ')}, ${weight} AS w FROM ${from} ON ${on}`
  return [
    select(dl.weight, `${dl.from} ${keeps.left ? 'LEFT' : 'INNER'} JOIN ${right.rows(writing)}`),
    select(dr.weight, `${left.rows(writing)} ${keeps.right ? 'RIGHT' : 'INNER'} JOIN ${dr.from}`),
    select(`-${dl.weight} * ${dr.weight}`, `${dl.from} INNER JOIN ${dr.from}`),
    ...(keeps.left
      ? [flips({ kept: left, other: right, on, columns: [left, right] }, writing)]
      : []),
    ...(keeps.right
      ? [flips({ kept: right, other: left, on, columns: [left, right] }, writing)]
      : []),
  ].join('\nUNION ALL ')
}

type Flip = {
  readonly kept: Bundle
  readonly other: Bundle
  readonly on: string
  readonly columns: readonly Bundle[]
}

/**
 * Rows of before that are kept and whose last match went, or first match came. How many matches a row had is how many
 * it has less the change's, and whether that is none is known after counting one more than the change brought. Rows
 * of before are those of now less the change.
 */
function flips({ kept, other, on, columns }: Flip, writing: Writing): string {
  const [dk, dother] = [kept.change(writing), other.change(writing)]
  const names = kept.parts.flatMap(({ id, columns: own }) =>
    own.map(({ name }) => `r${id}_${name}`),
  )
  const own = kept.parts.flatMap(packed).join(', ')
  const pairs = `SELECT ${own}, 1 AS kept_w, ${dother.weight} AS other_w FROM ${kept.rows(writing)} INNER JOIN ${dother.from} ON ${on}
 UNION ALL SELECT ${own}, -${dk.weight}, ${dother.weight} FROM ${dk.from} INNER JOIN ${dother.from} ON ${on}`
  const touched = writing.common(
    {},
    () => `SELECT ${names.join(', ')}, kept_w, sum(other_w) AS came
FROM (${pairs}) AS pair GROUP BY ${names.join(', ')}, kept_w HAVING sum(other_w) <> 0`,
  )
  const flip = `(found.n = 0)::int4 - (found.n = ${touched}.came)::int4`
  const select = columns.flatMap((bundle) =>
    bundle.parts.flatMap(({ id, columns: list }) =>
      list.map(({ name, type }) =>
        bundle === kept ? `${touched}.r${id}_${name}` : `NULL::${type}`,
      ),
    ),
  )
  return `SELECT ${select.join(', ')}, ${touched}.kept_w * (${flip})
FROM ${spread(touched, kept.parts)} CROSS JOIN LATERAL (SELECT count(*) AS n FROM
 (SELECT FROM ${other.rows(writing)} WHERE ${on} LIMIT greatest(${touched}.came, 0) + 1) AS one) AS found
WHERE ${flip} <> 0`
}

/** Columns of relations as columns of one, and back. */
function packed({ id, columns }: Parts[number]): readonly string[] {
  return columns.map(({ name }) => `r${id}.${name} AS r${id}_${name}`)
}

function spread(name: string, parts: Parts): string {
  const relations = parts.map(({ id, columns }) => {
    const list = columns.map((column) => `${name}.r${id}_${column.name} AS ${column.name}`)
    return ` CROSS JOIN LATERAL (SELECT ${list.join(', ')}) AS r${id}`
  })
  return `(${name}${relations.join('')})`
}
