import { Fault } from '../base/fault.ts'

/** The entries are on the chain; who asks again finds it opened anew. */
export function closed(): Fault {
  return new Fault('UNAVAILABLE', {
    message: 'The chain was closed before this height was applied; it is committed.',
    retryAfterSeconds: 1,
  })
}

/** That the storage took no write, and when. */
export type StorageRefusal = { readonly code: string; readonly atMs: number }

/** The storage takes no writes. */
export function notShown(code: 'STORAGE_FULL' | 'STORAGE_READ_ONLY', cause: unknown): Fault {
  return new Fault(code, {
    message: 'This is committed; it is shown once the storage takes writes again.',
    internal: String(cause),
    cause,
    retryAfterSeconds: 10,
  })
}

/** The lane stopped for good. */
export function stopped(failure: Error): Fault {
  return new Fault('UNAVAILABLE', {
    internal: failure.message,
    cause: failure,
    retryAfterSeconds: 1,
  })
}

/** Nothing new is taken in here; another server may have the chain. */
export function closing(): Fault {
  return new Fault('UNAVAILABLE', {
    message: 'This application is being closed on this server.',
    retryAfterSeconds: 1,
  })
}
