import { limits } from '@tollbase/contract/limits'
import { LRUCache } from 'lru-cache'
import { awaitTurn } from '../base/await-turn.ts'
import { countValues } from '../base/count-values.ts'
import { getOwnValue, isRecord } from '../base/is-record.ts'
import { extendPointer } from '../query/field-path.ts'
import { compilePattern } from '../query/pattern.ts'
import { hasFieldType } from './field-types.ts'
import { compileJsonSchema } from './json-schema/compile.ts'
import { makeDescription } from './json-schema/judge-values.ts'
import { type Problem, Run, showName } from './json-schema/run.ts'
import { Work } from './json-schema/work.ts'

type Member = Readonly<Record<string, unknown>>

/** A schema_definition that is ready to judge records. */
export type RecordSchema = {
  /** Throws 413 if that takes more work than there is. */
  readonly listProblems: (record: Member, work: Work) => readonly Problem[]
  /** Values for fields that a record lacks. */
  readonly defaults: Member
}

/** Judges the records of one call, with turns for other requests between them. */
export type RecordJudge = Pick<RecordSchema, 'defaults'> & {
  /** `chars`: the size of the record, where it was read just before. */
  readonly listProblems: (record: Member, chars?: number) => Promise<readonly Problem[]>
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

/** Characters that are read in the time of one step of judging. */
const charsPerStep = 8

/** Opens a judge of the records of one call; together they take no more than `callSteps` of work. */
export function openRecordJudge(definition: unknown, callSteps?: number): RecordJudge {
  const { listProblems, defaults } = compileRecordSchema(definition)
  const work = new Work(callSteps)
  let chars = 0
  return {
    defaults,
    listProblems: async (record, recordChars = 64) => {
      const problems = listProblems(record, work)
      chars += recordChars + work.beginRecord() * charsPerStep
      if (chars >= limits.bodyBytesAtOnce) {
        chars = 0
        await awaitTurn()
      }
      return problems
    },
  }
}

/**
 * Schemas that are compiled, which takes milliseconds for a large one, by the values that they are made of: some 300
 * bytes for each, 20 times those of its text. The one that was unused the longest goes first.
 */
const compiled = new LRUCache<object, RecordSchema>({ maxSize: 300_000 })

/** Compiles a schema_definition: the `{fields}` form of the public clients, a JSON Schema, or none. */
export function compileRecordSchema(definition: unknown): RecordSchema {
  if (!isRecord(definition)) return free
  const found = compiled.get(definition)
  if (found !== undefined) return found
  const schema = isRecord(definition.fields) ? compileFields(definition) : compileJson(definition)
  compiled.set(definition, schema, { size: countValues(definition, Number.POSITIVE_INFINITY) })
  return schema
}

const free: RecordSchema = { listProblems: () => [], defaults: {} }

const unjudged: Problem = { pointer: '', problem: 'cannot be judged by the schema' }

function compileJson(schema: Member): RecordSchema {
  const judge = compileJsonSchema(schema)
  return {
    defaults: {},
    listProblems: (record, work) => {
      try {
        if (judge(record, new Run(work))) return []
        const problems: Problem[] = []
        judge(record, new Run(work, problems))
        return problems
      } catch (error) {
        // The schema refers to itself without end.
        if (error instanceof RangeError) return [unjudged]
        throw error
      }
    },
  }
}

function compileFields(definition: Member): RecordSchema {
  const fields = Object.entries(definition.fields as Record<string, Field>)
  const judges = fields.map(([name, field]) => [name, compileField(name, field)] as const)
  const required = Array.isArray(definition.required) ? definition.required.map(String) : []
  return {
    defaults: Object.fromEntries(
      fields.flatMap(([name, field]) =>
        field.default === undefined ? [] : [[name, field.default]],
      ),
    ),
    listProblems: (record, work) => {
      work.spend(required.length + judges.length)
      const missing = required.filter((name) => getOwnValue(record, name) === undefined)
      return [
        ...missing.map(makeMissingProblem),
        ...judges.flatMap(([name, judge]) => judge(getOwnValue(record, name), work)),
      ]
    },
  }
}

function compileField(
  name: string,
  field: Field,
): (value: unknown, work: Work) => readonly Problem[] {
  const rule = field.validation ?? {}
  const isRequired = field.required === true
  const { pattern } = rule
  const matches = typeof pattern === 'string' ? compilePattern(pattern, '').matches : undefined
  const make = (problem: string): Problem => ({ pointer: toPointer(name), problem })
  const allowed = Array.isArray(rule.enum) ? new Set<unknown>(rule.enum) : undefined
  const describeAllowed = makeDescription('one of ', rule.enum)
  return (value, work) => {
    if (value === undefined)
      return isRequired && field.default === undefined ? [makeMissingProblem(name)] : []
    if (value === null) return isRequired ? [make('must not be null')] : []
    if (!hasFieldType(field.type, value)) return [make(`must be of type ${field.type}`)]
    const size = toSize(value)
    const problems: string[] = []
    if (typeof rule.min === 'number' && size !== undefined && size < rule.min)
      problems.push(`must be at least ${rule.min}`)
    if (typeof rule.max === 'number' && size !== undefined && size > rule.max)
      problems.push(`must be at most ${rule.max}`)
    if (matches !== undefined && typeof value === 'string' && !matches(value, work))
      problems.push(`must match ${pattern}`)
    if (allowed?.has(value) === false) problems.push(describeAllowed())
    return problems.map(make)
  }
}

function toSize(value: unknown): number | undefined {
  if (typeof value === 'number') return value
  return typeof value === 'string' || Array.isArray(value) ? value.length : undefined
}

function makeMissingProblem(name: string): Problem {
  return { pointer: toPointer(name), problem: 'is required' }
}

/** Returns the JSON pointer of a field in the problems of a record. */
export function toPointer(name: string): string {
  return extendPointer('', showName(name))
}
