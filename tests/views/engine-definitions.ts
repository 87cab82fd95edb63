import type { Chance } from './engine-chance.ts'

/** A piece of a query in the language of the service, and in plain PostgreSQL over the collections' tables. */
type Text = { readonly ours: string; readonly plain: string }
type Type = 'json' | 'number' | 'text' | 'boolean'
type Term = Text & { readonly type: Type }

/** A SELECT; its plain form has columns of the same names. */
export type Definition = Text & { readonly columns: readonly { name: string; type: Type }[] }

/** A relation in FROM with the terms that it offers. */
type Relation = Text & { readonly fields: readonly Term[]; readonly keys: readonly Term[] }

export type Draw = { readonly chance: Chance; readonly schema: string; next: number }

export function definition(draw: Draw, depth = 2): Definition {
  const { chance } = draw
  const kind = chance.below(100)
  if (kind < 10 && depth > 0) return union(draw, depth)
  if (kind < 45) return grouped(draw, depth)
  if (kind < 55) return distinct(draw, depth)
  return rows(draw, depth)
}

/** The first rows of a definition, in an order that leaves nothing open. */
export function topDefinition(draw: Draw): Definition {
  const { chance } = draw
  const inner = chance.happens(50) ? grouped(draw, 1) : distinct(draw, 1)
  const orders = chance.some(inner.columns, 1, 2).map(({ name, type }) => ({
    name,
    type,
    ending: chance.one(['', ' DESC', ' DESC NULLS LAST', ' NULLS FIRST']),
  }))
  const limit = chance.one([0, 1, 2, 3, 5, 20])
  const offset = chance.one([0, 0, 1, 2])
  const page = ` LIMIT ${limit}${offset === 0 ? '' : ` OFFSET ${offset}`}`
  const sorted = (name: string, type: Type) =>
    type === 'json'
      ? `CASE WHEN jsonb_typeof(${name}) IN ('object', 'array') THEN '{}'::jsonb ELSE ${name} END`
      : name
  const ties = inner.columns.flatMap(({ name, type }) =>
    type === 'json' ? [sorted(name, type), `shortest.${name} #>> '{}'`] : [name],
  )
  const short = inner.columns.map(({ name, type }) =>
    type === 'json'
      ? `CASE jsonb_typeof(${name}) WHEN 'number' THEN to_jsonb(trim_scale(${name}::numeric)) ELSE ${name} END AS ${name}`
      : name,
  )
  return {
    columns: inner.columns,
    ours: `${inner.ours} ORDER BY ${orders.map(({ name, ending }) => `${name}${ending}`).join(', ')}${page}`,
    plain: `SELECT * FROM (SELECT ${short.join(', ')} FROM (${inner.plain}) AS i) AS shortest ORDER BY ${[
      ...orders.map(({ name, type, ending }) => `${sorted(name, type)}${ending}`),
      ...ties,
    ].join(', ')}${page}`,
  }
}

/** The first records of one collection, whole, in an order that storing decides where it leaves something open. */
export function topRecords({ chance, schema }: Draw): Definition {
  const table = chance.below(2) + 1
  const field = chance.one(['g', 'n', 't', 'v'])
  const ending = chance.one(['', ' DESC', ' DESC NULLS LAST'])
  const page = ` LIMIT ${chance.one([1, 2, 4])}`
  const value = `nullif(data->'${field}', 'null')`
  return {
    columns: [],
    ours: `SELECT * FROM app::${'abc'[table - 1]} ORDER BY ${field}${ending}${page}`,
    plain: `SELECT data FROM ${schema}.c_${table} WHERE superseded_by IS NULL AND NOT deleted
 ORDER BY CASE WHEN jsonb_typeof(${value}) IN ('object', 'array') THEN '{}'::jsonb ELSE ${value} END${ending}, leaf${page}`,
  }
}

/** Whole records that satisfy a condition. */
export function wholeRecords(draw: Draw): Definition {
  const from = collection(draw)
  const where = predicate(draw, from.fields)
  return {
    columns: [],
    ours: `SELECT * FROM ${from.ours} WHERE ${where.ours}`,
    plain: `SELECT data FROM ${from.plain} WHERE ${where.plain}`,
  }
}

