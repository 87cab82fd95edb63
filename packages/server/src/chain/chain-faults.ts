import { Fault } from '../base/fault.ts'
import { findStorageProblem, toDatabaseFault } from '../database/errors.ts'

/** Makes the fault for a closed chain. The entries are on it; a retry finds it opened anew. */
export function makeClosedFault(): Fault {
  return new Fault('UNAVAILABLE', {
    message: 'The chain was closed before this height was applied; it is committed.',
    retryAfterSeconds: 1,
  })
}

/** A refusal of a write by the storage, and its time. */
export type StorageRefusal = { readonly code: string; readonly atMs: number }

/** Makes the fault for committed entries that the storage cannot show yet. */
export function makeNotShownFault(
  code: 'STORAGE_FULL' | 'STORAGE_READ_ONLY',
  cause: unknown,
): Fault {
  return new Fault(code, {
    message: 'This is committed; it is shown once the storage takes writes again.',
    internal: String(cause),
    cause,
    retryAfterSeconds: 10,
  })
}

/** Makes the fault for an applier loop that stopped for good. */
export function makeStoppedFault(failure: Error): Fault {
  return new Fault('UNAVAILABLE', {
    internal: failure.message,
    cause: failure,
    retryAfterSeconds: 1,
  })
}

/** Makes the fault for a chain whose appliers are far behind. */
export function makeBehindFault(): Fault {
  return new Fault('UNAVAILABLE', {
    message: 'This application takes in more than it can apply; wait and try again.',
    retryAfterSeconds: 1,
  })
}

/** Makes the fault for a chain that is closing; another server may have it. */
export function makeClosingFault(): Fault {
  return new Fault('UNAVAILABLE', {
    message: 'This application is being closed on this server.',
    retryAfterSeconds: 1,
  })
}

/** Returns true for the fault of a storage that takes no writes. */
export function isStorageFault({ code }: Fault): boolean {
  return code === 'STORAGE_FULL' || code === 'STORAGE_READ_ONLY'
}

/**
 * Returns the fault of a commit. A caller who waits for a block of a failed chain may try again: the chain is opened
 * anew.
 */
export function toCommitFault(error: unknown): Fault {
  if (error instanceof Fault) return error
  if (findStorageProblem(error) !== undefined) return toDatabaseFault(error) ?? unavailable(error)
  return unavailable(error)
}

function unavailable(error: unknown): Fault {
  return new Fault('UNAVAILABLE', {
    cause: error,
    internal: `a block was not committed: ${String(error)}`,
    retryAfterSeconds: 1,
  })
}
