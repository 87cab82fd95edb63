import { limits } from '@tollbase/contract/limits'
import { awaitTurn } from '../base/await-turn.ts'
import { Fault } from '../base/fault.ts'

/**
 * The steps of the reading or printing that is under way, and the most that it may take. All of it runs in one turn of
 * the event loop, so one count serves; it would else be an argument of every function that walks an expression.
 */
let current = { taken: 0, most: Number.POSITIVE_INFINITY }
/** The steps of what ended since the last turn that was waited for. */
let sinceTurn = 0

/**
 * Runs a part of the reading or printing of a statement, and refuses the statement where that takes more than
 * `sqlStepsMax` steps. A few words can stand for millions of parts: `a BETWEEN SYMMETRIC b AND c` has `a` four times,
 * and ten of them, one inside the other, have it a million times.
 */
export function limitSteps<T>(run: () => T): T {
  return runWithin(run, limits.sqlStepsMax)
}

/** Runs a part of the reading of what was taken in once, which must be understood for ever. */
export function runUnbound<T>(run: () => T): T {
  return runWithin(run, Number.POSITIVE_INFINITY)
}

function runWithin<T>(run: () => T, most: number): T {
  const around = current
  current = { taken: 0, most }
  try {
    return run()
  } finally {
    sinceTurn += current.taken
    current = around
  }
}

/** Counts steps; one takes about a tenth of a microsecond, as the visit of a part of an expression does. */
export function countSteps(count = 1): void {
  current.taken += count
  if (current.taken > current.most) throw makeTooComplex()
}

const tooComplex = 'is too complex'

/** Returns whether an error is that of something that would take too many steps, wherever its caller was told of it. */
export function isTooComplex(error: unknown): error is Fault {
  return error instanceof Fault && error.details?.problem === tooComplex
}

/** Returns the fault for a statement that means more than should be read, or sent to PostgreSQL. */
export function makeTooComplex(): Fault {
  return new Fault('VALIDATION_FAILED', {
    message: 'The query is too complex: its expressions are too many or nested too deeply',
    details: { field: '/sql', problem: tooComplex },
  })
}

/** The steps that other requests may wait for before they get a turn: about a millisecond. */
const stepsPerTurn = 10_000

/** Yields to other work where the last parts of reading or printing took long. */
export async function awaitTurnAfterSteps(): Promise<void> {
  if (sinceTurn < stepsPerTurn) return
  sinceTurn = 0
  await awaitTurn()
}
