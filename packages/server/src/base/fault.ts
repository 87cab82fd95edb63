import { type ErrorCode, errors } from '@tollbase/contract/errors'

export type FaultOptions = {
  /**
   * Replaces the catalogue's sentence. The caller sees it, so it may name only things that the caller sent.
   */
  readonly message?: string
  /** Leaves the service together with the message. */
  readonly details?: Readonly<Record<string, unknown>>
  /** For the log only. */
  readonly internal?: string
  readonly cause?: unknown
  readonly retryAfterSeconds?: number
  /** Headers of the answer, in lower case. */
  readonly headers?: Readonly<Record<string, string>>
}

/**
 * An error that a caller can cause or has to know of. Any other thrown error is a bug, and the caller gets INTERNAL.
 */
export class Fault extends Error {
  readonly code: ErrorCode
  readonly status: number
  readonly details: Readonly<Record<string, unknown>> | undefined
  readonly internal: string | undefined
  readonly retryAfterSeconds: number | undefined
  readonly headers: Readonly<Record<string, string>>

  constructor(code: ErrorCode, options: FaultOptions = {}) {
    super(
      options.message ?? errors[code].text,
      options.cause === undefined ? undefined : { cause: options.cause },
    )
    this.name = 'Fault'
    this.code = code
    this.status = errors[code].status
    this.details = options.details
    this.internal = options.internal
    this.retryAfterSeconds = options.retryAfterSeconds
    this.headers = options.headers ?? {}
  }

  /** Makes the same fault with headers of its answer. */
  withHeaders(headers: Readonly<Record<string, string>>): Fault {
    const { code, message, details, internal, cause, retryAfterSeconds } = this
    return new Fault(code, {
      ...{ message, headers },
      ...(details !== undefined && { details }),
      ...(internal !== undefined && { internal }),
      ...(cause !== undefined && { cause }),
      ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    })
  }
}

/** Makes a 400 that names the field by JSON pointer (RFC 6901). */
export function makeInvalidFault(pointer: string, problem: string): Fault {
  return new Fault('VALIDATION_FAILED', {
    message: `${pointer === '' ? 'The body' : pointer} ${problem}`,
    details: { field: pointer, problem },
  })
}

/** Describes an error for the log: a Fault by its internal text, if it has one. */
export function describeProblem(error: unknown): string {
  const internal = error instanceof Error && 'internal' in error ? error.internal : undefined
  return typeof internal === 'string' ? internal : String(error)
}
