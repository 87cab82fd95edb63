import { limits } from '@tollbase/contract/limits'
import { LRUCache } from 'lru-cache'
import { makeInvalidFault } from '../base/fault.ts'
import {
  type CodeRange,
  type MatchBudget,
  makeMatcher,
  type PatternNode,
} from './pattern-matcher.ts'

/** PostgreSQL's bound of {m,n} (DUPMAX). */
const repetitionsMax = 255
/** The most characters once {m,n} are written out: the time to prepare a pattern grows with the cube (0.2 s here). */
const expandedSizeMax = 600
/** Each ^, $ and \b multiplies what PostgreSQL prepares; a few dozen are "too complex" for it. */
const assertionsMax = 8

/**
 * A part of a pattern: its text, its size once repetitions are written out, whether it can match without end, and
 * its number of ^ $ \b.
 */
type Piece = {
  readonly text: string
  readonly size: number
  readonly endless: boolean
  readonly assertions: number
  readonly node: PatternNode
}
/** The members of a class: its text for PostgreSQL, and the code points that it matches. */
type Members = { readonly text: string; readonly ranges: readonly CodeRange[] }
type Reader = {
  readonly source: readonly string[]
  at: number
  /** Keeps what decides how much is matched: groups that are numbered, and lazy quantifiers. */
  readonly keepsExtent: boolean
  readonly refuse: (problem: string) => Error
}

/**
 * Translates a regular expression of the common subset (alternatives, groups, classes, quantifiers, anchors, \d \w
 * \s \b, a leading (?i)) into one that PostgreSQL's `~` takes without an error and matches in linear time.
 * Backreferences, look-around and endless quantifiers inside each other are refused. `\d \w \s` are ASCII.
 */
export function translatePattern(pattern: string, pointer: string): string {
  const { whole, ignoreCase } = readPattern(pattern, pointer)
  // The director ***: says that an ordinary expression follows, whatever regex_flavor or first characters say.
  return `***:${ignoreCase ? '(?i)' : ''}${whole.text}`
}

/**
 * Translates the same pattern for functions that ask what was matched, not only whether: groups are numbered, and
 * lazy quantifiers stay lazy.
 */
export function translateSearch(pattern: string, pointer: string): string {
  const { whole, ignoreCase } = readPattern(pattern, pointer, true)
  return `***:${ignoreCase ? '(?i)' : ''}${whole.text}`
}

/**
 * Matchers in memory, by the parts of their patterns, of which each takes some 20 bytes: a pattern of 12 characters can
 * have 600. One that was unused for long is made again.
 */
const matchers = new LRUCache<object, ReturnType<typeof makeMatcher>>({ maxSize: 2_000_000 })
/** Parts as which a matcher counts beside its own. */
const matcherParts = 16

/**
 * Compiles the same pattern to a test of texts in this process, which ends in bounded time too. `size` counts its parts
 * once repetitions are written out; they are written out for the first text.
 */
export function compilePattern(
  pattern: string,
  pointer: string,
): { matches: (text: string, budget: MatchBudget) => boolean; size: number } {
  const { size } = readPattern(pattern, pointer).whole
  const key = {}
  const make = () => {
    const { whole, ignoreCase } = readPattern(pattern, pointer)
    const made = makeMatcher(whole.node, ignoreCase)
    matchers.set(key, made, { size: size + matcherParts })
    return made
  }
  return { matches: (text, budget) => (matchers.get(key) ?? make())(text, budget), size }
}

function readPattern(
  pattern: string,
  pointer: string,
  keepsExtent = false,
): { whole: Piece; ignoreCase: boolean } {
  if (pattern.length > limits.regexCharsMax) {
    throw makeInvalidFault(pointer, `is a pattern of more than ${limits.regexCharsMax} characters`)
  }
  const ignoreCase = pattern.startsWith('(?i)')
  const source = [...(ignoreCase ? pattern.slice(4) : pattern)]
  const reader: Reader = {
    source,
    at: 0,
    keepsExtent,
    refuse: (problem) => makeInvalidFault(pointer, `is not a pattern that can be used: ${problem}`),
  }
  const whole = alternatives(reader)
  if (reader.at < source.length) throw reader.refuse('a ) closes nothing')
  if (whole.assertions > assertionsMax)
    throw reader.refuse(`it has more than ${assertionsMax} of ^, $ and \\b`)
  if (whole.size > expandedSizeMax) throw reader.refuse('its repetitions make it too large')
  return { whole, ignoreCase }
}

function alternatives(reader: Reader): Piece {
  const branches = [branch(reader)]
  while (peek(reader) === '|') {
    reader.at += 1
    branches.push(branch(reader))
  }
  return concatenate(branches, '|')
}

