import { type Call, isCall, type Term, type Test } from './query-tree.ts'

/** A piece of a query in the language of the service, and in plain PostgreSQL. */
export type Text = { readonly ours: string; readonly plain: string }

export type Type = 'json' | 'number' | 'text' | 'boolean'
export type Typed = Text & { readonly type: Type }

/** The columns of a relation by name; of whole records there are none but the fields of `data`. */
export type Columns = ReadonlyMap<string, Type> | 'records'
/** Relations by name. */
export type Scope = ReadonlyMap<string, Columns>

export const recordFields: readonly string[] = ['g', 'h', 'n', 'm', 't', 'v']

export function printValue(value: Term | Call, scope: Scope): Typed {
  return isCall(value) ? printCall(value, scope) : printTerm(value, scope)
}

/** The relations, and the own columns of a grouped query. */
type Tables = { readonly scope: Scope; readonly own?: ReadonlyMap<string, Typed> }

export function printTests(tests: readonly Test[], tables: Tables): Text {
  const made = tests.map((test) => printTest(test, tables))
  return {
    ours: made.map(({ ours }) => ours).join(' AND '),
    plain: made.map(({ plain }) => `(${plain})`).join(' AND '),
  }
}

function printTest(test: Test, tables: Tables): Text {
  switch (test.kind) {
    case 'known': {
      const { ours, plain } = printOwn(test.term, tables)
      return { ours: `${ours} IS NOT NULL`, plain: `${plain} IS NOT NULL` }
    }
    case 'all':
    case 'any': {
      const [one, other] = [printTest(test.one, tables), printTest(test.other, tables)]
      const word = test.kind === 'all' ? 'AND' : 'OR'
      return {
        ours: `(${one.ours} ${word} ${other.ours})`,
        plain: `(${one.plain} ${word} ${other.plain})`,
      }
    }
    case 'not': {
      const { ours, plain } = printTest(test.test, tables)
      return { ours: `NOT (${ours})`, plain: `NOT (${plain})` }
    }
    case 'compare':
      return printComparison(printOwn(test.term, tables), test)
    case 'equal': {
      const [one, other] = [printOwn(test.one, tables), printOwn(test.other, tables)]
      if (one.type !== other.type) throw new Error('an equality of two types')
      return { ours: `${one.ours} = ${other.ours}`, plain: `${one.plain} = ${other.plain}` }
    }
    case 'apart':
      return printUnequal(printOwn(test.one, tables), printOwn(test.other, tables))
  }
}

/** Values of different types are unequal, and neither less nor greater. */
function printComparison(
  { ours, plain, type }: Typed,
  { sign, limit }: { readonly sign: string; readonly limit: string },
): Text {
  if (type === 'boolean') return { ours, plain }
  const isText = limit.startsWith('"')
  const constant = isText ? `'${limit.slice(1, -1)}'` : limit
  if (type !== 'json') {
    if (isText !== (type === 'text')) throw new Error('a comparison of two types')
    return { ours: `${ours} ${sign} ${constant}`, plain: `${plain} ${sign} ${constant}` }
  }
  const json = `${plain} ${sign} '${limit}'::jsonb`
  if (sign === '=' || sign === '<>') return { ours: `${ours} ${sign} ${constant}`, plain: json }
  return {
    ours: `${ours} ${sign} ${constant}`,
    plain: `CASE WHEN ${plain} IS NOT NULL THEN jsonb_typeof(${plain}) = '${isText ? 'string' : 'number'}' AND ${json} END`,
  }
}

function printUnequal(one: Typed, other: Typed): Text {
  if (one.type === other.type && (one.type === 'number' || one.type === 'text'))
    return { ours: `${one.ours} <= ${other.ours}`, plain: `${one.plain} <= ${other.plain}` }
  const asJson = ({ type, plain }: Typed) => (type === 'json' ? plain : `to_jsonb(${plain})`)
  return {
    ours: `${one.ours} IS DISTINCT FROM ${other.ours}`,
    plain: `${asJson(one)} IS DISTINCT FROM ${asJson(other)}`,
  }
}

function printOwn(term: Term, { scope, own }: Tables): Typed {
  if (own === undefined || term.kind !== 'field' || term.of !== '') return printTerm(term, scope)
  const found = own.get(term.name)
  if (found === undefined) throw new Error(`there is no column ${term.name}`)
  return found
}

