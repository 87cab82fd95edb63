import { limits } from '@tollbase/contract/limits'
import { Fault } from '../../base/fault.ts'
import type { MatchBudget } from '../../query/pattern-matcher.ts'

/** Values that are judged, or names that are looked up, in the time of one step of matching a pattern. */
const valuesPerStep = 2.5

/** The work that one record may take to be judged, and all records of a call together, in steps of matching a pattern. */
export class Work implements MatchBudget {
  /** The rest for the record; below zero once it took too much. */
  steps: number = limits.recordSchemaStepsMax
  #granted = this.steps
  #left: number

  constructor(callSteps: number = limits.schemaStepsMax) {
    this.#left = callSteps
  }

  /** Begins the next record; returns the steps that the one before took. */
  beginRecord(): number {
    const taken = this.#granted - Math.max(this.steps, 0)
    this.#left -= taken
    this.#granted = Math.max(Math.min(limits.recordSchemaStepsMax, this.#left), 0)
    this.steps = this.#granted
    return taken
  }

  /** Takes the steps for so many values; throws 413 where the record has taken all of its own. */
  spend(values: number): void {
    this.steps -= values / valuesPerStep
    if (this.steps < 0)
      throw new Fault('PAYLOAD_TOO_LARGE', {
        message:
          'The schema takes too long to judge the record; send a smaller one, or fewer records at once',
      })
  }
}
