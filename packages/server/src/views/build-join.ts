import type { Expression } from '../query/tree/query.ts'
import type { JoinInputs, JoinPart, Probe } from './delta-relation.ts'
import { collectRelations } from './expression-relations.ts'
import type { Writing } from './statement-writing.ts'

export type JoinSpec = {
  readonly left: JoinInputs
  readonly right: JoinInputs
  /** Keeps the rows of a side that match no row of the other; the other side's columns are then NULL. */
  readonly keeps: { readonly left: boolean; readonly right: boolean }
  readonly on: readonly Expression[]
}

/**
 * Builds a join. With L and R as they are now and their changes dL and dR, the change of its pairs is dL x R + L x
 * dR - dL x dR, which reads only current rows, by the existing indexes. A row that is kept without a match is added
 * where the change begins with it (the first two are then outer joins), and where its matches came or went; see
 * `printFlips`.
 */
export function buildJoin(join: JoinSpec): JoinInputs {
  const { left, right, keeps, on } = join
  const parts = [...left.parts, ...right.parts]
  const key = {}
  return {
    parts,
    rows: (writing) => {
      const word = getJoinWord(keeps.left, keeps.right)
      return `(${left.rows(writing)}\n ${word} JOIN ${right.rows(writing)} ON ${onText(on, writing)})`
    },
    change: (writing) => {
      const name = writing.common(key, () => printChange(join, writing))
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

type ProbeOrder = {
  readonly first: JoinInputs
  readonly other: JoinInputs
  readonly keepsFirst: boolean
}
type ProbeRequest = { readonly writing: Writing; readonly conditions: readonly Expression[] }

/**
 * Finds the pairs, beginning with the side that the conditions find by an index. If rows of the other side stay
 * without a match, the conditions that found the first side do not apply to them.
 */
function probeFrom(
  order: ProbeOrder,
  { on }: JoinSpec,
  { writing, conditions }: ProbeRequest,
): Probe | undefined {
  const { first, other, keepsFirst } = order
  const others = new Set(other.parts.map(({ id }) => id))
  const later = conditions.filter((each) =>
    [...collectRelations(each)].some((id) => others.has(id)),
  )
  const found = first.probe(
    writing,
    conditions.filter((each) => !later.includes(each)),
  )
  if (found === undefined) return undefined
  const rest = [...found.rest, ...later]
  const right = probeOrScan(other, keepsFirst ? on : [...on, ...rest], writing)
  // A sub-query in parentheses cannot name relations that stand before it.
  const ids = new Set([...first.parts, ...other.parts].map(({ id }) => id))
  const isInside = (each: Expression) => [...collectRelations(each)].every((id) => ids.has(id))
  const pairs = { from: right.from, rest: right.rest.filter(isInside) }
  const word = keepsFirst ? 'LEFT' : 'INNER'
  const from = joined({ left: found.from, word, right: pairs }, writing)
  const outside = right.rest.filter((each) => !isInside(each))
  return { from: `(${from})`, rest: keepsFirst ? rest : outside }
}

/**
 * Returns the current rows that satisfy the conditions for each row of the relations before: by an index, or else
 * all of them.
 */
function probeOrScan(
  inputs: JoinInputs,
  conditions: readonly Expression[],
  writing: Writing,
): Probe {
  return inputs.probe(writing, conditions) ?? { from: inputs.rows(writing), rest: conditions }
}

type Pair = { readonly left: string; readonly word: 'LEFT' | 'INNER'; readonly right: Probe }

function joined({ left, word, right }: Pair, writing: Writing): string {
  return `${left} ${word} JOIN ${right.from} ON ${onText(right.rest, writing)}`
}

function getJoinWord(left: boolean, right: boolean): string {
  if (left && right) return 'FULL'
  return left ? 'LEFT' : right ? 'RIGHT' : 'INNER'
}

function onText(on: readonly Expression[], writing: Writing): string {
  return on.length === 0 ? 'TRUE' : on.map(writing.print).join('\n AND ')
}

function printChange({ left, right, keeps, on }: JoinSpec, writing: Writing): string {
  const [dl, dr] = [left.change(writing), right.change(writing)]
  const columns = [...left.parts, ...right.parts].flatMap(packed).join(', ')
  const toRight: Pair = {
    left: dl.from,
    word: keeps.left ? 'LEFT' : 'INNER',
    right: probeOrScan(right, on, writing),
  }
  const toLeft: Pair = {
    left: dr.from,
    word: keeps.right ? 'LEFT' : 'INNER',
    right: probeOrScan(left, on, writing),
  }
  const both: Pair = { left: dl.from, word: 'INNER', right: { from: dr.from, rest: on } }
  const inputs = [left, right]
  return [
    `SELECT ${columns}, ${dl.weight} AS w FROM ${joined(toRight, writing)}`,
    `SELECT ${columns}, ${dr.weight} FROM ${joined(toLeft, writing)}`,
    `SELECT ${columns}, -${dl.weight} * ${dr.weight} FROM ${joined(both, writing)}`,
    ...(keeps.left ? [printFlips({ kept: left, other: right, on, inputs }, writing)] : []),
    ...(keeps.right ? [printFlips({ kept: right, other: left, on, inputs }, writing)] : []),
  ].join('\nUNION ALL ')
}

type Flip = {
  readonly kept: JoinInputs
  readonly other: JoinInputs
  readonly on: readonly Expression[]
  /** Both inputs, in the order of columns. */
  readonly inputs: readonly JoinInputs[]
}

/**
 * Rows of the former state that are kept and whose last match went, or whose first match came. The former number of
 * matches is the current number less that of the change; counting up to one more than the change brought is enough
 * to tell whether it was zero. The former rows are the current rows less the change.
 */
function printFlips({ kept, other, on, inputs }: Flip, writing: Writing): string {
  const [dk, dother] = [kept.change(writing), other.change(writing)]
  const own = kept.parts.flatMap(packed).join(', ')
  const names = kept.parts.flatMap(({ id, columns }) => columns.map(({ name }) => `r${id}_${name}`))
  const now: Pair = { left: dother.from, word: 'INNER', right: probeOrScan(kept, on, writing) }
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
  const columns = inputs.flatMap((inputs) =>
    inputs.parts.flatMap((part) =>
      part.columns.map(({ name, type }) =>
        inputs === kept ? `${touched}.r${part.id}_${name}` : `NULL::${type}`,
      ),
    ),
  )
  const { from, rest } = probeOrScan(other, on, writing)
  return `SELECT ${columns.join(', ')}, ${touched}.kept_w * (${flip})
FROM ${spread(touched, kept.parts)} CROSS JOIN LATERAL (SELECT count(*) AS n FROM
 (SELECT FROM ${from} WHERE ${onText(rest, writing)} LIMIT greatest(${touched}.came, 0) + 1) AS one) AS found
WHERE ${flip} <> 0`
}

/** Packs the columns of a relation into those of one row; `spread` unpacks them. */
function packed({ id, columns }: JoinPart): readonly string[] {
  return columns.map(({ name }) => `r${id}.${name} AS r${id}_${name}`)
}

function spread(name: string, parts: readonly JoinPart[]): string {
  const relations = parts.map(({ id, columns }) => {
    const list = columns.map((column) => `${name}.r${id}_${column.name} AS ${column.name}`)
    return ` CROSS JOIN LATERAL (SELECT ${list.join(', ')}) AS r${id}`
  })
  return `(${name}${relations.join('')})`
}
