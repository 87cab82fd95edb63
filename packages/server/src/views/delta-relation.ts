import { present } from '../base/assert.ts'
import { castText } from '../query/compile/convert.ts'
import { sqlTypes } from '../query/compile/print-expression.ts'
import { printAsOf } from '../query/compile/print-query.ts'
import { quoteName } from '../query/sql-text.ts'
import type { Expression, ValueType } from '../query/tree/query.ts'
import { referencesOf, relationsIn } from './expression-relations.ts'
import type { Mode, SqlType, Writing } from './statement-writing.ts'

export type FlowColumn = { readonly name: string; readonly type: SqlType }

/**
 * A relation of a view's plan as SQL: its rows at the position that a statement goes to, and the change since the one
 * it starts from. The columns of both are `columns`; the first is `leaf`, which tells the relation's rows apart. A change
 * has a column `w` besides: +1 for a row that came, -1 for one that went. A row may come and go in one change.
 */
export type Flow = {
  readonly columns: readonly FlowColumn[]
  /** By which of its columns an index finds rows, and whether one may by fields of its records. */
  readonly found: Found
  readonly rows: (writing: Writing) => string
  readonly change: (writing: Writing) => string
}

export type Found = { readonly columns: ReadonlySet<number>; readonly fields: boolean }

export const notFound: Found = { columns: new Set(), fields: false }

const leafColumn: FlowColumn = { name: 'leaf', type: 'int8' }
const recordColumn: FlowColumn = { name: 'data', type: 'jsonb' }
const bodyColumn: FlowColumn = { name: 'body', type: 'text' }

/** The live records of a collection; their texts only where they are given whole. */
export function sourceFlow(model: string, isWhole: boolean): Flow {
  const columns = [leafColumn, recordColumn, ...(isWhole ? [bodyColumn] : [])]
  const names = namesOf(columns).join(', ')
  const sourceOf = ({ place }: Writing) => present(place.resolve(model), `the source ${model}`)
  return {
    columns,
    found: { columns: new Set(), fields: true },
    rows: (writing) => printAsOf(sourceOf(writing), writing.position('to', model)),
    change: (writing) => {
      const { schema, table } = sourceOf(writing)
      const [from, to] = [writing.position('from', model), writing.position('to', model)]
      const name = quoteName(schema, table)
      return `SELECT ${names}, 1 AS w FROM ${name}
 WHERE leaf >= ${from} AND leaf < ${to} AND NOT deleted AND (superseded_by IS NULL OR superseded_by >= ${to})
 UNION ALL SELECT ${names}, -1 FROM ${name}
 WHERE superseded_by >= ${from} AND superseded_by < ${to} AND leaf + 0 < ${from} AND NOT deleted`
    },
  }
}

/** Relations that stand side by side, each as `r<id>` in a FROM clause. */
export type Bundle = {
  readonly parts: readonly Part[]
  readonly rows: (writing: Writing) => string
  /** `from` with the SQL of each row's weight. */
  readonly change: (writing: Writing) => { readonly from: string; readonly weight: string }
  /**
   * The rows of now for each row of what stands before it in FROM, found by an index; undefined where no condition
   * allows that. Conditions are about both; those in `rest` are still to be asked.
   */
  readonly probe: (writing: Writing, conditions: readonly Expression[]) => Probe | undefined
}

export type Part = {
  readonly id: number
  readonly columns: readonly FlowColumn[]
  readonly found: Found
}

export type Probe = { readonly from: string; readonly rest: readonly Expression[] }

/** One relation, of which only the rows that satisfy the conditions count. */
export function bundleOf(id: number, flow: Flow, conditions: readonly Expression[]): Bundle {
  const as = `r${id}`
  const { columns, found } = flow
  const select = (text: string, where: readonly Expression[], writing: Writing) =>
    `SELECT ${as}.* FROM (${text}) AS ${as}${whereText(where, writing)}`
  const key = {}
  return {
    parts: [{ id, columns, found }],
    rows: (writing) => `(${select(flow.rows(writing), conditions, writing)}) AS ${as}`,
    change: (writing) => {
      const name = writing.common(key, () => select(flow.change(writing), conditions, writing))
      return { from: `${name} AS ${as}`, weight: `${as}.w` }
    },
    probe: (writing, asked) => {
      if (!asked.some((each) => finds(each, { id, found }))) return undefined
      // What ends with OFFSET is planned by itself, for one row of what stands before it.
      const text = select(flow.rows(writing), [...conditions, ...asked], writing)
      return { from: `LATERAL (${text} OFFSET 0) AS ${as}`, rest: [] }
    },
  }
}

