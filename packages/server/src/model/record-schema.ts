import { limits } from '@tollbase/contract/limits'
import { Check, Errors } from 'typebox/schema'
import { countValues } from '../base/count-values.ts'
import { Fault } from '../base/fault.ts'
import { getOwnValue, isRecord } from '../base/is-record.ts'
import { compilePattern } from '../query/pattern.ts'
import type { MatchBudget } from '../query/pattern-matcher.ts'
import { hasFieldType } from './field-types.ts'

/** A violation of a collection's schema, by JSON pointer within the record. */
export type Problem = { readonly pointer: string; readonly problem: string }

export type RecordSchema = {
  readonly problems: (record: Readonly<Record<string, unknown>>) => Problem[]
  /** Values for fields that a record lacks. */
  readonly defaults: Readonly<Record<string, unknown>>
  /** The cost of judging a record, in characters of a record that would take as long to read. */
  readonly weight: number
}

type Field = {
  readonly type?: string
  readonly required?: boolean | null
  readonly default?: unknown
  readonly validation?: {
    readonly min?: number | null
    readonly max?: number | null
    readonly pattern?: string | null
    readonly enum?: readonly unknown[] | null
  } | null
}

/**
 * Reads a schema_definition, for the records of one call: the `{fields}` form of the public clients, a JSON Schema, or
 * none.
 */
export function compileRecordSchema(definition: unknown): RecordSchema {
  if (!isRecord(definition)) return free
  if (!isRecord(definition.fields)) return compileJsonSchema(definition)
  const fields = Object.entries(definition.fields as Record<string, Field>)
  const required = Array.isArray(definition.required) ? definition.required.map(String) : []
  const { matches, beginRecord } = openMatcher()
  const weight = weighSchema(definition)
  const listRecordProblems = (record: Readonly<Record<string, unknown>>) => [
    ...required
      .filter((name) => getOwnValue(record, name) === undefined)
      .map((name) => makeMissingProblem(name)),
    ...fields.flatMap(([name, field]) =>
      listFieldProblems(name, field, { value: getOwnValue(record, name), matches }),
    ),
  ]
  return {
    problems: (record) => {
      beginRecord()
      return listRecordProblems(record)
    },
    defaults: Object.fromEntries(
      fields.flatMap(([name, field]) =>
        field.default === undefined ? [] : [[name, field.default]],
      ),
    ),
    weight,
  }
}

const free: RecordSchema = { problems: () => [], defaults: {}, weight: 0 }

function weighSchema(definition: object): number {
  return countValues(definition, Number.POSITIVE_INFINITY) * 8
}

const unjudged: Problem = { pointer: '', problem: 'cannot be judged by the schema' }

function hasReference(schema: object): boolean {
  return /"\$(ref|dynamicRef)"/.test(JSON.stringify(schema))
}

/**
 * Counts the values that the library looks at until it has found a reference; counting ends past `most`. It looks at each
 * list twice, and so four times at one in a list.
 */
export function countSearched(part: unknown, most: number): number {
  if (typeof part !== 'object' || part === null) return 1
  const isList = Array.isArray(part)
  let count = 1
  for (const [name, inner] of Object.entries(part)) {
    if (!isList && (name === 'const' || name === 'enum')) continue
    if (count > most) return count
    count += countSearched(inner, most - count) * (isList ? 2 : 1)
  }
  return count
}

/** Keywords whose values are data, not schemas. */
export const dataKeywords = ['const', 'enum', 'default', 'examples']

function compileJsonSchema(schema: Record<string, unknown>): RecordSchema {
  if (Object.keys(schema).length === 0) return free
  const search = hasReference(schema) ? countSearched(schema, limits.recordSearchMax) : 0
  // It was defined before this was refused.
  if (search > limits.recordSearchMax)
    return { problems: () => [unjudged], defaults: {}, weight: weighSchema(schema) }
  const matcher = openMatcher(search)
  const judged = replacePatterns(schema, false, matcher)
  return {
    problems: (record) => {
      matcher.beginRecord()
      return listSchemaProblems(judged, record)
    },
    defaults: {},
    weight: weighSchema(schema),
  }
}

/** Returns the JSON Schema in the form that validates records. */
export function toValidationSchema(schema: Record<string, unknown>): Record<string, unknown> {
  return replacePatterns(schema, false, openMatcher())
}

/** Keywords whose members have names of the caller's. */
export const mapKeywords = [
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
  'dependentSchemas',
  'dependentRequired',
  'dependencies',
  '$vocabulary',
]

/**
 * Replaces each pattern by a test of ours, and removes members that the library would take for its own
 * instructions.
 */
