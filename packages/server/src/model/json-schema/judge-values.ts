import { Has, Test } from 'typebox/format'
import { isAscii } from '../../base/is-ascii.ts'
import { isRecord } from '../../base/is-record.ts'
import { compilePattern } from '../../query/pattern.ts'
import { toCanonicalText } from './canonical-text.ts'
import { isMultiple } from './is-multiple.ts'
import type { JsonType } from './keywords.ts'
import { type Judge, type Run, showName } from './run.ts'

/** Makes the judge of a keyword from its value; none where that is of the wrong kind, which was not refused once. */
type MakeJudge = (wanted: unknown) => Judge | undefined

/** Characters of a text that is looked at in the time in which a value is judged. */
const charsPerValue = 8
/** Values that are judged in the time in which a character of a text with a format is read. */
const valuesPerFormatted = 5
/** A list is shown as far as this in a message. */
const shownChars = 200

/** The keywords that need no other schema. */
const makers: ReadonlyMap<string, MakeJudge> = new Map(
  Object.entries<MakeJudge>({
    type: judgeType,
    enum: (wanted) => (Array.isArray(wanted) ? judgeEqual(wanted, 'one of ', wanted) : undefined),
    const: (wanted) => judgeEqual([wanted], '', wanted),
    minimum: ofNumbers((value, least) => value >= least, 'at least'),
    maximum: ofNumbers((value, most) => value <= most, 'at most'),
    exclusiveMinimum: ofNumbers((value, limit) => value > limit, 'more than'),
    exclusiveMaximum: ofNumbers((value, limit) => value < limit, 'less than'),
    multipleOf: ofNumbers(
      (value, by, run) => by <= 0 || isMultipleAt(value, by, run),
      'a multiple of',
    ),
    minLength: ofTexts('least', 'character', (text, least, run) => !isShorter(text, least, run)),
    maxLength: ofTexts('most', 'character', (text, most, run) => isShorter(text, most + 1, run)),
    pattern: judgePattern,
    format: judgeFormat,
    minItems: ofSizes('least', 'item', countItems),
    maxItems: ofSizes('most', 'item', countItems),
    minProperties: ofSizes('least', 'member', countMembers),
    maxProperties: ofSizes('most', 'member', countMembers),
    uniqueItems: (wanted) => (wanted === true ? judgeUnique : undefined),
    required: (wanted) => judgeNames(toNames(wanted), ''),
    dependentRequired: judgeDependent,
    // Draft 7 has schemas beside the names.
    dependencies: judgeDependent,
  }),
)

export function makeValueJudges(schema: Readonly<Record<string, unknown>>): readonly Judge[] {
  return Object.entries(schema).flatMap(([keyword, wanted]) => makers.get(keyword)?.(wanted) ?? [])
}

const types: ReadonlyMap<unknown, (value: unknown) => boolean> = new Map(
  Object.entries({
    string: (value: unknown) => typeof value === 'string',
    number: (value: unknown) => typeof value === 'number',
    integer: Number.isInteger,
    boolean: (value: unknown) => typeof value === 'boolean',
    object: isRecord,
    array: Array.isArray,
    null: (value: unknown) => value === null,
  } satisfies Record<JsonType, unknown>),
)

function judgeType(wanted: unknown): Judge {
  const names = [...new Set<unknown>(Array.isArray(wanted) ? wanted : [wanted])]
  const tests = names.flatMap((name) => types.get(name) ?? [])
  return (value, run) =>
    tests.some((isRight) => isRight(value)) ||
    run.fail(() => `must be of type ${names.join(' or ')}`)
}

function judgeEqual(values: readonly unknown[], words: string, wanted: unknown): Judge {
  const texts = new Set(values.map((value) => toCanonicalText(value)))
  const describe = makeDescription(words, wanted)
  return (value, run) => texts.has(toCanonicalText(value, run.work)) || run.fail(describe)
}

/** Describes what a value must be, as far as is read: written once, since a hundred items may have the problem. */
export function makeDescription(words: string, wanted: unknown): () => string {
  let description: string | undefined
  return () => {
    if (description === undefined) {
      const text = JSON.stringify(wanted)
      const shown = text.length > shownChars ? `${text.slice(0, shownChars)}…` : text
      description = `must be ${words}${shown}`
    }
    return description
  }
}

function ofNumbers(
  isRight: (value: number, wanted: number, run: Run) => boolean,
  words: string,
): MakeJudge {
  return (wanted) =>
    typeof wanted !== 'number'
      ? undefined
      : (value, run) =>
          typeof value !== 'number' ||
          isRight(value, wanted, run) ||
          run.fail(() => `must be ${words} ${wanted}`)
}

/** Values that are judged in the time in which two fractions are compared; zeros that are written out in that of one. */
const valuesPerFraction = 30
const zerosPerValue = 8