function branch(reader: Reader): Piece {
  const pieces: Piece[] = []
  for (
    let next = peek(reader);
    next !== undefined && next !== '|' && next !== ')';
    next = peek(reader)
  ) {
    pieces.push(quantified(reader))
  }
  return concatenate(pieces, '')
}

function concatenate(pieces: readonly Piece[], separator: string): Piece {
  return {
    text: pieces.map((piece) => piece.text).join(separator),
    size: pieces.reduce((sum, piece) => sum + piece.size, 1),
    endless: pieces.some((piece) => piece.endless),
    assertions: pieces.reduce((sum, piece) => sum + piece.assertions, 0),
    node: { kind: separator === '|' ? 'any' : 'all', parts: pieces.map(({ node }) => node) },
  }
}

function quantified(reader: Reader): Piece {
  const atom = readAtom(reader)
  const quantifier = readQuantifier(reader)
  if (quantifier === undefined) return atom
  if (atom.size === 0) throw reader.refuse('a quantifier follows ^, $ or \\b')
  if (atom.assertions > 0) throw reader.refuse('a quantifier applies to a group with ^, $ or \\b')
  const endless = quantifier.most === undefined
  if (endless && atom.endless) throw reader.refuse('quantifiers without end are nested')
  if (['*', '+', '?', '{'].includes(peek(reader) ?? ''))
    throw reader.refuse('a quantifier follows a quantifier')
  return {
    text: atom.text + quantifier.text,
    size: atom.size * Math.max(quantifier.most ?? quantifier.least + 1, 1),
    endless: endless || atom.endless,
    assertions: 0,
    node: {
      kind: 'repeat',
      part: atom.node,
      least: quantifier.least,
      most: quantifier.most,
    },
  }
}

function readAtom(reader: Reader): Piece {
  const character = take(reader)
  switch (character) {
    case '(':
      return readGroup(reader)
    case '[':
      return readClass(reader)
    case '\\':
      return readEscape(reader)
    case '^':
    case '$':
      return assertion(character, character)
    case '.':
      return one('.', [], true)
    case '*':
    case '+':
    case '?':
    case '{':
      throw reader.refuse(
        `there is nothing to repeat before ${character}; for the character itself write \\${character}`,
      )
    default:
      return one(literal(character), [makeRange(character)])
  }
}

function readGroup(reader: Reader): Piece {
  const isPlain = peek(reader) === '?'
  if (isPlain) {
    if (reader.source[reader.at + 1] !== ':')
      throw reader.refuse('(?…) other than (?:…) is not supported')
    reader.at += 2
  }
  const inner = alternatives(reader)
  if (peek(reader) !== ')') throw reader.refuse('a ( is not closed')
  reader.at += 1
  const isNumbered = reader.keepsExtent && !isPlain
  return { ...inner, text: `(${isNumbered ? '' : '?:'}${inner.text})`, size: inner.size + 1 }
}

/** ASCII meanings, so that the same rows match under every locale and in every program. */
const classEscapes: Readonly<Record<string, Members>> = {
  d: { text: '0-9', ranges: [makeRange('0', '9')] },
  w: {
    text: 'A-Za-z0-9_',
    ranges: [makeRange('A', 'Z'), makeRange('a', 'z'), makeRange('0', '9'), makeRange('_')],
  },
  s: { text: ' \\u0009-\\u000d', ranges: [makeRange(' '), makeRange('\t', '\r')] },
}
const characterEscapes: Readonly<Record<string, string>> = {
  t: '\t',
  n: '\n',
  r: '\r',
  f: '\f',
  v: '\v',
}

function readEscape(reader: Reader): Piece {
  const character = take(reader)
  if (/[1-9]/.test(character)) throw reader.refuse('backreferences are not supported')
  // PostgreSQL writes \y for what others write as \b.
  if (/[byBY]/.test(character)) {
    const isEnd = /[by]/.test(character)
    return assertion(isEnd ? '\\y' : '\\Y', isEnd ? 'b' : 'B')
  }
  const positive = classEscapes[character]
  if (positive !== undefined) return one(`[${positive.text}]`, positive.ranges)
  const negative = classEscapes[character.toLowerCase()]
  if (negative !== undefined) return one(`[^${negative.text}]`, negative.ranges, true)
  const escaped = escapedCharacter(reader, character)
  return one(literal(escaped), [makeRange(escaped)])
}

function readClass(reader: Reader): Piece {
  const negated = peek(reader) === '^'
  if (negated) reader.at += 1
  let text = negated ? '[^' : '['
  const ranges: CodeRange[] = []
  if (peek(reader) === ']') throw reader.refuse('a class [] is empty')
  while (peek(reader) !== ']') {
    const members = classMember(reader)
    text += members.text
    ranges.push(...members.ranges)
  }
  reader.at += 1
  return one(`${text}]`, ranges, negated)
}