function alias(draw: Draw): string {
  draw.next += 1
  return `x${draw.next}`
}

function field(of: string, name: string): Term {
  return { type: 'json', ours: `${of}.${name}`, plain: `nullif(${of}.data->'${name}', 'null')` }
}

function collection(draw: Draw): Relation {
  const of = alias(draw)
  const table = draw.chance.below(3) + 1
  const fields = ['g', 'h', 'n', 'm', 't', 'v'].map((name) => field(of, name))
  return {
    ours: `app::${'abc'[table - 1]} ${of}`,
    plain: `(SELECT leaf, data FROM ${draw.schema}.c_${table} WHERE superseded_by IS NULL AND NOT deleted) AS ${of}`,
    fields,
    keys: fields.slice(0, 2),
  }
}

function subquery(draw: Draw, depth: number): Relation {
  const inner = definition(draw, depth - 1)
  const of = alias(draw)
  const fields = inner.columns.map(({ name, type }): Term => {
    return { type, ours: `${of}.${name}`, plain: `${of}.${name}` }
  })
  return {
    ours: `(${inner.ours}) ${of}`,
    plain: `(${inner.plain}) AS ${of}`,
    fields,
    keys: fields.filter(({ type }) => type === 'json'),
  }
}

function source(draw: Draw, depth: number): Relation {
  return depth > 0 && draw.chance.happens(30) ? subquery(draw, depth) : collection(draw)
}

/** One relation, or two or three that are joined. */
function from(draw: Draw, depth: number): Relation {
  const { chance } = draw
  let left = source(draw, depth)
  const joins = chance.one([0, 0, 0, 1, 1, 1, 2])
  for (let made = 0; made < joins; made += 1) {
    const right = source(draw, depth - 1)
    const [one, other] = [left.keys[0], right.keys[0]]
    const fields = [...left.fields, ...right.fields]
    const keys = [...left.keys, ...right.keys]
    if (one === undefined || other === undefined) {
      if (right.keys.length > 0 && left.keys.length === 0) left = right
      continue
    }
    const word = chance.one(['JOIN', 'LEFT JOIN', 'LEFT JOIN', 'RIGHT JOIN', 'FULL JOIN'])
    const a = chance.one(left.keys)
    const b = chance.one(right.keys)
    const tests = [
      { ours: `${a.ours} = ${b.ours}`, plain: `${a.plain} = ${b.plain}` },
      ...(chance.happens(25) ? [predicate(draw, left.fields)] : []),
      ...(chance.happens(25) ? [predicate(draw, right.fields)] : []),
      ...(chance.happens(15) && word !== 'FULL JOIN' ? [comparison(draw, left, right)] : []),
    ]
    left = {
      ours: `${left.ours} ${word} ${right.ours} ON ${tests.map(({ ours }) => ours).join(' AND ')}`,
      plain: `${left.plain} ${word} ${right.plain} ON ${tests.map(({ plain }) => plain).join(' AND ')}`,
      fields,
      keys,
    }
  }
  return left
}

/** Of two sides, without an equality. */
function comparison({ chance }: Draw, left: Relation, right: Relation): Text {
  const [a, b] = [chance.one(left.fields), chance.one(right.fields)]
  if (a.type !== b.type || a.type === 'json' || a.type === 'boolean')
    return {
      ours: `${a.ours} IS DISTINCT FROM ${b.ours}`,
      plain: `${asJson(a)} IS DISTINCT FROM ${asJson(b)}`,
    }
  return { ours: `${a.ours} <= ${b.ours}`, plain: `${a.plain} <= ${b.plain}` }
}

function asJson({ type, plain }: Term): string {
  return type === 'json' ? plain : `to_jsonb(${plain})`
}

function number(term: Term): Term {
  if (term.type === 'number') return term
  const { plain } = term
  return {
    type: 'number',
    ours: `(${term.ours} + 0)`,
    plain: `CASE jsonb_typeof(${plain}) WHEN 'number' THEN (${plain})::numeric END`,
  }
}

function text(term: Term): Term {
  if (term.type === 'text') return term
  const { plain } = term
  return {
    type: 'text',
    ours: `lower(${term.ours})`,
    plain: `lower(CASE jsonb_typeof(${plain}) WHEN 'string' THEN ${plain} #>> '{}' END)`,
  }
}

