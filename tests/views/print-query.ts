import {
  type Columns,
  printTerm,
  printTests,
  printValue,
  type Scope,
  type Text,
  type Type,
} from './print-term.ts'
import {
  type CountedForm,
  isCall,
  isGrouped,
  isView,
  listNamed,
  type Page,
  type Query,
  type Relation,
  type Select,
} from './query-tree.ts'

/**
 * A view's query: `ours` for the service, with collections as `app::a`; `plain` for PostgreSQL, which gives the same
 * rows as the column `row` out of relations such as `live.a`, whose columns are `leaf` and `data`.
 */
export type Definition = Text

/** Throws where the query names something that is gone, as a simplified one may. */
export function printDefinition(query: Query): Definition {
  const { ours, plain } = printQuery(query)
  const row = findColumns(query) === 'records' ? 'plain.data' : 'to_jsonb(plain)'
  const common = listNamed(query).filter((each) => !isView(each))
  const tables = new Map(common.map((each) => [each.name, printQuery(each.query).ours]))
  const list = [...tables].map(([name, text]) => `${name} AS (${text})`).join(', ')
  return {
    ours: list === '' ? ours : `WITH ${list} ${ours}`,
    plain: `SELECT ${row} AS row FROM (${plain}) AS plain`,
  }
}

export function findColumns(query: Query): Columns {
  if (query.kind === 'union') return unionColumns(query.left, query.right)
  if (query.kind === 'counted') {
    const columns = findColumns(query.query)
    const type = columns === 'records' ? undefined : columns.get('c0')
    if (type === undefined) throw new Error('there is no first column')
    return new Map([
      ['c0', type],
      ['c1', 'number'],
    ])
  }
  if (query.columns.length === 0) return 'records'
  const scope = makeScope(query.from)
  return new Map(query.columns.map(({ name, value }) => [name, printValue(value, scope).type]))
}

export function makeScope(relation: Relation): Scope {
  switch (relation.kind) {
    case 'collection':
      return new Map([[relation.as, 'records']])
    case 'query':
    case 'named':
      return new Map([[relation.as, findColumns(relation.query)]])
    case 'join':
      return new Map([...makeScope(relation.left), ...makeScope(relation.right)])
  }
}

function printQuery(query: Query): Text {
  switch (query.kind) {
    case 'select':
      return printSelect(query)
    case 'union': {
      const columns = unionColumns(query.left, query.right)
      const [left, right] = [
        printSide(query.left, columns, 'l'),
        printSide(query.right, columns, 'r'),
      ]
      const word = query.all ? 'UNION ALL' : 'UNION'
      return {
        ours: `${left.ours} ${word} ${right.ours}`,
        plain: `${left.plain} ${word} ${right.plain}`,
      }
    }
    case 'counted': {
      findColumns(query)
      const { as } = query
      const of = ({ from, word }: { from: string; word: string }) =>
        countedForms[query.form ?? 'window'](`${as}.c0`, `FROM (${from})${word} ${as}`)
      const { ours, plain } = printQuery(query.query)
      return { ours: of({ from: ours, word: '' }), plain: of({ from: plain, word: ' AS' }) }
    }
  }
}

/** The text of each form, the same for both, by the first column and FROM. */
const countedForms: Readonly<Record<CountedForm, (column: string, from: string) => string>> = {
  window: (column, from) =>
    `SELECT ${column}, count(*) OVER (PARTITION BY ${column}) AS c1 ${from}`,
  series: (column, from) => `SELECT ${column}, n AS c1 ${from}, generate_series(1, 2) AS n`,
  list: (column, from) => `SELECT ${column}, n AS c1 ${from} CROSS JOIN unnest(ARRAY[3, 4]) AS n`,
  'first of each': (column, from) => `SELECT DISTINCT ON (${column}) ${column}, 1 AS c1 ${from}`,
  rollup: (column, from) => `SELECT ${column}, count(*) AS c1 ${from} GROUP BY ROLLUP (${column})`,
  median: (column, from) =>
    `SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY ${column}) AS c0, count(*) AS c1 ${from}`,
  once: (column, from) =>
    `SELECT string_agg(DISTINCT ${column}, ',' ORDER BY ${column} DESC) AS c0, count(*) AS c1 ${from}`,
  variance: (column, from) => `SELECT round(var_pop(${column}), 6) AS c0, count(*) AS c1 ${from}`,
  lateral: (column, from) =>
    `SELECT ${column}, near.n AS c1 ${from} CROSS JOIN LATERAL (SELECT count(*) AS n FROM (VALUES (1), (2), (NULL)) AS v (b) WHERE ${column} IS NULL OR v.b > 1) AS near`,
}

/** The columns that both sides have; of different types they are JSON. */
function unionColumns(left: Query, right: Query): ReadonlyMap<string, Type> {
  const [one, other] = [findColumns(left), findColumns(right)]
  if (one === 'records' || other === 'records') throw new Error('a union of whole records')
  const width = Math.min(one.size, other.size)
  const [types, others] = [[...one.values()], [...other.values()]]
  return new Map(
    types.slice(0, width).map((type, at) => [`c${at}`, type === others[at] ? type : 'json']),
  )
}

function printSide(query: Query, columns: ReadonlyMap<string, Type>, as: string): Text {
  const { ours, plain } = printQuery(query)
  const own = [...columnEntries(query)]
  const list = (convert: boolean) =>
    [...columns]
      .map(([name, type], at) => {
        const [from, had] = own[at] ?? ['', type]
        const value = `${as}.${from}`
        return `${convert && had !== type ? `to_jsonb(${value})` : value} AS ${name}`
      })
      .join(', ')
  return {
    ours: `SELECT ${list(false)} FROM (${ours}) ${as}`,
    plain: `SELECT ${list(true)} FROM (${plain}) AS ${as}`,
  }
}

