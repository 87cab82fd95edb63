import { addressPattern, localBlocks } from './address.ts'
import { compileParameter, printStringTest } from './compile-parameter.ts'
import { compileReference } from './compile-reference.ts'
import type { Bound, Condition, FieldCondition, FieldPath, Scalar } from './condition.ts'
import { compileDataSet, type DataSets } from './data-set.ts'
import { type FieldColumns, findFieldColumn } from './field-column.ts'
import {
  findSuccessor,
  isLong,
  keyOrder,
  printKeyExpression,
  printTextExpression,
  printValueExpression,
  toKey,
} from './index-key.ts'
import { printColumnTest } from './print-column-test.ts'
import { compileSearch } from './search.ts'
import { type Parameters, quoteName } from './sql-text.ts'
import { makePartsPattern, makeWordPatterns, printPartsTest } from './text-parts.ts'

type Scope = {
  readonly record: string
  readonly parameters: Parameters
  /** SQL of the jsonb that `reference` conditions compare with. */
  readonly parent?: string | undefined
  /** The data sets that conditions may name; any other is refused. */
  readonly dataSets?: DataSets | undefined
  /** The columns that conditions on values may test, of a row with this alias. */
  readonly columns?: { readonly alias: string; readonly fields: FieldColumns } | undefined
}
/** A field in the three forms of index-key.ts, in brackets. */
type Forms = { readonly key: string; readonly value: string; readonly text: string }
type Field = Scope & Forms

/**
 * Compiles an SQL expression that is true for exactly the records that satisfy the condition (false or NULL for
 * others). No record makes it fail: every cast stands behind a CASE that has checked that the value can be cast.
 * `record` is the SQL of the record's jsonb.
 */
export function compileCondition(condition: Condition, scope: Scope): string {
  return compile(condition, scope, true)
}

/** NOT is pushed down to the fields, where unknown (a missing field) can be told from false. */
function compile(condition: Condition, scope: Scope, wanted: boolean): string {
  switch (condition.kind) {
    case 'always':
      return wanted ? 'TRUE' : 'FALSE'
    case 'never':
      return wanted ? 'FALSE' : 'TRUE'
    case 'not':
      return compile(condition.condition, scope, !wanted)
    case 'all':
    case 'any': {
      const word = (condition.kind === 'all') === wanted ? ' AND ' : ' OR '
      return `(${condition.conditions.map((each) => compile(each, scope, wanted)).join(word)})`
    }
    default:
      return compileField(condition, scope, wanted)
  }
}

function compileField(condition: FieldCondition, scope: Scope, wanted: boolean): string {
  const field = makeField(condition.path, scope)
  if (condition.kind === 'null') return `${field.key} IS ${wanted ? '' : 'NOT '}NULL`
  if (condition.kind === 'exists') return `${field.value} IS ${wanted ? 'NOT ' : ''}NULL`
  const test = compileTest(condition, field)
  const byRecord = wanted ? test : `(${test}) IS NOT TRUE`
  const column = findColumn(condition.path, scope)
  const byColumn = column && printColumnTest(condition, column, scope.parameters)
  if (column === undefined || byColumn === undefined) return byRecord
  // Only rows without a value in the column look into their record.
  return `((${column.column} IS NOT NULL AND ${wanted ? '' : 'NOT '}${byColumn}) OR (${column.column} IS NULL AND ${byRecord}))`
}

function findColumn(path: FieldPath, { columns }: Scope) {
  const found = findFieldColumn(columns?.fields, path)
  if (columns === undefined || found === undefined) return undefined
  return { column: quoteName(columns.alias, found.name), type: found.type }
}

type ValueCondition = Exclude<FieldCondition, { readonly kind: 'null' | 'exists' }>