/** Whether a condition says what a column or field of the relation, by which rows are found, is equal to. */
function finds(condition: Expression, { id, found }: Pick<Part, 'id' | 'found'>): boolean {
  const isFound = (side: Expression) =>
    (side.kind === 'field' && side.relation === id && found.fields) ||
    (side.kind === 'column' && side.relation === id && found.columns.has(side.column))
  const isOther = (side: Expression) => {
    const used = relationsIn(side)
    return used.size > 0 && !used.has(id)
  }
  if (condition.kind === 'condition') {
    const { relation, parent, condition: test } = condition
    const isOf = relation === id || parent === id
    return found.fields && isOf && parent !== undefined && referencesOf(test).length > 0
  }
  if (condition.kind !== 'compare' || condition.operator !== '=') return false
  const { left, right } = condition
  return (isFound(left) && isOther(right)) || (isFound(right) && isOther(left))
}

export function whereText(conditions: readonly Expression[], writing: Writing): string {
  return conditions.length === 0 ? '' : `\nWHERE ${conditions.map(writing.print).join('\n AND ')}`
}

export type Projection = {
  readonly from: Bundle
  readonly where: readonly Expression[]
  readonly columns: readonly Expression[]
  /** Relations whose records are given whole, beside the columns. */
  readonly records: readonly number[]
}

/** The rows of a bundle that satisfy the conditions, as columns c0, c1 ..., and `data`, `body` of whole records. */
export function projectFlow(projection: Projection): Flow {
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
      ...columns.map(({ type }, at): FlowColumn => ({ name: `c${at}`, type: sqlTypes[type] })),
      ...wholes,
    ],
    found: from.parts.length === 1 ? foundOf(first?.found ?? notFound, columns) : notFound,
    rows: (writing) =>
      `SELECT ${select(writing)}\nFROM ${from.rows(writing)}${whereText(where, writing)}`,
    change: (writing) => {
      const { from: text, weight } = from.change(writing)
      return `SELECT ${select(writing)}, ${weight} AS w\nFROM ${text}${whereText(where, writing)}`
    },
  }
}

/** Columns that are nothing but columns of a relation are found as those are. */
function foundOf({ columns, fields }: Found, list: readonly Expression[]): Found {
  const passed = list.flatMap((each, at) =>
    each.kind === 'column' && columns.has(each.column) ? [at] : [],
  )
  return { columns: new Set(passed), fields }
}

/** A place in the order of storing is a whole number in PostgreSQL, but a number like others in a query. */
function columnText(expression: Expression, { print }: Writing): string {
  return expression.kind === 'leaf' ? `${print(expression)}::numeric` : print(expression)
}

export type Side = { readonly flow: Flow; readonly types: readonly ValueType[] }

/** The rows of all sides, their columns made into the types. */
export function unionFlow(sides: readonly Side[], types: readonly ValueType[]): Flow {
  const all = (part: 'rows' | 'change', writing: Writing) =>
    sides
      .map(({ flow, types: own }, at) => {
        const columns = types.map((to, place) => {
          const from = present(own[place], 'the type')
          const name = `side.c${place}`
          const made = from === to || from === 'null' ? name : castText(name, { from, to })
          return `${from === 'null' ? `${made}::${sqlTypes[to]}` : made} AS c${place}`
        })
        const weight = part === 'change' ? ', side.w' : ''
        const leaf = `concat_ws('-', ${at}, side.leaf) AS leaf`
        return `SELECT ${[leaf, ...columns].join(', ')}${weight} FROM (${flow[part](writing)}) AS side`
      })
      .join('\nUNION ALL ')
  return {
    columns: [
      { name: 'leaf', type: 'text' },
      ...types.map((type, at): FlowColumn => ({ name: `c${at}`, type: sqlTypes[type] })),
    ],
    found: notFound,
    rows: (writing) => all('rows', writing),
    change: (writing) => all('change', writing),
  }
}

/** The change, or everything as if it had just come. */
export function weighted(flow: Flow, mode: Mode, writing: Writing): string {
  if (mode === 'advance') return flow.change(writing)
  return `SELECT row_of.*, 1 AS w FROM (${flow.rows(writing)}) AS row_of`
}

function namesOf(columns: readonly FlowColumn[]): readonly string[] {
  return columns.map(({ name }) => name)
}
