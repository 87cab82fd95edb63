import { requirePresent } from '../base/assert.ts'
import { printCast } from '../query/compile/convert.ts'
import { sqlTypes } from '../query/compile/print-expression.ts'
import { printSnapshot } from '../query/compile/print-query.ts'
import { quoteName } from '../query/sql-text.ts'
import type { Expression, ValueType } from '../query/tree/query.ts'
import { collectRelations, listReferences } from './expression-relations.ts'
import type { Mode, SqlType, Writing } from './statement-writing.ts'

export type DeltaColumn = { readonly name: string; readonly type: SqlType }

/**
 * A relation of a view's plan as SQL: its rows at the position that a statement goes to, and the change since the
 * position that it starts from. `columns` are those of both; the first is `leaf`, which identifies the relation's
 * rows. A change has a further column `w`, the weight: +1 for a row that came, -1 for one that went. A row may come
 * and go in one change.
 */
export type DeltaRelation = {
  readonly columns: readonly DeltaColumn[]
  /** The columns by which an index finds rows, and whether one finds them by fields of its records. */
  readonly lookups: Lookups
  readonly rows: (writing: Writing) => string
  readonly change: (writing: Writing) => string
}

export type Lookups = { readonly columns: ReadonlySet<number>; readonly fields: boolean }

export const noLookups: Lookups = { columns: new Set(), fields: false }

const leafColumn: DeltaColumn = { name: 'leaf', type: 'int8' }
const recordColumn: DeltaColumn = { name: 'data', type: 'jsonb' }
const bodyColumn: DeltaColumn = { name: 'body', type: 'text' }

/** Builds the relation of a collection's live records; their texts only if they are given whole. */
export function buildSource(model: string, isWhole: boolean): DeltaRelation {
  const columns = [leafColumn, recordColumn, ...(isWhole ? [bodyColumn] : [])]
  const names = listNames(columns).join(', ')
  const getSource = ({ place }: Writing) =>
    requirePresent(place.resolve(model), `the source ${model}`)
  return {
    columns,
    lookups: { columns: new Set(), fields: true },
    rows: (writing) => printSnapshot(getSource(writing), writing.position('to', model)),
    change: (writing) => {
      const { schema, table } = getSource(writing)
      const [from, to] = [writing.position('from', model), writing.position('to', model)]
      const name = quoteName(schema, table)
      return `SELECT ${names}, 1 AS w FROM ${name}
 WHERE leaf >= ${from} AND leaf < ${to} AND NOT deleted AND (superseded_by IS NULL OR superseded_by >= ${to})
 UNION ALL SELECT ${names}, -1 FROM ${name}
 WHERE superseded_by >= ${from} AND superseded_by < ${to} AND leaf + 0 < ${from} AND NOT deleted`
    },
  }
}

/** Relations that stand side by side in a FROM clause, each as `r<id>`. */
export type JoinInputs = {
  readonly parts: readonly JoinPart[]
  readonly rows: (writing: Writing) => string
  /** The change: `from`, with the SQL of each row's weight. */
  readonly change: (writing: Writing) => { readonly from: string; readonly weight: string }
  /**
   * Finds, by an index, the current rows for each row of the relations before it in FROM; undefined if no condition
   * allows that. The conditions are about both; those in `rest` are still to be applied.
   */
  readonly probe: (writing: Writing, conditions: readonly Expression[]) => Probe | undefined
}

export type JoinPart = {
  readonly id: number
  readonly columns: readonly DeltaColumn[]
  readonly lookups: Lookups
}

export type Probe = { readonly from: string; readonly rest: readonly Expression[] }

/** Makes a join input of one relation, limited to the rows that satisfy the conditions. */
export function makeJoinInput(
  id: number,
  relation: DeltaRelation,
  conditions: readonly Expression[],
): JoinInputs {
  const as = `r${id}`
  const { columns, lookups } = relation
  const select = (text: string, where: readonly Expression[], writing: Writing) =>
    `SELECT ${as}.* FROM (${text}) AS ${as}${printWhere(where, writing)}`
  const key = {}
  return {
    parts: [{ id, columns, lookups }],
    rows: (writing) => `(${select(relation.rows(writing), conditions, writing)}) AS ${as}`,
    change: (writing) => {
      const name = writing.common(key, () => select(relation.change(writing), conditions, writing))
      return { from: `${name} AS ${as}`, weight: `${as}.w` }
    },
    probe: (writing, asked) => {
      if (!asked.some((each) => isLookup(each, { id, lookups }))) return undefined
      // PostgreSQL plans a sub-query that ends with OFFSET by itself, for one row of the relations before it.
      const text = select(relation.rows(writing), [...conditions, ...asked], writing)
      return { from: `LATERAL (${text} OFFSET 0) AS ${as}`, rest: [] }
    },
  }
}