function compileTest(condition: ValueCondition, field: Field): string {
  switch (condition.kind) {
    case 'one-of':
      return compileOneOf(condition.values, field)
    case 'range':
      return range(condition, field)
    case 'starts':
      return condition.ignoreCase
        ? besidePart(condition, field, startsIgnoringCase(condition.text, field))
        : starts(condition.text, field)
    case 'ends':
      return besidePart(condition, field, ends(condition, field))
    case 'includes': {
      const { value: wanted, ignoreCase } = condition
      const test = ignoreCase ? includesIgnoringCase(wanted, field) : includes(wanted, field)
      return typeof wanted === 'string'
        ? besidePart({ text: wanted, ignoreCase }, field, test)
        : test
    }
    case 'search': {
      const patterns = makeWordPatterns(condition.text)
      return besidePatterns(patterns, { ignoreCase: true, field }, compileSearch(condition, field))
    }
    case 'matches':
      return printStringTest(
        field,
        `${field.text} ~ ${field.parameters.add(condition.pattern, 'text')}`,
      )
    case 'in-block':
      return whenAddress(
        field,
        `${field.text}::inet <<= ${field.parameters.add(condition.block, 'inet')}`,
      )
    case 'parameter':
      return compileParameter(condition, field)
    case 'reference':
      return compileReference(condition, field)
    case 'in-data-set':
      return compileDataSet(condition, field, (test) => whenAddress(field, test))
    case 'address': {
      const isLocal = `${field.text}::inet <<= ANY ('{${localBlocks.join(',')}}'::inet[])`
      return whenAddress(field, condition.local ? isLocal : `NOT ${isLocal}`)
    }
  }
}

/** A value whose key has the greatest length is compared twice: a longer value could have the same key. */
function compileOneOf(values: readonly Scalar[], field: Field): string {
  const { add } = field.parameters
  const keys = distinct(values.map((value) => JSON.stringify(toKey(value))))
  const [only] = keys
  const byKey =
    only !== undefined && keys.length === 1
      ? `${field.key} = ${add(only, 'jsonb')}`
      : `${field.key} = ANY (${add(keys, 'jsonb[]')})`
  if (!values.some(isLong)) return byKey
  const exact = distinct(values.map((value) => JSON.stringify(value)))
  return `(${byKey} AND ${field.value} = ANY (${add(exact, 'jsonb[]')}))`
}

function distinct(texts: readonly string[]): readonly string[] {
  return texts.length === 1 ? texts : [...new Set(texts)]
}

function range(condition: { readonly from?: Bound; readonly to?: Bound }, field: Field): string {
  const limits = typeLimits(condition.from ?? condition.to)
  const lower =
    condition.from === undefined
      ? [`${field.key} >= ${limits.least}`]
      : above(condition.from, field)
  const upper =
    condition.to === undefined ? [`${field.key} ${limits.below}`] : below(condition.to, field)
  return `(${[...lower, ...upper].join(' AND ')})`
}

/** Returns both ends of a JSON type: without them a range would include the types that sort beside it. */
function typeLimits(bound: Bound | undefined): { readonly least: string; readonly below: string } {
  switch (typeof bound?.value) {
    case 'string':
      return { least: keyOrder.stringLeast, below: `< ${keyOrder.numberLeast}` }
    case 'number':
      return { least: keyOrder.numberLeast, below: `< ${keyOrder.booleanLeast}` }
    default:
      return { least: keyOrder.booleanLeast, below: `<= ${keyOrder.booleanMost}` }
  }
}

function above(bound: Bound, field: Field): readonly string[] {
  const sign = bound.inclusive ? '>=' : '>'
  const key = field.parameters.add(JSON.stringify(toKey(bound.value)), 'jsonb')
  if (!isLong(bound.value)) return [`${field.key} ${sign} ${key}`]
  const exact = field.parameters.add(JSON.stringify(bound.value), 'jsonb')
  return [`${field.key} >= ${key}`, `${field.value} ${sign} ${exact}`]
}

function below(bound: Bound, field: Field): readonly string[] {
  const sign = bound.inclusive ? '<=' : '<'
  const key = field.parameters.add(JSON.stringify(toKey(bound.value)), 'jsonb')
  if (!isLong(bound.value)) return [`${field.key} ${sign} ${key}`]
  const exact = field.parameters.add(JSON.stringify(bound.value), 'jsonb')
  return [`${field.key} <= ${key}`, `${field.value} ${sign} ${exact}`]
}

/** A range of keys, so that an index serves it. */
function starts(text: string, field: Field): string {
  const { add } = field.parameters
  if (isLong(text)) {
    const key = `${field.key} = ${add(JSON.stringify(toKey(text)), 'jsonb')}`
    return `(${key} AND ${printStringTest(field, `starts_with(${field.text}, ${add(text, 'text')})`)})`
  }
  const next = findSuccessor(text)
  const upper = next === undefined ? keyOrder.numberLeast : add(JSON.stringify(next), 'jsonb')
  return `(${field.key} >= ${add(JSON.stringify(text), 'jsonb')} AND ${field.key} < ${upper})`
}