function predicate(draw: Draw, fields: readonly Term[]): Text {
  const { chance } = draw
  const term = chance.one(fields)
  const kind = chance.below(6)
  if (kind === 0) return { ours: `${term.ours} IS NOT NULL`, plain: `${term.plain} IS NOT NULL` }
  if (kind === 1) {
    const [a, b] = [predicate(draw, fields), predicate(draw, fields)]
    const word = chance.one(['AND', 'OR'])
    return { ours: `(${a.ours} ${word} ${b.ours})`, plain: `(${a.plain} ${word} ${b.plain})` }
  }
  if (kind === 2) {
    const inner = predicate(draw, fields)
    return { ours: `NOT (${inner.ours})`, plain: `NOT (${inner.plain})` }
  }
  const sign = chance.one(['<', '>=', '<>', '='])
  if (term.type === 'boolean') return { ours: term.ours, plain: term.plain }
  if (term.type === 'text')
    return { ours: `${term.ours} ${sign} 'b'`, plain: `${term.plain} ${sign} 'b'` }
  const limit = chance.one(['0', '1', '2.5', '-1'])
  if (term.type === 'number')
    return { ours: `${term.ours} ${sign} ${limit}`, plain: `${term.plain} ${sign} ${limit}` }
  const ours = `${term.ours} ${sign} ${limit}`
  const json = `${term.plain} ${sign} '${limit}'::jsonb`
  if (sign === '=' || sign === '<>') return { ours, plain: json }
  return {
    ours,
    plain: `CASE WHEN ${term.plain} IS NOT NULL THEN jsonb_typeof(${term.plain}) = 'number' AND ${json} END`,
  }
}

function select(columns: readonly Term[], rest: Text, word = 'SELECT'): Definition {
  const list = (dialect: 'ours' | 'plain') =>
    columns.map((column, at) => `${column[dialect]} AS c${at}`).join(', ')
  return {
    columns: columns.map(({ type }, at) => ({ name: `c${at}`, type })),
    ours: `${word} ${list('ours')} ${rest.ours}`,
    plain: `${word} ${list('plain')} ${rest.plain}`,
  }
}

function scalar({ chance }: Draw, fields: readonly Term[]): Term {
  const term = chance.one(fields)
  const kind = chance.below(8)
  if (term.type === 'boolean' || kind > 2) return term
  if (kind === 0 && term.type !== 'text') return number(term)
  if (kind === 1 && term.type !== 'number') return text(term)
  if (term.type === 'text') return term
  const { ours, plain } = number(term)
  return { type: 'number', ours: `(${ours} * 2)`, plain: `(${plain} * 2)` }
}

function body(draw: Draw, depth: number): Text & { readonly fields: readonly Term[] } {
  const relation = from(draw, depth)
  const where = draw.chance.happens(40) ? predicate(draw, relation.fields) : undefined
  return {
    fields: relation.fields,
    ours: `FROM ${relation.ours}${where === undefined ? '' : ` WHERE ${where.ours}`}`,
    plain: `FROM ${relation.plain}${where === undefined ? '' : ` WHERE ${where.plain}`}`,
  }
}

function rows(draw: Draw, depth: number): Definition {
  const rest = body(draw, depth)
  const count = 1 + draw.chance.below(4)
  return select(
    Array.from({ length: count }, () => scalar(draw, rest.fields)),
    rest,
  )
}

function distinct(draw: Draw, depth: number): Definition {
  const rest = body(draw, depth)
  const count = 1 + draw.chance.below(2)
  const columns = Array.from({ length: count }, () => scalar(draw, rest.fields))
  return select(columns, rest, 'SELECT DISTINCT')
}

