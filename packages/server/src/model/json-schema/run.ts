import { findSuggestion, formatSuggestion } from '../../base/known-members.ts'
import { extendPointer } from '../../query/field-path.ts'
import type { Work } from './work.ts'

/** A violation of a collection's schema, by JSON pointer within the record. */
export type Problem = { readonly pointer: string; readonly problem: string }

/** Returns true if a value is right; notes its problems with the run otherwise. */
export type Judge = (value: unknown, run: Run) => boolean

/** Gives the judge of a part of the schema that is being compiled; each is made once. */
export type Compile = (part: unknown) => Judge

/** Values that are judged in the time in which one that was judged is remembered. */
const valuesPerSeen = 8
/** Problems that are listed of one record. */
const problemsMax = 100
/** Names among which the one that was meant is looked for, its characters, and how often that is done for a record. */
const suggestedMax = 100
const suggestedCharsMax = 32
const suggestionsMax = 10
/** Characters of a name that are shown in a pointer or a message: problems may be a thousand. */
const nameCharsMax = 256
/** Values that are judged in the time in which a name is listed. */
const valuesPerName = 5

/** One record while it is judged. */
export class Run {
  readonly work: Work
  /** The resources that were entered, the outermost first, for `$dynamicRef`. */
  readonly scope: string[] = []
  /** The members and items of the value that were judged, where an `unevaluated...` keyword asks for them. */
  seen: Seen | undefined
  /** Undefined while it only matters whether something is right. */
  #problems: Problem[] | undefined
  readonly #path: (string | number)[] = []
  #suggestions = suggestionsMax

  constructor(work: Work, problems?: Problem[]) {
    this.work = work
    this.#problems = problems
  }

  /** True while all problems are wanted, and not only the first. */
  get isListing(): boolean {
    return this.#problems !== undefined
  }

  /** Notes a problem of the value, or of a member of it; returns false, as the judge that found it does. */
  fail(describe: () => string, member?: string): false {
    if (this.#problems === undefined || this.#problems.length >= problemsMax) return false
    const path = member === undefined ? this.#path : [...this.#path, member]
    const pointer = path.reduce<string>((outer, at) => extendPointer(outer, showName(at)), '')
    this.#problems.push({ pointer, problem: describe() })
    return false
  }

  /** Notes a member that the schema does not have. */
  failMember(name: string, known: readonly string[]): false {
    return this.fail(
      () => `is not in the schema${formatSuggestion(this.#suggest(name, known))}`,
      name,
    )
  }

  #suggest(name: string, known: readonly string[]): string | undefined {
    if (known.length > suggestedMax || name.length > suggestedCharsMax) return undefined
    if (--this.#suggestions < 0) return undefined
    this.work.spend(known.length * name.length)
    return findSuggestion(name, known)
  }

  /** Lists the names of an object's members. */
  listNames(value: Readonly<Record<string, unknown>>): readonly string[] {
    const names = Object.keys(value)
    this.work.spend(names.length * valuesPerName)
    return names
  }

  /** Remembers that a member of the value was judged, where an outer schema asks for it. */
  seeName(name: string): void {
    if (this.seen === undefined) return
    this.work.spend(valuesPerSeen)
    this.seen.names.add(name)
  }

  /** Remembers that an item of the value was judged, where an outer schema asks for it. */
  seeItem(at: number): void {
    if (this.seen === undefined) return
    this.work.spend(valuesPerSeen)
    this.seen.items.add(at)
  }

  /** Judges a member or an item. */
  enter(at: string | number, judge: Judge, inner: unknown): boolean {
    const { seen } = this
    this.seen = undefined
    this.#path.push(at)
    const isRight = judge(inner, this)
    this.#path.pop()
    this.seen = seen
    return isRight
  }

  /** Judges without noting problems. */
  test(judge: Judge, value: unknown): boolean {
    const problems = this.#problems
    this.#problems = undefined
    const isRight = judge(value, this)
    this.#problems = problems
    return isRight
  }

  /** Judges a value by each of the judges: up to the first that is wrong, or by all where problems are listed. */
  judgeBy(judges: readonly Judge[], value: unknown): boolean {
    let isRight = true
    for (const judge of judges) {
      if (judge(value, this)) continue
      if (!this.isListing) return false
      isRight = false
    }
    return isRight
  }

  /** Judges each of a list: up to the first that is wrong, or all where problems are listed. */
  every<Item>(list: readonly Item[], isRight: (item: Item, at: number) => boolean): boolean {
    let areRight = true
    // An iterator of entries would take half of the time.
    for (let at = 0; at < list.length; at++) {
      if (isRight(list[at] as Item, at)) continue
      if (!this.isListing) return false
      areRight = false
    }
    return areRight
  }
}

/** Shows a name as it is, or its beginning where it is long. */
export function showName<Name extends string | number>(name: Name): Name | string {
  return typeof name === 'string' && name.length > nameCharsMax
    ? `${name.slice(0, nameCharsMax)}…`
    : name
}

/** The members and items of a value that some keyword judged. */
export class Seen {
  readonly names = new Set<string>()
  readonly items = new Set<number>()

  add({ names, items }: Seen, work: Work): void {
    work.spend((names.size + items.size) * valuesPerSeen)
    for (const name of names) this.names.add(name)
    for (const item of items) this.items.add(item)
  }
}