/** Returns true if a condition is an equality that looks rows up by an indexed column or field of the relation. */
function isLookup(
  condition: Expression,
  { id, lookups }: Pick<JoinPart, 'id' | 'lookups'>,
): boolean {
  const isFound = (side: Expression) =>
    (side.kind === 'field' && side.relation === id && lookups.fields) ||
    (side.kind === 'column' && side.relation === id && lookups.columns.has(side.column))
  const isOther = (side: Expression) => {
    const used = collectRelations(side)
    return used.size > 0 && !used.has(id)
  }
  if (condition.kind === 'condition') {
    const { relation, parent, condition: test } = condition
    const isOf = relation === id || parent === id
    return lookups.fields && isOf && parent !== undefined && listReferences(test).length > 0
  }
  if (condition.kind !== 'compare' || condition.operator !== '=') return false
  const { left, right } = condition
  return (isFound(left) && isOther(right)) || (isFound(right) && isOther(left))
}

export function printWhere(conditions: readonly Expression[], writing: Writing): string {
  return conditions.length === 0 ? '' : `\nWHERE ${conditions.map(writing.print).join('\n AND ')}`
}

export type Projection = {
  readonly from: JoinInputs
  readonly where: readonly Expression[]
  readonly columns: readonly Expression[]
  /** The relations whose records are given whole, beside the columns. */
  readonly records: readonly number[]
}

/**
 * Builds the relation of the inputs' rows that satisfy the conditions, with columns c0, c1 ..., and `data`, `body`
 * of whole records.
 */
export function buildProjection(projection: Projection): DeltaRelation {
  const { from, where, columns, records } = projection
  const leafs = from.parts.map(({ id }) => `r${id}.leaf`)
  const [first] = from.parts
  const [leaf, leafType] =
    leafs.length === 1
      ? [leafs[0], first?.columns[0]?.type ?? 'int8']
      : [
          `concat_ws(':', ${leafs.map((each) => `coalesce(${each}::text, '')`).join(', ')})`,
          'text' as const,
        ]
  const wholes = records.flatMap((id, at) => {
    const end = at === 0 ? '' : String(at)
    return [
      { name: `data${end}`, type: 'jsonb', text: `r${id}.data` } as const,
      { name: `body${end}`, type: 'text', text: `r${id}.body` } as const,
    ]
  })
  const select = (writing: Writing) =>
    [
      `${leaf} AS leaf`,
      ...columns.map((each, at) => `${columnText(each, writing)} AS c${at}`),
      ...wholes.map(({ name, text }) => `${text} AS ${name}`),
    ].join(', ')
  return {
    columns: [
      { name: 'leaf', type: leafType },
      ...columns.map(({ type }, at): DeltaColumn => ({ name: `c${at}`, type: sqlTypes[type] })),
      ...wholes,
    ],
    lookups: from.parts.length === 1 ? mapLookups(first?.lookups ?? noLookups, columns) : noLookups,
    rows: (writing) =>
      `SELECT ${select(writing)}\nFROM ${from.rows(writing)}${printWhere(where, writing)}`,
    change: (writing) => {
      const { from: text, weight } = from.change(writing)
      return `SELECT ${select(writing)}, ${weight} AS w\nFROM ${text}${printWhere(where, writing)}`
    },
  }
}

/** Maps the lookups of a relation to the columns that pass its columns on unchanged. */
function mapLookups({ columns, fields }: Lookups, list: readonly Expression[]): Lookups {
  const passed = list.flatMap((each, at) =>
    each.kind === 'column' && columns.has(each.column) ? [at] : [],
  )
  return { columns: new Set(passed), fields }
}

/**
 * Prints a column. A place in the order of storing is a whole number in PostgreSQL, but a number like others in a
 * query.
 */
function columnText(expression: Expression, { print }: Writing): string {
  return expression.kind === 'leaf' ? `${print(expression)}::numeric` : print(expression)
}

export type UnionSide = { readonly relation: DeltaRelation; readonly types: readonly ValueType[] }

/** Builds the relation of the rows of all sides, their columns cast to the types. */
export function buildUnion(
  sides: readonly UnionSide[],
  types: readonly ValueType[],
): DeltaRelation {
  const all = (part: 'rows' | 'change', writing: Writing) =>
    sides
      .map(({ relation, types: own }, at) => {
        const columns = types.map((to, place) => {
          const from = requirePresent(own[place], 'the type')
          const name = `side.c${place}`
          const made = from === to || from === 'null' ? name : printCast(name, { from, to })
          return `${from === 'null' ? `${made}::${sqlTypes[to]}` : made} AS c${place}`
        })
        const weight = part === 'change' ? ', side.w' : ''
        const leaf = `concat_ws('-', ${at}, side.leaf) AS leaf`
        return `SELECT ${[leaf, ...columns].join(', ')}${weight} FROM (${relation[part](writing)}) AS side`
      })
      .join('\nUNION ALL ')
  return {
    columns: [
      { name: 'leaf', type: 'text' },
      ...types.map((type, at): DeltaColumn => ({ name: `c${at}`, type: sqlTypes[type] })),
    ],
    lookups: noLookups,
    rows: (writing) => all('rows', writing),
    change: (writing) => all('change', writing),
  }
}

/** Prints the change, or for a fill all rows as if they had just come. */
export function printWeightedRows(relation: DeltaRelation, mode: Mode, writing: Writing): string {
  if (mode === 'advance') return relation.change(writing)
  return `SELECT row_of.*, 1 AS w FROM (${relation.rows(writing)}) AS row_of`
}

function listNames(columns: readonly DeltaColumn[]): readonly string[] {
  return columns.map(({ name }) => name)
}