function isMultipleAt(value: number, by: number, run: Run): boolean {
  const zeros = Math.abs(Math.log10(Math.abs(value) || 1) - Math.log10(by))
  run.work.spend(valuesPerFraction + zeros / zerosPerValue)
  return isMultiple(value, by)
}

function ofTexts(
  bound: 'least' | 'most',
  thing: string,
  isRight: (text: string, wanted: number, run: Run) => boolean,
): MakeJudge {
  return (wanted) =>
    typeof wanted !== 'number'
      ? undefined
      : (value, run) =>
          typeof value !== 'string' ||
          isRight(value, wanted, run) ||
          run.fail(() => describeBound(bound, wanted, thing))
}

function describeBound(bound: 'least' | 'most', count: number, thing: string): string {
  return `must have at ${bound} ${count} ${thing}${count === 1 ? '' : 's'}`
}

/** Returns true if a text has fewer characters (code points), each of which has one or two units. */
function isShorter(text: string, length: number, run: Run): boolean {
  if (text.length < length) return true
  if (text.length >= length * 2) return false
  run.work.spend(text.length / charsPerValue)
  let characters = 0
  for (const _ of text) characters += 1
  return characters < length
}

function judgePattern(wanted: unknown): Judge | undefined {
  if (typeof wanted !== 'string') return undefined
  const { matches } = compilePattern(wanted, '')
  return (value, run) =>
    typeof value !== 'string' || matches(value, run.work) || run.fail(() => `must match ${wanted}`)
}

function judgeFormat(wanted: unknown): Judge | undefined {
  if (typeof wanted !== 'string' || !Has(wanted)) return undefined
  return (value, run) => {
    if (typeof value !== 'string') return true
    run.work.spend(computeFormatWork(wanted, value))
    return Test(wanted, value) || run.fail(() => `must have the format ${wanted}`)
  }
}

/** Formats for letters of all scripts: to order their accents, or to write a host in ASCII, takes the square of the length. */
const internationalFormats = ['idn-email', 'idn-hostname', 'iri', 'iri-reference', 'url']
/** The part of such a square that is done in the time in which a value is judged. */
const pairsPerValue = 32
/** Values that are judged in the time in which a regular expression gets the characters of a `\p{…}`. */
const valuesPerProperty = 4_000

/** Computes the values that are judged in the time in which a text is compared with a format. */
function computeFormatWork(format: string, text: string): number {
  const square = text.length ** 2 / pairsPerValue
  if (format === 'regex')
    // The names of groups are compared with each other.
    return square + (text.split(/\\p/i).length - 1) * valuesPerProperty
  return (
    text.length * valuesPerFormatted +
    (internationalFormats.includes(format) && !isAscii(text) ? square : 0)
  )
}

function ofSizes(
  bound: 'least' | 'most',
  thing: string,
  toSize: (value: unknown, run: Run) => number | undefined,
): MakeJudge {
  return (wanted) =>
    typeof wanted !== 'number'
      ? undefined
      : (value, run) => {
          const size = toSize(value, run)
          if (size === undefined) return true
          const isRight = bound === 'least' ? size >= wanted : size <= wanted
          return isRight || run.fail(() => describeBound(bound, wanted, thing))
        }
}

function countItems(value: unknown): number | undefined {
  return Array.isArray(value) ? value.length : undefined
}

function countMembers(value: unknown, run: Run): number | undefined {
  if (!isRecord(value)) return undefined
  return run.listNames(value).length
}

const judgeUnique: Judge = (value, run) => {
  if (!Array.isArray(value)) return true
  const places = new Map<string, number>()
  for (const [at, item] of value.entries()) {
    const text = toCanonicalText(item, run.work)
    const before = places.get(text)
    if (before !== undefined)
      return run.fail(() => `must not have an item twice, as ${before} and ${at} are`)
    places.set(text, at)
  }
  return true
}

function judgeDependent(wanted: unknown): Judge | undefined {
  if (!isRecord(wanted)) return undefined
  const judges = Object.entries(wanted).map(
    ([name, needed]) =>
      [name, judgeNames(toNames(needed), ` where ${showName(name)} is given`)] as const,
  )
  return (value, run) => {
    if (!isRecord(value)) return true
    run.work.spend(judges.length)
    return run.every(judges, ([name, judge]) => !Object.hasOwn(value, name) || judge(value, run))
  }
}

function judgeNames(names: readonly string[], why: string): Judge {
  return (value, run) => {
    if (!isRecord(value)) return true
    run.work.spend(names.length)
    return run.every(
      names,
      (name) => Object.hasOwn(value, name) || run.fail(() => `is required${why}`, name),
    )
  }
}

function toNames(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((name) => typeof name === 'string') : []
}