function classMember(reader: Reader): Members {
  const from = take(reader)
  if (from === '[' && [':', '.', '='].includes(peek(reader) ?? '')) {
    throw reader.refuse('[:name:] is not supported; for the character [ write \\[')
  }
  const named = from === '\\' ? classEscapes[peek(reader) ?? ''] : undefined
  if (named !== undefined) {
    reader.at += 1
    if (peek(reader) === '-' && reader.source[reader.at + 1] !== ']') {
      throw reader.refuse('a range cannot begin with a class; for the character - write \\-')
    }
    return named
  }
  const first = from === '\\' ? escapedCharacter(reader, take(reader)) : from
  if (peek(reader) !== '-' || reader.source[reader.at + 1] === ']')
    return { text: literal(first), ranges: [makeRange(first)] }
  reader.at += 1
  const to = take(reader)
  const last = to === '\\' ? escapedCharacter(reader, take(reader)) : to
  if (codePoint(first) > codePoint(last))
    throw reader.refuse(`the range ${first}-${last} is reversed`)
  return { text: `${literal(first)}-${literal(last)}`, ranges: [makeRange(first, last)] }
}

function escapedCharacter(reader: Reader, character: string): string {
  const known = characterEscapes[character]
  if (known !== undefined) return known
  const digits = { u: 4, x: 2 }[character]
  if (digits !== undefined) return characterOfCode(reader, digits)
  if (/[0-9A-Za-z]/.test(character)) throw reader.refuse(`\\${character} is not supported here`)
  return character
}

/** The character of \uHHHH or \xHH. */
function characterOfCode(reader: Reader, digits: number): string {
  const code = Array.from({ length: digits }, () => take(reader)).join('')
  const character = /^[0-9A-Fa-f]+$/.test(code)
    ? String.fromCharCode(Number.parseInt(code, 16))
    : ''
  if (!/^[^\0\p{Surrogate}]$/u.test(character)) {
    throw reader.refuse(`\\u and \\x need ${digits} hexadecimal digits of a character`)
  }
  return character
}

type Quantifier = {
  readonly text: string
  readonly least: number
  readonly most: number | undefined
}

function readQuantifier(reader: Reader): Quantifier | undefined {
  const simple = simpleQuantifiers[peek(reader) ?? '']
  if (simple !== undefined) {
    reader.at += 1
    return { ...simple, text: simple.text + takeLazy(reader) }
  }
  if (peek(reader) !== '{') return undefined
  const close = reader.source.indexOf('}', reader.at)
  const inside = close < 0 ? '' : reader.source.slice(reader.at + 1, close).join('')
  const match = /^([0-9]{1,3})(?:(,)([0-9]{1,3})?)?$/.exec(inside)
  if (match === null)
    throw reader.refuse('{ must begin {n}, {n,} or {n,m}; for the character itself write \\{')
  const least = Number(match[1])
  const most =
    match[2] === undefined ? least : match[3] === undefined ? undefined : Number(match[3])
  if (Math.max(least, most ?? 0) > repetitionsMax || (most !== undefined && most < least)) {
    throw reader.refuse(`{${inside}} must rise and be at most ${repetitionsMax}`)
  }
  reader.at = close + 1
  return { text: `{${inside}}${takeLazy(reader)}`, least, most }
}

const simpleQuantifiers: Readonly<Record<string, Quantifier>> = {
  '*': { text: '*', least: 0, most: undefined },
  '+': { text: '+', least: 1, most: undefined },
  '?': { text: '?', least: 0, most: 1 },
}

/** A lazy quantifier changes how much is matched, never whether there is a match. */
function takeLazy(reader: Reader): string {
  if (peek(reader) !== '?') return ''
  reader.at += 1
  return reader.keepsExtent ? '?' : ''
}

function one(text: string, ranges: readonly CodeRange[], negated = false): Piece {
  return { text, size: 1, endless: false, assertions: 0, node: { kind: 'one', ranges, negated } }
}

function assertion(text: string, place: '^' | '$' | 'b' | 'B'): Piece {
  return { text, size: 0, endless: false, assertions: 1, node: { kind: 'at', place } }
}

function makeRange(first: string, last = first): CodeRange {
  return [codePoint(first), codePoint(last)]
}

/**
 * Writes letters, digits and blanks as they are, and all else by code point, which means itself everywhere in a
 * pattern.
 */
function literal(character: string): string {
  if (/^[0-9A-Za-z ]$/.test(character)) return character
  const code = codePoint(character)
  return code <= 0xffff
    ? `\\u${code.toString(16).padStart(4, '0')}`
    : `\\U${code.toString(16).padStart(8, '0')}`
}

function codePoint(character: string): number {
  return character.codePointAt(0) ?? 0
}

function peek(reader: Reader): string | undefined {
  return reader.source[reader.at]
}

function take(reader: Reader): string {
  const character = reader.source[reader.at]
  if (character === undefined) throw reader.refuse('it ends too early')
  reader.at += 1
  return character
}
