import { BoundedScanner, type JsonBounds } from './bounded-scanner.ts'
import type { JsonSource } from './json-source.ts'

/** A long list or object, as runs of members that are each short enough to be parsed at once. */
type Long = { readonly isList: boolean; readonly runs: readonly Run[] }
/** Offsets of a run of members; or of the key of one member, empty in a list, whose value is long. */
type Run = { readonly from: number; readonly to: number; readonly long?: Long }

/** A list or object that the scan has entered and not left. */
type Open = {
  readonly isList: boolean
  readonly start: number
  readonly runs: Run[]
  /** Where the current run begins; -1 where the next member begins one. */
  from: number
  /** Where the current member begins, and where the key in it ends. */
  member: number
  keyEnd: number
  /** Where the member before ended. */
  end: number
}

export type Slices = JsonBounds & {
  /** Characters that are read without a pause; a single text or number may be longer. */
  readonly charsMax: number
  /** Yields to other requests. */
  readonly pause: () => Promise<void>
}

/**
 * Returns what JSON.parse returns, or throws a SyntaxError where it does; pauses in between, however long the text
 * is.
 */
export async function parseInSlices(source: JsonSource, slices: Slices): Promise<unknown> {
  const long = await scan(source, slices)
  await slices.pause()
  return long === undefined ? JSON.parse(source.cut(0, source.length)) : build(source, long, slices)
}

/** Finds the places where a text can be cut; undefined where the whole text is short. */
async function scan(source: JsonSource, slices: Slices): Promise<Long | undefined> {
  const { charsMax, pause } = slices
  const scanner = new BoundedScanner(source, slices)
  const open: Open[] = []
  let root: Long | undefined
  let pauseAt = charsMax * 2
  for (let token = scanner.next(); token !== 'end'; token = scanner.next()) {
    const { start, end } = scanner
    if (end >= pauseAt) {
      pauseAt = end + charsMax * 2
      await pause()
    }
    const inside = open.at(-1)
    switch (token) {
      case 'broken':
        throw new SyntaxError(`the text is not JSON at character ${start}`)
      case 'key':
        if (inside) beginMember(inside, start, end)
        break
      case '{':
      case '[':
        if (inside?.isList) beginMember(inside, start, start)
        open.push(openAt(start, token === '['))
        break
      case '}':
      case ']': {
        const long = close(open.pop(), end, charsMax)
        const around = open.at(-1)
        if (around === undefined) root = long
        else if (long === undefined) endMember(around, end, charsMax)
        else putLong(around, long)
        break
      }
      default:
        if (inside?.isList) beginMember(inside, start, start)
        if (inside) endMember(inside, end, charsMax)
    }
  }
  return root
}

function openAt(start: number, isList: boolean): Open {
  return { isList, start, runs: [], from: -1, member: start, keyEnd: start, end: start }
}

function beginMember(inside: Open, start: number, keyEnd: number): void {
  if (inside.from < 0) inside.from = start
  inside.member = start
  inside.keyEnd = keyEnd
}

function endMember(inside: Open, end: number, charsMax: number): void {
  inside.end = end
  if (end - inside.from >= charsMax) endRun(inside)
}

/** Ends the run behind the last whole member, if there is one. */
function endRun(inside: Open): void {
  const { from, end } = inside
  if (from >= 0 && end > from) inside.runs.push({ from, to: end })
  inside.from = -1
}

/** The current member is a run of its own. */
function putLong(inside: Open, long: Long): void {
  endRun(inside)
  inside.runs.push({ from: inside.member, to: inside.keyEnd, long })
}

/** Makes a list or object of runs, if it is long. */
function close(closed: Open | undefined, end: number, charsMax: number): Long | undefined {
  if (closed === undefined) return undefined
  const { isList, start, runs } = closed
  if (runs.length === 0 && end - start <= charsMax) return undefined
  endRun(closed)
  return { isList, runs }
}

async function build(source: JsonSource, long: Long, slices: Slices): Promise<unknown> {
  const list: unknown[] = []
  const object: Record<string, unknown> = {}
  for (const { from, to, long: inner } of long.runs) {
    const run = source.cut(from, to)
    if (inner !== undefined) {
      const made = await build(source, inner, slices)
      if (long.isList) list.push(made)
      else put(object, JSON.parse(run), made)
      continue
    }
    if (long.isList) for (const item of JSON.parse(`[${run}]`)) list.push(item)
    else for (const [key, item] of Object.entries(JSON.parse(`{${run}}`))) put(object, key, item)
    await slices.pause()
  }
  return long.isList ? list : object
}

/** Sets a member as JSON.parse does: `__proto__` is a member like others. */
function put(object: Record<string, unknown>, key: string, value: unknown): void {
  if (key !== '__proto__') object[key] = value
  else
    Object.defineProperty(object, key, {
      value,
      writable: true,
      enumerable: true,
      configurable: true,
    })
}