export function printTerm(term: Term, scope: Scope): Typed {
  switch (term.kind) {
    case 'field':
      return printField(term, scope)
    case 'number':
      return printNumber(printTerm(term.of, scope))
    case 'text': {
      const { type, ours, plain } = printTerm(term.of, scope)
      if (type === 'text') return { type, ours, plain }
      const value = `CASE jsonb_typeof(${plain}) WHEN 'string' THEN ${plain} #>> '{}' END`
      return { type: 'text', ours: `lower(${ours})`, plain: `lower(${value})` }
    }
    case 'twice': {
      const { ours, plain } = printNumber(printTerm(term.of, scope))
      return { type: 'number', ours: `(${ours} * 2)`, plain: `(${plain} * 2)` }
    }
    case 'either': {
      const [one, other] = [printTerm(term.one, scope), printTerm(term.other, scope)]
      if (one.type !== other.type) throw new Error('one or the other of two types')
      return {
        type: one.type,
        ours: `coalesce(${one.ours}, ${other.ours})`,
        plain: `coalesce(${one.plain}, ${other.plain})`,
      }
    }
  }
}

function printField({ of, name }: { of: string; name: string }, scope: Scope): Typed {
  const columns = scope.get(of)
  const ours = `${of}.${name}`
  if (columns === 'records')
    return { type: 'json', ours, plain: `nullif(${of}.data->'${name}', 'null')` }
  const type = columns?.get(name)
  if (type === undefined) throw new Error(`there is no ${ours}`)
  return { type, ours, plain: ours }
}

function printNumber({ type, ours, plain }: Typed): Typed {
  if (type === 'number') return { type, ours, plain }
  return {
    type: 'number',
    ours: `(${ours} + 0)`,
    plain: `CASE jsonb_typeof(${plain}) WHEN 'number' THEN (${plain})::numeric END`,
  }
}

function printCall(call: Call, scope: Scope): Typed {
  const filter = call.filter.length === 0 ? undefined : printTests(call.filter, { scope })
  const filtered = (text: string, tests: readonly (string | undefined)[]) => {
    const own = tests.filter((test) => test !== undefined)
    if (own.length === 0) return text
    return `${text} FILTER (WHERE ${own.map((test) => `(${test})`).join(' AND ')})`
  }
  return printOwnCall(call, scope, {
    ours: (text) => filtered(text, [filter?.ours]),
    plain: (text, test) => filtered(text, [filter?.plain, test]),
  })
}

/** Aggregates over what the filter leaves, and the test where there is one. */
type Filtered = {
  readonly ours: (text: string) => string
  readonly plain: (text: string, test?: string) => string
}

function printOwnCall(call: Call, scope: Scope, { ours, plain }: Filtered): Typed {
  if (call.kind === 'rows')
    return { type: 'number', ours: ours('count(*)'), plain: `${plain('count(*)')}::numeric` }
  const { name } = call
  if (call.kind === 'truth') {
    const test = printTest(call.of, { scope })
    const of = { ours: `${name}(${test.ours})`, plain: `${name}(${test.plain})` }
    return { type: 'boolean', ours: ours(of.ours), plain: plain(of.plain) }
  }
  const term = printTerm(call.of, scope)
  if (name === 'count' || name === 'count distinct') {
    const of = (text: string) => `count(${name === 'count' ? '' : 'DISTINCT '}${text})`
    return { type: 'number', ours: ours(of(term.ours)), plain: `${plain(of(term.plain))}::numeric` }
  }
  if (name === 'sum' || name === 'avg') {
    const value = printNumber(term).plain
    const [sum, count] = [plain(`sum(${value})`), plain(`count(${value})`)]
    const text = name === 'sum' ? sum : `(trim_scale(${sum}) / nullif(${count}, 0))`
    return { type: 'number', ours: ours(`${name}(${term.ours})`), plain: text }
  }
  const order = `ORDER BY ${term.plain}${name === 'max' ? ' DESC' : ''}`
  const test =
    term.type === 'json'
      ? `jsonb_typeof(${term.plain}) IN ('string', 'number', 'boolean')`
      : `${term.plain} IS NOT NULL`
  return {
    type: term.type,
    ours: ours(`${name}(${term.ours})`),
    plain: `(${plain(`array_agg(${term.plain} ${order})`, test)})[1]`,
  }
}