function columnEntries(query: Query): Iterable<readonly [string, Type]> {
  const columns = findColumns(query)
  return columns === 'records' ? [] : columns
}

function printSelect(select: Select): Text {
  const { columns, distinct, from, where, having, page } = select
  const scope = makeScope(from)
  const relation = printRelation(from)
  const made = columns.map((column) => ({ column, text: printValue(column.value, scope) }))
  const own = new Map(made.map(({ column: { name }, text }) => [name, text]))
  const keys = columns.flatMap(({ value }, at) => (isCall(value) ? [] : [at + 1]))
  const tests = printTests(where, { scope })
  const groups = printTests(having, { scope, own })
  const text = (dialect: 'ours' | 'plain', whole: string) => {
    const list = made.map(({ column: { name }, text }) => `${text[dialect]} AS ${name}`)
    return [
      `SELECT ${distinct ? 'DISTINCT ' : ''}${list.length === 0 ? whole : list.join(', ')}`,
      `FROM ${relation[dialect]}`,
      ...(where.length === 0 ? [] : [`WHERE ${tests[dialect]}`]),
      ...(isGrouped(select) && keys.length > 0 ? [`GROUP BY ${keys.join(', ')}`] : []),
      ...(having.length === 0 ? [] : [`HAVING ${groups[dialect]}`]),
    ].join(' ')
  }
  const rows = { ours: text('ours', '*'), plain: text('plain', `${getRelationName(from)}.data`) }
  return page === undefined ? rows : printPage(select, page, rows)
}

/** Whole records come from one relation. */
function getRelationName(relation: Relation): string {
  return relation.kind === 'join' ? '' : relation.as
}

/** The first rows, in an order that leaves nothing open: that of storing, or of groups that of all their columns. */
function printPage(select: Select, { order, limit, offset }: Page, rows: Text): Text {
  const end = ` LIMIT ${limit}${offset === 0 ? '' : ` OFFSET ${offset}`}`
  const ours = `${rows.ours} ORDER BY ${order.map(({ by, ending }) => `${by}${ending}`).join(', ')}${end}`
  const { from, columns } = select
  const isSet = select.distinct || isGrouped(select)
  if (!isSet) {
    const orders = order.map(({ by, ending }) => `${sorted(orderedBy(select, by))}${ending}`)
    const all = [...orders, ...listLeaves(from)].join(', ')
    return { ours, plain: `${rows.plain} ORDER BY ${all}${end}` }
  }
  const types = findColumns(select)
  const requireType = (name: string) => {
    const type = types === 'records' ? undefined : types.get(name)
    if (type === undefined) throw new Error(`there is no column ${name}`)
    return type
  }
  const short = columns.map(({ name }) =>
    requireType(name) === 'json'
      ? `CASE jsonb_typeof(${name}) WHEN 'number' THEN to_jsonb(trim_scale(${name}::numeric)) ELSE ${name} END AS ${name}`
      : name,
  )
  const orders = order.map(
    ({ by, ending }) => `${sorted({ plain: by, type: requireType(by) })}${ending}`,
  )
  const ties = columns.flatMap(({ name }) =>
    requireType(name) === 'json'
      ? [sorted({ plain: name, type: 'json' }), `shortest.${name} #>> '{}'`]
      : [name],
  )
  const shortest = `SELECT ${short.join(', ')} FROM (${rows.plain}) AS i`
  return {
    ours,
    plain: `SELECT * FROM (${shortest}) AS shortest ORDER BY ${[...orders, ...ties].join(', ')}${end}`,
  }
}

function orderedBy({ columns, from }: Select, by: string): { plain: string; type: Type } {
  const scope = makeScope(from)
  const column = columns.find(({ name }) => name === by)
  if (column !== undefined) return printValue(column.value, scope)
  return printTerm({ kind: 'field', of: getRelationName(from), name: by }, scope)
}

/** Makes all lists and objects equal for sorting. */
function sorted({ plain, type }: { plain: string; type: Type }): string {
  if (type !== 'json') return plain
  return `CASE WHEN jsonb_typeof(${plain}) IN ('object', 'array') THEN '{}'::jsonb ELSE ${plain} END`
}

function listLeaves(relation: Relation): string[] {
  if (relation.kind === 'collection') return [`${relation.as}.leaf`]
  if (relation.kind === 'join') return [...listLeaves(relation.left), ...listLeaves(relation.right)]
  throw new Error('a page of rows of a sub-query')
}

function printRelation(relation: Relation): Text {
  switch (relation.kind) {
    case 'collection': {
      const { name, as } = relation
      return { ours: `app::${name} ${as}`, plain: `live.${name} AS ${as}` }
    }
    case 'named':
    case 'query': {
      const { ours, plain } = printQuery(relation.query)
      const { as } = relation
      const own = relation.kind === 'named' ? relation.name : `(${ours})`
      return { ours: `${own} ${as}`, plain: `(${plain}) AS ${as}` }
    }
    case 'join': {
      const [left, right] = [printRelation(relation.left), printRelation(relation.right)]
      const on = printTests(relation.on, { scope: makeScope(relation) })
      const { word } = relation
      const end = (tests: string) => (word === 'CROSS JOIN' ? '' : ` ON ${tests}`)
      return {
        ours: `${left.ours} ${word} ${right.ours}${end(on.ours)}`,
        plain: `${left.plain} ${word} ${right.plain}${end(on.plain)}`,
      }
    }
  }
}
