import { createRequire } from 'node:module'
import { Worker } from 'node:worker_threads'
import { limits } from '@tollbase/contract/limits'
import { type ParseResult, parse, SqlError, scan } from 'libpg-query'
import { Fault, makeInvalidFault } from '../../base/fault.ts'

/** Long statements that wait to be parsed. */
const sqlReadingMax = 64
/** Characters up to which a statement is parsed on the request's thread; longer ones get a thread of their own. */
export const sqlCharsHere = 1_024

/** The reason why PostgreSQL's parser refuses a text; `position` counts characters. */
export class ParserProblem extends Error {
  readonly position: number | undefined

  constructor(message: string, position: number | undefined) {
    super(message)
    this.position = position
  }
}

/** A word or sign of a text; places count bytes of UTF-8. */
export type Token = {
  readonly start: number
  readonly end: number
  /** The parser's number for the token's kind. */
  readonly type: number
  /** 1 for a keyword that may be a name too, 0 for a token that is no keyword. */
  readonly keyword: number
}

/** The parser's numbers of kinds of tokens. */
export const tokenTypes = {
  comma: 44,
  name: 258,
  fraction: 260,
  text: 261,
  whole: 266,
  typecast: 268,
  lineComment: 275,
  blockComment: 276,
} as const

/** Reads the tokens of a text; throws a 400 if there are more than a statement may have. */
export async function scanSql(sql: string): Promise<readonly Token[]> {
  const numbers = isShort(sql) ? await scanHere(sql) : await elsewhere('scan', sql)
  const tokens: Token[] = []
  let words = 0
  for (let at = 0; at < numbers.length; at += 4) {
    const [start = 0, end = 0, type = 0, keyword = 0] = numbers.subarray(at, at + 4)
    if (!valueTypes.has(type)) words += 1
    tokens.push({ start, end, type, keyword })
  }
  if (words > limits.sqlWordsMax) throw tooMany(limits.sqlWordsMax, 'words and signs')
  return tokens
}

/** Values and the commas between them are read fast, so more of them are allowed. */
const valueTypes: ReadonlySet<number> = new Set([
  tokenTypes.comma,
  tokenTypes.fraction,
  tokenTypes.text,
  tokenTypes.whole,
])

export async function parseSqlText(sql: string): Promise<ParseResult> {
  return isShort(sql) ? asProblem(() => parse(sql)) : JSON.parse(await elsewhere('parse', sql))
}

async function scanHere(sql: string): Promise<Int32Array> {
  const { tokens } = await asProblem(() => scan(sql))
  return Int32Array.from(
    tokens.flatMap(({ start, end, tokenType, keywordKind }) => [
      start,
      end,
      tokenType,
      keywordKind,
    ]),
  )
}

/** Returns true if parsing takes this thread no longer than a request does anyway (1 ms for 1,000 characters). */
function isShort(sql: string): boolean {
  return sql.length <= sqlCharsHere
}

async function asProblem<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof SqlError)
      throw new ParserProblem(error.message, error.sqlDetails?.cursorPosition)
    // Too deep a nesting ends as a RangeError.
    throw new ParserProblem('it is nested too deeply', undefined)
  }
}

/** The thread sends numbers and text: thousands of objects would take longer to transfer than to build here. */
type Work = { readonly scan: Int32Array; readonly parse: string }
type Answer =
  | { readonly value: Work[keyof Work] }
  | { readonly tokens: number }
  | { readonly problem: string; readonly position?: number }
type Waiting = {
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: Error) => void
}

/**
 * Plain JavaScript as text: a file of its own would have to be found by the program as source, as build output, and
 * as one bundled file.
 */
const script = `
const { parentPort, workerData } = require('node:worker_threads')
const { loadModule, scanSync, parseSync, SqlError } = require(workerData.parser)
const work = {
  scan: (sql) => {
    const { tokens } = scanSync(sql)
    if (tokens.length > workerData.tokensMax) return { tokens: tokens.length }
    const numbers = tokens.flatMap((each) => [each.start, each.end, each.tokenType, each.keywordKind])
    return { value: Int32Array.from(numbers) }
  },
  parse: (sql) => ({ value: JSON.stringify(parseSync(sql)) }),
}
const read = ({ kind, sql }) => {
  try {
    return work[kind](sql)
  } catch (error) {
    if (!(error instanceof SqlError)) return { problem: 'it is nested too deeply' }
    return { problem: error.message, position: error.sqlDetails?.cursorPosition }
  }
}
const ready = loadModule()
parentPort.on('message', (asked) => ready.then(() => parentPort.postMessage(read(asked))))
`

/** The thread that reads long texts, one after the other, and its waiting callers. */
let thread: { readonly worker: Worker; readonly waiting: Waiting[] } | undefined

async function elsewhere<K extends keyof Work>(kind: K, sql: string): Promise<Work[K]> {
  const { worker, waiting } = startedThread()
  if (waiting.length >= sqlReadingMax) {
    throw new Fault('UNAVAILABLE', {
      message: 'Too many long statements are being read; try again shortly.',
      retryAfterSeconds: 1,
    })
  }
  const answer = await new Promise<Answer>((resolve, reject) => {
    waiting.push({ resolve, reject })
    worker.ref()
    worker.postMessage({ kind, sql })
  })
  if ('problem' in answer) throw new ParserProblem(answer.problem, answer.position)
  if ('tokens' in answer) throw tooMany(limits.sqlTokensMax, 'words, signs and values')
  // The thread answers each request by its kind.
  return answer.value as Work[K]
}

function tooMany(most: number, things: string): Fault {
  return makeInvalidFault('/sql', `has more than ${most} ${things}`)
}

function startedThread() {
  if (thread !== undefined) return thread
  const parser = createRequire(import.meta.url).resolve('libpg-query')
  const worker = new Worker(script, {
    eval: true,
    workerData: { parser, tokensMax: limits.sqlTokensMax },
    // The arguments that this process was started with concern its own code.
    execArgv: [],
  })
  const started = { worker, waiting: [] as Waiting[] }
  worker.on('message', (answer: Answer) => {
    started.waiting.shift()?.resolve(answer)
    // It keeps the process alive only while somebody waits.
    if (started.waiting.length === 0) worker.unref()
  })
  const lost = (error: Error) => {
    if (thread === started) thread = undefined
    for (const { reject } of started.waiting.splice(0)) reject(error)
  }
  worker.on('error', lost)
  worker.on('exit', () => lost(new Error('the thread that reads statements has ended')))
  worker.unref()
  thread = started
  return started
}
