/**
 * An operator's mistake, found before the service can start: the message says in one line what is in the way and
 * what to do. It is shown without a stack trace.
 */
export class SetupError extends Error {
  override readonly name: string = 'SetupError'
}
