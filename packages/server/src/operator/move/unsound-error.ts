import { SetupError } from '../../base/setup-error.ts'

/** Makes the error of a definition that no request here could have made. */
export function makeUnsoundError(what: string, problem: string): SetupError {
  return new SetupError(
    `${what} is none that this service would take: ${problem}; change it at the other service, and export again`,
  )
}
