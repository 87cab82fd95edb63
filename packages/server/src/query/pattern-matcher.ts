import { assert } from '../base/assert.ts'
import { Fault } from '../base/fault.ts'

/** A parsed regular expression: pattern.ts makes it, and has checked that its size is bounded. */
export type PatternNode =
  /** One character: one inside the ranges of code points or, if negated, outside all of them. */
  | { readonly kind: 'one'; readonly ranges: readonly CodeRange[]; readonly negated: boolean }
  | { readonly kind: 'all' | 'any'; readonly parts: readonly PatternNode[] }
  | {
      readonly kind: 'repeat'
      readonly part: PatternNode
      readonly least: number
      readonly most: number | undefined
    }
  | { readonly kind: 'at'; readonly place: Assertion }

/** First and last code point. */
export type CodeRange = readonly [number, number]
type Assertion = '^' | '$' | 'b' | 'B'

/** Ranges of a class that a character is compared with in the time of a step; in two more cases where case is ignored. */
const rangesPerStep = 8

/** Places of steps that are made ready for a text in the time of a step. */
const placesPerStep = 64

/** The number of steps that may still be taken; at zero, matching ends with PAYLOAD_TOO_LARGE. */
export type MatchBudget = { steps: number }

type Step =
  | { readonly kind: 'one'; readonly ranges: readonly CodeRange[]; readonly negated: boolean }
  | { readonly kind: 'at'; readonly place: Assertion }
  | { readonly kind: 'fork'; readonly to: number[] }
  | { readonly kind: 'end' }

/**
 * Makes a test whether a pattern matches somewhere in a text, in time of at most the pattern's size by the text's:
 * all ways to match advance together (Thompson, 1968). JavaScript's own engine tries one after the other, so a few
 * characters could hold the whole process for years.
 */
export function makeMatcher(
  pattern: PatternNode,
  ignoreCase: boolean,
): (text: string, budget: MatchBudget) => boolean {
  const steps: Step[] = []
  emit(pattern, steps)
  steps.push({ kind: 'end' })
  return (text, budget) => {
    // A text may be short, and the room for its steps long.
    budget.steps -= steps.length / placesPerStep
    return new Run(steps, { ignoreCase, text, budget }).matches()
  }
}

/** Appends the steps of a node; they end where the next step begins. */
function emit(node: PatternNode, steps: Step[]): void {
  switch (node.kind) {
    case 'one':
    case 'at':
      steps.push(node)
      return
    case 'all':
      for (const part of node.parts) emit(part, steps)
      return
    case 'any': {
      const fork: Step & { kind: 'fork' } = { kind: 'fork', to: [] }
      const exits: number[][] = []
      steps.push(fork)
      for (const part of node.parts) {
        fork.to.push(steps.length)
        emit(part, steps)
        exits.push(jump(steps))
      }
      for (const exit of exits) exit.push(steps.length)
      return
    }
    case 'repeat':
      emitRepeat(node, steps)
  }
}

function emitRepeat(node: PatternNode & { kind: 'repeat' }, steps: Step[]): void {
  const { part, least, most } = node
  for (let count = 0; count < least; count++) emit(part, steps)
  if (most === undefined) {
    const start = steps.length
    const fork = jump(steps)
    fork.push(steps.length)
    emit(part, steps)
    jump(steps).push(start)
    fork.push(steps.length)
    return
  }
  const skips: number[][] = []
  for (let count = least; count < most; count++) {
    const fork = jump(steps)
    fork.push(steps.length)
    skips.push(fork)
    emit(part, steps)
  }
  for (const skip of skips) skip.push(steps.length)
}

/** Appends a step that continues elsewhere; the caller fills in the list of targets. */
function jump(steps: Step[]): number[] {
  const to: number[] = []
  steps.push({ kind: 'fork', to })
  return to
}

/** One text while it is matched. */
class Run {
  private readonly steps: readonly Step[]
  private readonly ignoreCase: boolean
  private readonly text: string
  private readonly budget: MatchBudget
  /** By step: the last position at which it was reached. */
  private readonly reachedAt: Int32Array

  constructor(
    steps: readonly Step[],
    on: { ignoreCase: boolean; text: string; budget: MatchBudget },
  ) {
    this.steps = steps
    this.ignoreCase = on.ignoreCase
    this.text = on.text
    this.budget = on.budget
    this.reachedAt = new Int32Array(steps.length).fill(-1)
  }

  matches(): boolean {
    let waiting: number[] = []
    for (let at = 0; at <= this.text.length; ) {
      // A match may begin anywhere.
      if (this.follow([...waiting, 0], at)) return true
      const character = this.text.codePointAt(at)
      if (character === undefined) return false
      const next = at + (character > 0xffff ? 2 : 1)
      waiting = this.alive.filter((step) => this.takes(step, character)).map((step) => step + 1)
      at = next
    }
    return false
  }

  private alive: number[] = []

  /** Follows the steps without taking a character; true if the end is reached. */
  private follow(from: readonly number[], at: number): boolean {
    this.alive = []
    const open = [...from]
    for (let index = open.pop(); index !== undefined; index = open.pop()) {
      if (--this.budget.steps < 0)
        throw new Fault('PAYLOAD_TOO_LARGE', {
          message:
            'The texts are too long for the patterns of the schema; send shorter ones, or fewer records at once',
        })
      if (this.reachedAt[index] === at) continue
      this.reachedAt[index] = at
      const step = this.steps[index]
      assert(step !== undefined, 'a step leads to a step')
      if (step.kind === 'end') return true
      if (step.kind === 'one') this.alive.push(index)
      else if (step.kind === 'fork') open.push(...step.to)
      else if (this.isAt(step.place, at)) open.push(index + 1)
    }
    return false
  }

  private takes(index: number, character: number): boolean {
    const step = this.steps[index]
    if (step?.kind !== 'one') return false
    this.budget.steps -= (step.ranges.length / rangesPerStep) * (this.ignoreCase ? 3 : 1)
    const isInside =
      inRanges(step.ranges, character) ||
      (this.ignoreCase && otherCases(character).some((one) => inRanges(step.ranges, one)))
    return isInside !== step.negated
  }

  private isAt(place: Assertion, at: number): boolean {
    if (place === '^') return at === 0
    if (place === '$') return at === this.text.length
    const isEdge = isWord(this.text[at - 1]) !== isWord(this.text[at])
    return isEdge === (place === 'b')
  }
}

function inRanges(ranges: readonly CodeRange[], character: number): boolean {
  return ranges.some(([first, last]) => first <= character && character <= last)
}

function otherCases(character: number): readonly number[] {
  const text = String.fromCodePoint(character)
  return [text.toLowerCase(), text.toUpperCase()].map((one) => one.codePointAt(0) ?? character)
}

function isWord(character: string | undefined): boolean {
  return character !== undefined && /^[A-Za-z0-9_]$/.test(character)
}