function replacePatterns(
  part: Record<string, unknown>,
  isMap: boolean,
  matcher: Matcher,
): Record<string, unknown>
function replacePatterns(part: unknown, isMap: boolean, matcher: Matcher): unknown
function replacePatterns(part: unknown, isMap: boolean, matcher: Matcher): unknown {
  if (Array.isArray(part)) return part.map((item) => replacePatterns(item, false, matcher))
  if (!isRecord(part)) return part
  const entries = Object.entries(part).flatMap(([name, inner]): [string, unknown][] => {
    if (isMap) return [[name, replacePatterns(inner, false, matcher)]]
    if (name.startsWith('~')) return []
    if (dataKeywords.includes(name)) return [[name, inner]]
    if (name !== 'pattern' || typeof inner !== 'string')
      return [[name, replacePatterns(inner, mapKeywords.includes(name), matcher)]]
    return []
  })
  const refinements = isMap ? [] : listRefinements(part, matcher)
  return Object.fromEntries(
    refinements.length > 0 ? [...entries, ['~refine', refinements]] : entries,
  )
}

type Refinement = { readonly check: (value: unknown) => boolean; readonly error: () => string }

function listRefinements(
  part: Record<string, unknown>,
  { follow, matches }: Matcher,
): Refinement[] {
  const { pattern } = part
  const refinements: Refinement[] = []
  // References that lead to references twice double the work at each; only a record shows how much it is.
  if ('$ref' in part || '$dynamicRef' in part)
    refinements.push({ check: follow, error: () => 'cannot be judged by the schema' })
  if (typeof pattern === 'string')
    refinements.push({
      check: (value) => typeof value !== 'string' || matches(pattern, value),
      error: () => `must match ${pattern}`,
    })
  return refinements
}

function listSchemaProblems(schema: Record<string, unknown>, record: unknown): Problem[] {
  try {
    if (Check(schema, record)) return []
    const [, errors] = Errors(schema, record)
    return errors.map((error) => ({ pointer: error.instancePath, problem: error.message }))
  } catch (error) {
    // The schema refers to itself without end.
    if (error instanceof RangeError) return [unjudged]
    throw error
  }
}

function listFieldProblems(
  name: string,
  field: Field,
  { value, matches }: { value: unknown; matches: Matcher['matches'] },
): Problem[] {
  if (value === undefined)
    return field.required === true && field.default === undefined ? [makeMissingProblem(name)] : []
  if (value === null)
    return field.required === true ? [{ pointer: `/${name}`, problem: 'must not be null' }] : []
  if (!hasFieldType(field.type, value))
    return [{ pointer: `/${name}`, problem: `must be of type ${field.type}` }]
  const rule = field.validation ?? {}
  const size =
    typeof value === 'number'
      ? value
      : typeof value === 'string' || Array.isArray(value)
        ? value.length
        : undefined
  const problems: string[] = []
  if (typeof rule.min === 'number' && size !== undefined && size < rule.min)
    problems.push(`must be at least ${rule.min}`)
  if (typeof rule.max === 'number' && size !== undefined && size > rule.max)
    problems.push(`must be at most ${rule.max}`)
  if (
    typeof rule.pattern === 'string' &&
    typeof value === 'string' &&
    !matches(rule.pattern, value)
  ) {
    problems.push(`must match ${rule.pattern}`)
  }
  if (Array.isArray(rule.enum) && !rule.enum.includes(value))
    problems.push(`must be one of ${JSON.stringify(rule.enum)}`)
  return problems.map((problem) => ({ pointer: `/${name}`, problem }))
}

type Matcher = {
  readonly matches: (pattern: string, text: string) => boolean
  /** Counts a reference that is followed; false where the record has taken all its steps. */
  readonly follow: () => boolean
  readonly beginRecord: () => void
}

/** Steps of matching that take as long as following one reference. */
const referenceSteps = 100

/** The work that one record may take, and all records of a call together. */
class WorkBudget implements MatchBudget {
  /** The rest for the record; below zero once it took too much. */
  steps: number
  readonly #most: number
  #granted: number
  #left: number

  constructor({ record, call }: { readonly record: number; readonly call: number }) {
    this.#most = record
    this.#left = call
    this.#granted = record
    this.steps = record
  }

  beginRecord(): void {
    this.#left -= this.#granted - Math.max(this.steps, 0)
    this.#granted = Math.min(this.#most, Math.max(this.#left, 0))
    this.steps = this.#granted
  }
}

/**
 * Matches texts with patterns, each compiled once, and follows references, of which each is looked for among so many
 * values, within limits of work for each record and for all records.
 */
function openMatcher(search = 0): Matcher {
  const matching = new WorkBudget({
    record: limits.recordPatternStepsMax,
    call: limits.patternStepsMax,
  })
  const searching = new WorkBudget({ record: limits.recordSearchMax, call: limits.callSearchMax })
  const known = new Map<string, ReturnType<typeof compilePattern>>()
  return {
    matches: (pattern, text) => {
      const compiled = known.get(pattern) ?? compilePattern(pattern, '')
      known.set(pattern, compiled)
      return compiled.matches(text, matching)
    },
    follow: () => {
      matching.steps -= referenceSteps
      searching.steps -= search
      if (matching.steps < 0 || searching.steps < 0)
        throw new Fault('PAYLOAD_TOO_LARGE', {
          message:
            'The record makes the schema follow its references too often; send a smaller one, or fewer records at once',
        })
      return true
    },
    beginRecord: () => {
      matching.beginRecord()
      searching.beginRecord()
    },
  }
}

function makeMissingProblem(name: string): Problem {
  return { pointer: `/${name}`, problem: 'is required' }
}
