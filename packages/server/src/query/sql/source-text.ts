import { limits } from '@tollbase/contract/limits'
import type { Node, SelectStmt } from 'libpg-query'
import { awaitTurn } from '../../base/await-turn.ts'
import { Fault, makeInvalidFault } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import { checkText } from '../operand.ts'
import { describeConstruct } from './describe-construct.ts'
import { findOtherWay } from './other-dialects.ts'
import { ParserProblem, parseSqlText, scanSql, type Token, tokenTypes } from './parser.ts'

/** A statement as PostgreSQL's own parser reads it, with the means to name places in the caller's text. */
export type SourceText = {
  readonly select: SelectStmt
  /** The names of the parameters in the order of their numbers; `$1` is called `1`. */
  readonly parameterNames: readonly string[]
  /**
   * Returns a 400 that names the place; `location` is the parser's (undefined or -1: unknown), and `around` that of
   * the part around, for texts in which any place is better than none.
   */
  readonly refuse: (location: number | undefined, problem: string, around?: number) => Fault
}

/** A token with its text; places count characters. */
export type SqlToken = Token & { readonly text: string }

/** Keywords that are never names where `isName` would take them for one. */
const notNames = new Set(
  'partition rows range groups current unbounded unknown materialized recursive delete insert update merge matched'.split(
    ' ',
  ),
)
const beforeNames = new Set(
  'select distinct by where and or not on as having when then else case between in like , ( . + - * / % = < > <= >= <> !='.split(
    ' ',
  ),
)
/** The most attempts to parse: each `app::collection` in the place of a table takes one more. */
const attemptsMax = limits.sqlSourceUsesMax + 1

/**
 * Reads one SELECT. Syntax that PostgreSQL's lexer does not know is rewritten first: names keep their case (it
 * would fold them), `:name` is a parameter, and `app::collection` a table.
 */
export async function readSource(sql: string): Promise<SourceText> {
  checkText(sql, '/sql')
  if (sql.trim() === '') throw makeInvalidFault('/sql', 'is empty')
  if (sql.length > limits.sqlCharsMax)
    throw makeInvalidFault('/sql', `is longer than ${limits.sqlCharsMax} characters`)
  const problemAt = (position: number | undefined, problem: string) =>
    makeRefusal(sql, position, problem)
  // Even a short statement takes longer to read than a list. Without turns, quick requests would wait for all
  // statements that came together, also where each of these is refused.
  await awaitTurn()
  const rewritten = await rewrite(sql, problemAt)
  const offsets = byteOffsets(rewritten.text)
  const statements = await parseTables(rewritten.text, (at, problem) => {
    const position = rewritten.original(at)
    const way = findOtherWay(sql, position)
    return problemAt(position, way === undefined ? problem : `${problem}; ${way}`)
  })
  const refuse = (location: number | undefined, problem: string, around = 0) => {
    const known = location !== undefined && location >= 0 ? location : around
    return problemAt(rewritten.original(offsets.charOf(known)), problem)
  }
  const [first, second] = statements
  const node: Node | undefined = first?.stmt
  if (second !== undefined)
    throw refuse(second.stmt_location, 'a second statement; only one may be sent')
  if (node === undefined) throw makeInvalidFault('/sql', 'is empty')
  if (!('SelectStmt' in node))
    throw refuse(first?.stmt_location ?? 0, `${describeConstruct(node)}; only SELECT is possible`)
  return { select: node.SelectStmt, parameterNames: rewritten.parameterNames, refuse }
}

/**
 * Lists all names that could be applications in a text that is not parsed yet: those before `::`, of casts too.
 * Undefined if that takes a parser to tell.
 */
