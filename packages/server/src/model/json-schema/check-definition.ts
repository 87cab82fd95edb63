import { limits } from '@tollbase/contract/limits'
import { Has } from 'typebox/format'
import { awaitTurn } from '../../base/await-turn.ts'
import { makeInvalidFault } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import {
  findSuggestion,
  formatSuggestion,
  makeUnknownMemberFault,
} from '../../base/known-members.ts'
import { extendPointer } from '../../query/field-path.ts'
import { compilePattern } from '../../query/pattern.ts'
import { jsonTypes, type KeywordKind, keywords } from './keywords.ts'
import { listParts } from './list-parts.ts'
import { isAddress, type References, readReferences } from './references.ts'

type Schema = Readonly<Record<string, unknown>>

/** The patterns of one schema, whose size together is bounded: each is compiled before a record is judged. */
export class PatternChecks {
  #left: number = limits.schemaPatternSizeMax

  /** Refuses a pattern that cannot be used. */
  check(pattern: string, pointer: string): void {
    this.#left -= compilePattern(pattern, pointer).size
    if (this.#left < 0)
      throw makeInvalidFault(
        pointer,
        `makes the patterns of the schema larger than ${limits.schemaPatternSizeMax} parts together, repetitions written out`,
      )
  }
}

/** Refuses a JSON Schema in which a keyword is none, has a value of the wrong kind, or points to nothing; names the place. */
export async function checkJsonSchema(schema: Schema, pointer: string): Promise<void> {
  // It may have been meant in the other form, {fields}.
  checkPart(schema, {
    pointer,
    known: ['fields', ...keywords.keys()],
    patterns: new PatternChecks(),
  })
  await awaitTurn()
  const references = readReferences(schema)
  await awaitTurn()
  checkReferences(schema, { references, pointer })
  await awaitTurn()
}

type Place = {
  readonly pointer: string
  readonly patterns: PatternChecks
  readonly known: readonly string[]
}

const words = [...keywords.keys()]

function checkPart(part: unknown, { pointer, patterns, known }: Place): void {
  if (typeof part === 'boolean') return
  if (!isRecord(part))
    throw makeInvalidFault(pointer, 'must be a schema: an object, or true, or false')
  for (const [name, value] of Object.entries(part)) {
    if (name.startsWith('x-')) continue
    const kind = keywords.get(name)
    if (kind === undefined) throw makeUnknownMemberFault(pointer, name, known)
    checks[kind](value, extendPointer(pointer, name), patterns)
  }
  for (const inner of listParts(part))
    checkPart(inner.part, { pointer: `${pointer}${inner.pointer}`, patterns, known: words })
}

type Check = (value: unknown, pointer: string, patterns: PatternChecks) => void

const checks: Readonly<Record<KeywordKind, Check>> = {
  any: () => undefined,
  boolean: make((value) => typeof value === 'boolean', 'must be true or false'),
  count: make(
    (value) => Number.isInteger(value) && Number(value) >= 0,
    'must be a whole number, 0 or more',
  ),
  divisor: make((value) => typeof value === 'number' && value > 0, 'must be a number above 0'),
  format: (value, pointer) => {
    if (typeof value !== 'string' || !Has(value))
      throw makeInvalidFault(pointer, 'is not a format that is known')
  },
  id: make(
    (value) => typeof value === 'string' && isAddress(value),
    `must be a URI of at most ${limits.schemaAddressCharsMax} ASCII characters, as "https://example.com/order.json"`,
  ),
  list: make(Array.isArray, 'must be a list'),
  name: make(
    (value) => typeof value === 'string' && /^[A-Za-z_][-A-Za-z0-9._]*$/.test(value),
    'must be a name of letters, digits, and ".-_", as "city"',
  ),
  number: make((value) => typeof value === 'number', 'must be a number'),
  pattern: (value, pointer, patterns) => {
    if (typeof value !== 'string') throw makeInvalidFault(pointer, 'must be text, as "^[a-z]+$"')
    patterns.check(value, pointer)
  },
  reference: make((value) => typeof value === 'string', 'must be text, as "#/$defs/city"'),
  // The walk looks at the schemas themselves.
  schema: () => undefined,
  'schema or schemas': () => undefined,
  schemas: make(
    (value) => Array.isArray(value) && value.length > 0,
    'must be a list of schemas, at least one',
  ),
  'schemas by name': make(isRecord, 'must be an object, with a schema for each name'),
  'schemas by pattern': (value, pointer, patterns) => {
    if (!isRecord(value))
      throw makeInvalidFault(pointer, 'must be an object, with a schema for each pattern')
    for (const pattern of Object.keys(value)) patterns.check(pattern, pointer)
  },
  'schemas or names by name': (value, pointer) => {
    if (!isRecord(value))
      throw makeInvalidFault(pointer, 'must be an object, with a schema or names for each name')
    for (const [name, one] of Object.entries(value))
      if (Array.isArray(one)) checkNames(one, extendPointer(pointer, name))
  },
  text: make((value) => typeof value === 'string', 'must be text'),
  names: checkNames,
  'names by name': (value, pointer) => {
    if (!isRecord(value))
      throw makeInvalidFault(pointer, 'must be an object, with a list of names for each name')
    for (const [name, one] of Object.entries(value)) checkNames(one, extendPointer(pointer, name))
  },
  types: checkTypes,
}

function make(isRight: (value: unknown) => boolean, problem: string) {
  return (value: unknown, pointer: string): void => {
    if (!isRight(value)) throw makeInvalidFault(pointer, problem)
  }
}

function checkNames(value: unknown, pointer: string): void {
  if (!Array.isArray(value) || !value.every((name) => typeof name === 'string'))
    throw makeInvalidFault(pointer, 'must be a list of names, as ["city"]')
}

function checkTypes(types: unknown, pointer: string): void {
  const list: readonly unknown[] = Array.isArray(types) ? types : [types]
  for (const type of list) {
    if (jsonTypes.some((one) => one === type)) continue
    const meant = typeof type === 'string' ? findSuggestion(type, jsonTypes) : undefined
    throw makeInvalidFault(
      pointer,
      `must be one of ${jsonTypes.join(', ')}${formatSuggestion(meant)}`,
    )
  }
}

/** A reference that points to nothing would refuse every record. */
function checkReferences(
  part: Schema,
  on: { readonly references: References; readonly pointer: string },
): void {
  const { references, pointer } = on
  if (references.isTooLong(part))
    throw makeInvalidFault(
      `${pointer}/$id`,
      `makes an address of more than ${limits.schemaAddressCharsMax} characters, with those of the schemas around it`,
    )
  for (const keyword of ['$ref', '$dynamicRef']) {
    const reference = part[keyword]
    if (typeof reference !== 'string') continue
    const target = references.find(references.findBase(part), reference)
    if (target === undefined)
      throw makeInvalidFault(
        `${pointer}/${keyword}`,
        'points to nothing in this schema, and others are not fetched; a part under $defs is "#/$defs/<its name>"',
      )
    if (!references.isPart(target))
      throw makeInvalidFault(
        `${pointer}/${keyword}`,
        'points to something that is no schema; put it under $defs, and write "#/$defs/<its name>"',
      )
  }
  for (const inner of listParts(part))
    if (isRecord(inner.part))
      checkReferences(inner.part, { references, pointer: `${pointer}${inner.pointer}` })
}
