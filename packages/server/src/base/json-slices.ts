import { makeInvalidFault } from './fault.ts'

/** A long list or object, as runs of members that are each short enough to be parsed at once. */
type Long = {
  readonly isList: boolean
  readonly start: number
  readonly end: number
  readonly runs: readonly Run[]
}
/** A run of members; or one member, whose value is long. */
type Run = { readonly from: number; readonly to: number; readonly long?: Long }

/** A list or object that the scan has entered and not left. */
type Open = {
  readonly isList: boolean
  readonly start: number
  readonly runs: Run[]
  /** Number of members before the current one. */
  members: number
  /** Offsets at which the current run and the current member begin. */
  from: number
  member: number
  /** The value of the current member, where it is long. */
  long: Long | undefined
}

const codes = { quote: 0x22, comma: 0x2c, backslash: 0x5c } as const
const opening: ReadonlyMap<number, boolean> = new Map([
  [0x5b, true],
  [0x7b, false],
])
const closing: ReadonlyMap<number, boolean> = new Map([
  [0x5d, true],
  [0x7d, false],
])

export type Slices = {
  /** Deepest nesting of lists and objects, and most members of one object; anything beyond is a 400. */
  readonly depthMax: number
  readonly membersMax: number
  /** Characters that are read without a pause; a single text or number may be longer. */
  readonly charsMax: number
  /** Yields to other requests. */
  readonly pause: () => Promise<void>
}

/**
 * Returns what JSON.parse returns, or throws a SyntaxError where it does; pauses in between, however long the text
 * is.
 */
export async function parseInSlices(text: string, slices: Slices): Promise<unknown> {
  const long = await scan(text, slices)
  await slices.pause()
  if (long === undefined) return JSON.parse(text)
  requireBlank(text, 0, long.start)
  requireBlank(text, long.end, text.length)
  return build(text, long, slices)
}

/** Finds the places where a text can be cut; undefined where the whole text is short. */
async function scan(text: string, slices: Slices): Promise<Long | undefined> {
  const { charsMax, pause } = slices
  const open: Open[] = [openAt(-1, true)]
  let pauseAt = charsMax * 4
  for (let at = 0; at < text.length; at++) {
    if (at >= pauseAt) {
      pauseAt = at + charsMax * 4
      await pause()
    }
    const code = text.charCodeAt(at)
    if (code === codes.quote) at = findTextEnd(text, at)
    else if (code === codes.comma) endMember(innermost(open), at, slices)
    else if (opening.has(code)) {
      if (open.length > slices.depthMax)
        throw makeInvalidFault('', `is nested deeper than ${slices.depthMax}`)
      open.push(openAt(at, opening.get(code) === true))
    } else if (closing.has(code)) close(open, { at, isList: closing.get(code) === true, charsMax })
  }
  const root = innermost(open)
  if (open.length !== 1 || root.runs.length > 0 || root.from > 0) throw broken()
  return root.long
}

function openAt(start: number, isList: boolean): Open {
  return {
    isList,
    start,
    runs: [],
    members: 0,
    from: start + 1,
    member: start + 1,
    long: undefined,
  }
}

function innermost(open: readonly Open[]): Open {
  const last = open.at(-1)
  if (last === undefined) throw broken()
  return last
}

/** Finds the quote that ends the string which begins at `start`. */
function findTextEnd(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let backslashes = 0
    while (text.charCodeAt(end - 1 - backslashes) === codes.backslash) backslashes++
    if (backslashes % 2 === 0) return end
  }
  throw broken()
}

function endMember(
  inside: Open,
  at: number,
  { charsMax, membersMax }: Pick<Slices, 'charsMax' | 'membersMax'>,
): void {
  inside.members += 1
  if (!inside.isList && inside.members >= membersMax)
    throw makeInvalidFault('', `has an object of more than ${membersMax} members`)
  if (inside.long !== undefined || at - inside.from >= charsMax) endRun(inside, at)
  inside.member = at + 1
}

function endRun(inside: Open, at: number): void {
  const { from, member, long } = inside
  if (long === undefined) inside.runs.push({ from, to: at })
  else {
    if (member > from) inside.runs.push({ from, to: member - 1 })
    inside.runs.push({ from: member, to: at, long })
  }
  inside.from = at + 1
  inside.long = undefined
}

function close(open: Open[], end: { at: number; isList: boolean; charsMax: number }): void {
  const closed = open.pop()
  const around = innermost(open)
  if (closed === undefined || closed.isList !== end.isList) throw broken()
  const isLong = closed.runs.length > 0 || closed.long !== undefined
  if (!isLong && end.at - closed.start < end.charsMax) return
  endRun(closed, end.at)
  // Two values without a comma between them.
  if (around.long !== undefined) throw broken()
  const { isList, start, runs } = closed
  around.long = { isList, start, end: end.at + 1, runs }
}

async function build(text: string, long: Long, slices: Slices): Promise<unknown> {
  const list: unknown[] = []
  const object: Record<string, unknown> = {}
  for (const { from, to, long: value } of long.runs) {
    if (value !== undefined) {
      requireBlank(text, value.end, to)
      const before = text.slice(from, value.start)
      const made = await build(text, value, slices)
      if (long.isList) {
        requireBlank(text, from, value.start)
        list.push(made)
      } else put(object, onlyKey(before), made)
      continue
    }
    const run = text.slice(from, to)
    if (long.runs.length > 1 && run.trim() === '') throw broken()
    if (long.isList) for (const item of JSON.parse(`[${run}]`)) list.push(item)
    else for (const [key, item] of Object.entries(JSON.parse(`{${run}}`))) put(object, key, item)
    await slices.pause()
  }
  return long.isList ? list : object
}

/** The key in `"key":`. */
function onlyKey(before: string): string {
  const [key, ...others] = Object.keys(JSON.parse(`{${before}null}`))
  if (key === undefined || others.length > 0) throw broken()
  return key
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

function requireBlank(text: string, from: number, to: number): void {
  if (!/^[ \t\r\n]*$/.test(text.slice(from, to))) throw broken()
}

function broken(): SyntaxError {
  return new SyntaxError('lists and objects of the text do not fit together')
}
