import type { Expression } from '../query/tree/query.ts'
import type { Bundle, Part, Probe } from './delta-relation.ts'
import { relationsIn } from './expression-relations.ts'
import type { Writing } from './statement-writing.ts'

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
  const { left, right, keeps, on } = join
  const parts = [...left.parts, ...right.parts]
  const key = {}
  return {
    parts,
    rows: (writing) => {
      const word = wordOf(keeps.left, keeps.right)
      return `(${left.rows(writing)}\n ${word} JOIN ${right.rows(writing)} ON ${onText(on, writing)})`
    },
    change: (writing) => {
      const name = writing.common(key, () => changeOf(join, writing))
      return { from: spread(name, parts), weight: `${name}.w` }
    },
    probe: (writing, conditions) =>
      probeFrom({ first: left, other: right, keepsFirst: keeps.left }, join, {
        writing,
        conditions,
      }) ??
      probeFrom({ first: right, other: left, keepsFirst: keeps.right }, join, {
        writing,
        conditions,
      }),
  }
}

type Order = { readonly first: Bundle; readonly other: Bundle; readonly keepsFirst: boolean }
type Asked = { readonly writing: Writing; readonly conditions: readonly Expression[] }

/**
 * The pairs, begun from the side that is found. Where the other side has rows that stay without a match, the
 * condition that finds does not hold of them.
 */
function probeFrom(
  order: Order,
  { on }: JoinOf,
  { writing, conditions }: Asked,
): Probe | undefined {
  const { first, other, keepsFirst } = order
  const others = new Set(other.parts.map(({ id }) => id))
  const later = conditions.filter((each) => [...relationsIn(each)].some((id) => others.has(id)))
  const found = first.probe(
    writing,
    conditions.filter((each) => !later.includes(each)),
  )
  if (found === undefined) return undefined
  const rest = [...found.rest, ...later]
  const right = reached(other, keepsFirst ? on : [...on, ...rest], writing)
  // What is in parentheses cannot name what stands before them.
  const ids = new Set([...first.parts, ...other.parts].map(({ id }) => id))
  const isInside = (each: Expression) => [...relationsIn(each)].every((id) => ids.has(id))
  const pairs = { from: right.from, rest: right.rest.filter(isInside) }
  const word = keepsFirst ? 'LEFT' : 'INNER'
  const from = joined({ left: found.from, word, right: pairs }, writing)
  const outside = right.rest.filter((each) => !isInside(each))
  return { from: `(${from})`, rest: keepsFirst ? rest : outside }
}

/** The rows of now that satisfy the conditions for each row of what stands before: by an index, or else all of them. */
function reached(bundle: Bundle, conditions: readonly Expression[], writing: Writing): Probe {
  return bundle.probe(writing, conditions) ?? { from: bundle.rows(writing), rest: conditions }
}

type Pair = { readonly left: string; readonly word: 'LEFT' | 'INNER'; readonly right: Probe }

function joined({ left, word, right }: Pair, writing: Writing): string {
  return `${left} ${word} JOIN ${right.from} ON ${onText(right.rest, writing)}`
}

function wordOf(left: boolean, right: boolean): string {
  if (left && right) return 'FULL'
  return left ? 'LEFT' : right ? 'RIGHT' : 'INNER'
}

function onText(on: readonly Expression[], writing: Writing): string {
  return on.length === 0 ? 'TRUE' : on.map(writing.print).join('\n AND ')
}

function changeOf({ left, right, keeps, on }: JoinOf, writing: Writing): string {
  const [dl, dr] = [left.change(writing), right.change(writing)]
  const columns = [...left.parts, ...right.parts].flatMap(packed).join(', ')
  const toRight: Pair = {
    left: dl.from,
    word: keeps.left ? 'LEFT' : 'INNER',
    right: reached(right, on, writing),
  }
  const toLeft: Pair = {
    left: dr.from,
    word: keeps.right ? 'LEFT' : 'INNER',
    right: reached(left, on, writing),
  }
  const both: Pair = { left: dl.from, word: 'INNER', right: { from: dr.from, rest: on } }
  const bundles = [left, right]
  return [
    `SELECT ${columns}, ${dl.weight} AS w FROM ${joined(toRight, writing)}`,
    `SELECT ${columns}, ${dr.weight} FROM ${joined(toLeft, writing)}`,
    `SELECT ${columns}, -${dl.weight} * ${dr.weight} FROM ${joined(both, writing)}`,
    ...(keeps.left ? [flips({ kept: left, other: right, on, bundles }, writing)] : []),
    ...(keeps.right ? [flips({ kept: right, other: left, on, bundles }, writing)] : []),
  ].join('\nUNION ALL ')
}

type Flip = {
  readonly kept: Bundle
  readonly other: Bundle
  readonly on: readonly Expression[]
  /** Both, in the order of columns. */
  readonly bundles: readonly Bundle[]
}

/**
 * Rows of before that are kept and whose last match went, or first match came. How many matches a row had is how many
 * it has less the change's, and whether that is none is known after counting one more than the change brought. Rows
 * of before are those of now less the change.
 */
function flips({ kept, other, on, bundles }: Flip, writing: Writing): string {
  const [dk, dother] = [kept.change(writing), other.change(writing)]
  const own = kept.parts.flatMap(packed).join(', ')
  const names = kept.parts.flatMap(({ id, columns }) => columns.map(({ name }) => `r${id}_${name}`))
  const now: Pair = { left: dother.from, word: 'INNER', right: reached(kept, on, writing) }
  const changed: Pair = { left: dk.from, word: 'INNER', right: { from: dother.from, rest: on } }
  const pairs = `SELECT ${own}, 1 AS kept_w, ${dother.weight} AS other_w
 FROM ${joined(now, writing)}
 UNION ALL SELECT ${own}, -${dk.weight}, ${dother.weight}
 FROM ${joined(changed, writing)}`
  const touched = writing.common(
    {},
    () => `SELECT ${names.join(', ')}, kept_w, sum(other_w) AS came
FROM (${pairs}) AS pair GROUP BY ${names.join(', ')}, kept_w HAVING sum(other_w) <> 0`,
  )
  const flip = `(found.n = 0)::int4 - (found.n = ${touched}.came)::int4`
  const columns = bundles.flatMap((bundle) =>
    bundle.parts.flatMap((part) =>
      part.columns.map(({ name, type }) =>
        bundle === kept ? `${touched}.r${part.id}_${name}` : `NULL::${type}`,
      ),
    ),
  )
  const { from, rest } = reached(other, on, writing)
  return `SELECT ${columns.join(', ')}, ${touched}.kept_w * (${flip})
FROM ${spread(touched, kept.parts)} CROSS JOIN LATERAL (SELECT count(*) AS n FROM
 (SELECT FROM ${from} WHERE ${onText(rest, writing)} LIMIT greatest(${touched}.came, 0) + 1) AS one) AS found
WHERE ${flip} <> 0`
}

/** Columns of relations as columns of one, and back. */
function packed({ id, columns }: Part): readonly string[] {
  return columns.map(({ name }) => `r${id}.${name} AS r${id}_${name}`)
}

function spread(name: string, parts: readonly Part[]): string {
  const relations = parts.map(({ id, columns }) => {
    const list = columns.map((column) => `${name}.r${id}_${column.name} AS ${column.name}`)
    return ` CROSS JOIN LATERAL (SELECT ${list.join(', ')}) AS r${id}`
  })
  return `(${name}${relations.join('')})`
}