function startsIgnoringCase(text: string, field: Field): string {
  return printStringTest(
    field,
    `starts_with(lower(${field.text}), lower(${field.parameters.add(text, 'text')}))`,
  )
}

function ends(
  condition: { readonly text: string; readonly ignoreCase: boolean },
  field: Field,
): string {
  const fold = (text: string) => (condition.ignoreCase ? `lower(${text})` : text)
  const wanted = fold(field.parameters.add(condition.text, 'text'))
  return printStringTest(field, `right(${fold(field.text)}, length(${wanted})) = ${wanted}`)
}

function includes(value: Scalar, field: Field): string {
  const { add } = field.parameters
  const isElement = `WHEN 'array' THEN ${field.value} @> ${add(JSON.stringify(value), 'jsonb')}`
  const isInside =
    typeof value === 'string'
      ? `WHEN 'string' THEN strpos(${field.text}, ${add(value, 'text')}) > 0 `
      : ''
  return `CASE jsonb_typeof${field.value} ${isInside}${isElement} ELSE FALSE END`
}

function includesIgnoringCase(value: Scalar, field: Field): string {
  const wanted = `lower(${field.parameters.add(value, 'text')})`
  return `CASE jsonb_typeof${field.value}
 WHEN 'string' THEN strpos(lower(${field.text}), ${wanted}) > 0
 WHEN 'array' THEN EXISTS (SELECT 1 FROM jsonb_array_elements(${field.value}) AS element(value)
  WHERE jsonb_typeof(element.value) = 'string' AND lower(element.value #>> '{}') = ${wanted})
 ELSE FALSE END`
}

/** Puts beside a test what a trigram index serves of it. */
function besidePart(
  { text, ignoreCase }: { readonly text: string; readonly ignoreCase: boolean },
  field: Field,
  test: string,
): string {
  const pattern = makePartsPattern([text])
  return besidePatterns(pattern === undefined ? [] : [pattern], { ignoreCase, field }, test)
}

function besidePatterns(
  patterns: readonly string[],
  { ignoreCase, field }: { readonly ignoreCase: boolean; readonly field: Field },
  test: string,
): string {
  if (patterns.length === 0) return test
  const tests = patterns.map((each) =>
    printPartsTest(field.text, field.parameters.add(each, 'text'), ignoreCase),
  )
  return `(${[...tests, test].join(' AND ')})`
}

/** The cast inside `test` is safe: the pattern lets only addresses through. */
function whenAddress(field: Field, test: string): string {
  const pattern = field.parameters.add(addressPattern, 'text')
  return printStringTest(field, `CASE WHEN ${field.text} ~ ${pattern} THEN ${test} ELSE FALSE END`)
}

/** Copies member by member: this is a part of every read, and spreading is slow. */
function makeField(path: FieldPath, { record, parameters, parent, dataSets }: Scope): Field {
  const { key, value, text } = getForms(path, record)
  return { record, parameters, parent, dataSets, key, value, text }
}

type Written = { readonly names: Map<string, Forms>; readonly paths: Map<string, Forms> }

/** The latest forms, by record: they are long texts, and fields that are used once are used again. */
const written = new Map<string, Written>()
const writtenMax = 1_000
let writtenCount = 0

function getForms(path: FieldPath, record: string): Forms {
  if (writtenCount === writtenMax) {
    written.clear()
    writtenCount = 0
  }
  const ofRecord = written.get(record) ?? { names: new Map(), paths: new Map() }
  const [name] = path
  // A single name is its own key; only a longer path needs a text of its own.
  const isName = path.length === 1
  const kept = isName ? ofRecord.names : ofRecord.paths
  const field = isName ? name : JSON.stringify(path)
  const known = kept.get(field)
  if (known !== undefined) return known
  const forms = {
    key: `(${printKeyExpression(path, record)})`,
    value: `(${printValueExpression(path, record)})`,
    text: `(${printTextExpression(path, record)})`,
  }
  kept.set(field, forms)
  written.set(record, ofRecord)
  writtenCount += 1
  return forms
}