function union(draw: Draw, depth: number): Definition {
  const word = draw.chance.one(['UNION', 'UNION ALL'])
  const sides = [rows(draw, depth - 1), grouped(draw, depth - 1)]
  const width = Math.min(...sides.map(({ columns }) => columns.length))
  const types = Array.from({ length: width }, (_, at): Type => {
    const [one, other] = sides.map(({ columns }) => columns[at]?.type ?? 'json')
    return one === other ? (one ?? 'json') : 'json'
  })
  const side = ({ ours, plain, columns }: Definition): Text => {
    const of = alias(draw)
    const list = types.map((_, at) => `${of}.c${at} AS c${at}`)
    const made = types.map((type, at) => {
      const from = columns[at]?.type
      return `${from === type ? `${of}.c${at}` : `to_jsonb(${of}.c${at})`} AS c${at}`
    })
    return {
      ours: `SELECT ${list.join(', ')} FROM (${ours}) ${of}`,
      plain: `SELECT ${made.join(', ')} FROM (${plain}) AS ${of}`,
    }
  }
  const made = sides.map(side)
  return {
    columns: types.map((type, at) => ({ name: `c${at}`, type })),
    ours: made.map(({ ours }) => ours).join(` ${word} `),
    plain: made.map(({ plain }) => plain).join(` ${word} `),
  }
}

function aggregate(draw: Draw, fields: readonly Term[]): Term {
  const { chance } = draw
  const filter = chance.happens(20) ? predicate(draw, fields) : undefined
  const ours = (call: string) =>
    `${call}${filter === undefined ? '' : ` FILTER (WHERE ${filter.ours})`}`
  const plain = (call: string, test?: string) => {
    const tests = [filter?.plain, test].filter((each) => each !== undefined)
    return tests.length === 0
      ? call
      : `${call} FILTER (WHERE ${tests.map((each) => `(${each})`).join(' AND ')})`
  }
  const term = chance.one(fields)
  const kind = chance.below(9)
  if (kind === 0)
    return { type: 'number', ours: ours('count(*)'), plain: `${plain('count(*)')}::numeric` }
  if (kind === 1) {
    const test = predicate(draw, fields)
    const name = chance.one(['bool_and', 'bool_or'])
    return {
      type: 'boolean',
      ours: ours(`${name}(${test.ours})`),
      plain: plain(`${name}(${test.plain})`),
    }
  }
  if (kind === 2)
    return {
      type: 'number',
      ours: ours(`count(${term.ours})`),
      plain: `${plain(`count(${term.plain})`)}::numeric`,
    }
  if (kind === 3)
    return {
      type: 'number',
      ours: ours(`count(DISTINCT ${term.ours})`),
      plain: `${plain(`count(DISTINCT ${term.plain})`)}::numeric`,
    }
  if (kind < 6 && (term.type === 'json' || term.type === 'number')) {
    const value = number(term)
    if (kind === 4)
      return {
        type: 'number',
        ours: ours(`sum(${term.ours})`),
        plain: plain(`sum(${value.plain})`),
      }
    return {
      type: 'number',
      ours: ours(`avg(${term.ours})`),
      plain: `(trim_scale(${plain(`sum(${value.plain})`)}) / nullif(${plain(`count(${value.plain})`)}, 0))`,
    }
  }
  const descending = chance.happens(50)
  const name = descending ? 'max' : 'min'
  const order = ` ORDER BY ${term.plain}${descending ? ' DESC' : ''}`
  const test =
    term.type === 'json'
      ? `jsonb_typeof(${term.plain}) IN ('string', 'number', 'boolean')`
      : `${term.plain} IS NOT NULL`
  return {
    type: term.type,
    ours: ours(`${name}(${term.ours})`),
    plain: `(${plain(`array_agg(${term.plain}${order})`, test)})[1]`,
  }
}

function grouped(draw: Draw, depth: number): Definition {
  const { chance } = draw
  const rest = body(draw, depth)
  const keys = chance.happens(15)
    ? []
    : Array.from({ length: chance.one([1, 1, 2]) }, () => scalar(draw, rest.fields))
  const calls = Array.from({ length: 1 + chance.below(3) }, () => aggregate(draw, rest.fields))
  const having = chance.happens(30) ? predicate(draw, [...keys, ...calls]) : undefined
  const groups = keys.map((_, at) => at + 1).join(', ')
  const tail = (dialect: 'ours' | 'plain') =>
    `${rest[dialect]}${keys.length === 0 ? '' : ` GROUP BY ${groups}`}${having === undefined ? '' : ` HAVING ${having[dialect]}`}`
  return select([...keys, ...calls], { ours: tail('ours'), plain: tail('plain') })
}