export function listApplications(sql: string): readonly string[] | undefined {
  if (sql.includes('--') || sql.includes('/*')) return undefined
  const pieces = sql.split('::').slice(0, -1)
  const names = pieces.flatMap((piece) => {
    const end = piece.slice(-applicationCharsMax).trimEnd().replace(/"$/, '')
    return /[A-Za-z0-9_-]+$/.exec(end) ?? []
  })
  return [...new Set(names)]
}

/** The most characters of a name and the blanks behind it; the end of a longer one is no application's name. */
const applicationCharsMax = 100

/**
 * Every `app::collection` of a statement in the order of the text, each once. It tells them of statements too that
 * nobody could run.
 */
export function listModels({ select }: SourceText): readonly string[] {
  const found: { readonly model: string; readonly location: number }[] = []
  // No recursion: how deep a statement goes is judged by who reads its meaning.
  const rest: unknown[] = [select]
  for (let node = rest.pop(); node !== undefined; node = rest.pop()) {
    if (typeof node !== 'object' || node === null) continue
    const table = 'RangeVar' in node && isRecord(node.RangeVar) ? node.RangeVar : {}
    if (typeof table.schemaname === 'string' && !isCatalog(table.schemaname))
      found.push({
        model: `${table.schemaname}::${table.relname}`,
        location: Number(table.location ?? 0),
      })
    // Members that are not there would end the loop.
    for (const inner of Object.values(node)) if (inner !== undefined) rest.push(inner)
  }
  const inOrder = found.sort((a, b) => a.location - b.location)
  return [...new Set(inOrder.map(({ model }) => model))]
}

/** Schemas of PostgreSQL's own, which are no applications. */
export function isCatalog(schema: string): boolean {
  return schema.startsWith('pg_') || schema === 'information_schema'
}

/** Returns a 400 that names the line and column of a character of the statement. */
export function makeRefusal(sql: string, position: number | undefined, problem: string): Fault {
  if (position === undefined) return makeInvalidFault('/sql', `has ${problem}`)
  const before = sql.slice(0, position).split('\n')
  const place = { line: before.length, column: [...(before.at(-1) ?? '')].length + 1 }
  return new Fault('VALIDATION_FAILED', {
    message: `/sql has ${problem} (line ${place.line}, column ${place.column})`,
    details: { field: '/sql', problem, position, ...place },
  })
}

type Edit = { readonly start: number; readonly end: number; readonly text: string }
type Rewritten = {
  readonly text: string
  readonly parameterNames: readonly string[]
  readonly original: (position: number) => number
}

type Refuse = (position: number, problem: string) => Fault

async function rewrite(sql: string, refuse: Refuse): Promise<Rewritten> {
  const tokens = await readTokens(sql)
  for (const token of tokens) checkName(token, refuse)
  const parameterNames: string[] = []
  const edits = tokens.flatMap((token, at): readonly Edit[] => {
    const { start, end, text } = token
    const [before, next] = [tokens[at - 1], tokens[at + 1]]
    const isParameter = before?.text === ':' && before.end === start && !text.startsWith('"')
    if (isParameter && /^[A-Za-z_]/.test(text)) {
      const known = parameterNames.indexOf(text)
      const number = known < 0 ? parameterNames.push(text) : known + 1
      return [{ start: start - 1, end, text: ` $${number}` }]
    }
    if (token.type === tokenTypes.typecast && isWholeRecord(tokens, at))
      return [{ start, end, text: '. ' }]
    const isCased = text !== text.toLowerCase() && !text.startsWith('"')
    return isCased && isName(token, before, next) ? [{ start, end, text: `"${text}"` }] : []
  })
  return { ...applied(sql, edits), parameterNames }
}

/** The longest name that the parser keeps whole; it would silently cut a longer one. */
const nameBytesMax = 63

function checkName({ text, type, start }: SqlToken, refuse: Refuse): void {
  if (/^u&"/i.test(text)) throw refuse(start, 'a name in the form U&"…"')
  const isName = type === tokenTypes.name
  const name = text.startsWith('"') ? text.slice(1, -1).replaceAll('""', '"') : text
  if (isName && Buffer.byteLength(name) > nameBytesMax)
    throw refuse(start, `a name of more than ${nameBytesMax} bytes`)
}

/** Reads the tokens of a text, with places in characters; none if the lexer cannot read it. */
export async function readTokens(sql: string): Promise<readonly SqlToken[]> {
  let tokens: readonly Token[]
  try {
    tokens = await scanSql(sql)
  } catch (error) {
    // The parser refuses every text that the lexer cannot read, and names the place.
    if (error instanceof ParserProblem) return []
    throw error
  }
  const offsets = byteOffsets(sql)
  return tokens.map((token) => {
    const [start, end] = [offsets.charOf(token.start), offsets.charOf(token.end)]
    return { start, end, type: token.type, keyword: token.keyword, text: sql.slice(start, end) }
  })
}

/** Returns true at `app::collection.*`, whose star the parser would take for a mistake. */
function isWholeRecord(tokens: readonly SqlToken[], at: number): boolean {
  return tokens[at + 2]?.text === '.' && tokens[at + 3]?.text === '*'
}

function isName(token: SqlToken, before: SqlToken | undefined, next: SqlToken | undefined) {
  if (token.type === tokenTypes.name) return true
  if (token.keyword !== 1 || next?.text === '(') return false
  if (before?.text === '.' || next?.text === '.') return true
  if (notNames.has(token.text.toLowerCase())) return false
  return before !== undefined && beforeNames.has(before.text.toLowerCase())
}

function applied(sql: string, edits: readonly Edit[]): Omit<Rewritten, 'parameterNames'> {
  let text = ''
  let at = 0
  const shifts: { readonly from: number; readonly original: number }[] = [{ from: 0, original: 0 }]
  for (const edit of edits) {
    text += sql.slice(at, edit.start)
    shifts.push({ from: text.length, original: edit.start })
    text += edit.text
    shifts.push({ from: text.length, original: edit.end })
    at = edit.end
  }
  text += sql.slice(at)
  const original = (position: number) => {
    const index = shifts.findLastIndex((shift) => shift.from <= position)
    const shift = shifts[index] ?? { from: 0, original: 0 }
    const isInside = index % 2 === 1
    return isInside ? shift.original : shift.original + position - shift.from
  }
  return { text, original }
}

/** Converts places from the parser's count of UTF-8 bytes to characters. */
function byteOffsets(text: string): { readonly charOf: (bytes: number) => number } {
  const length = Buffer.byteLength(text)
  if (length === text.length) return { charOf: (count) => count }
  // Computed once: a statement may ask for as many places as it has words.
  const chars = new Uint32Array(length + 1).fill(text.length)
  let bytes = 0
  let at = 0
  for (const character of text) {
    const end = bytes + Buffer.byteLength(character)
    chars.fill(at, bytes, end)
    bytes = end
    at += character.length
  }
  return { charOf: (count) => chars[count] ?? text.length }
}

/**
 * Parses a text with `app::collection` in the place of tables, which is a syntax error exactly at the `::`, as no
 * cast ever is; so the parser itself tells which ones to write as `app. collection`.
 */
async function parseTables(text: string, refuse: Refuse) {
  let attempt = text
  for (let count = 0; count < attemptsMax; count += 1) {
    try {
      const { stmts } = await parseSqlText(attempt)
      return stmts ?? []
    } catch (error) {
      if (!(error instanceof ParserProblem)) throw error
      const { position } = error
      if (position === undefined) throw makeInvalidFault('/sql', `cannot be read: ${reason(error)}`)
      const at = charPosition(attempt, position)
      if (attempt.slice(at, at + 2) !== '::') throw refuse(at, `a mistake: ${reason(error)}`)
      attempt = `${attempt.slice(0, at)}. ${attempt.slice(at + 2)}`
    }
  }
  throw makeInvalidFault('/sql', `has more than ${limits.sqlSourceUsesMax} uses of collections`)
}

/** Converts a count of characters to JavaScript's, which has two units for some of them. */
function charPosition(text: string, characters: number): number {
  let at = 0
  for (let count = 0; count < characters && at < text.length; count++)
    at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1
  return at
}

/** Rewords the parser's sentence, so that nobody takes it for an error of the database. */
function reason({ message }: ParserProblem): string {
  return message
    .replace(/ at or near /, ' near ')
    .replace('LIMIT #,# syntax is not supported', 'LIMIT of two numbers; write LIMIT 10 OFFSET 5')
    .replaceAll('""', '"')
}
