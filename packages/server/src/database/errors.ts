import { DatabaseError } from 'pg'
import { Fault } from '../base/fault.ts'
import { SetupError } from '../base/setup-error.ts'

/** A problem that the operator must fix before the database can be used; the message says what to change and how. */
export class DatabaseSetupError extends SetupError {
  override readonly name = 'DatabaseSetupError'
}

/**
 * The connection was lost while COMMIT was on its way: the transaction may have happened or not.
 * Only reading the database again tells; a blind retry could do the work twice, so it is not transient.
 */
export class CommitUnknownError extends Error {
  override readonly name = 'CommitUnknownError'
}

/** SQLSTATEs (PostgreSQL manual, appendix A) after which the same transaction may succeed when tried again. */
const transientStates = new Set([
  '40001', // serialization_failure
  '25P03', // idle_in_transaction_session_timeout
  '40P01', // deadlock_detected
  '55P03', // lock_not_available
  '57P01', // admin_shutdown
  '57P02', // crash_shutdown
  '57P03', // cannot_connect_now
  '57P05', // idle_session_timeout
  '53300', // too_many_connections
])
/** SQLSTATEs of a disk that takes no writes; a read-only file system has no state of its own (42501). */
const readOnlyStates = new Set([
  '25006', // read_only_sql_transaction
  '58030', // io_error
])
const fileTexts = /^could not (extend|write|open|create|fsync|truncate) .*: Read-only file system/
/** Pause before a retry, since somebody has to make room. */
const storageRetrySeconds = 10
const socketCodes = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOENT'])
/** Texts of pg for a lost or refused connection, which carry no code. */
const connectionTexts =
  /^(Connection terminated|Client has encountered a connection error|Client was closed|timeout exceeded when trying to connect|Query read timeout)/

const unsentTexts =
  /^(Client has encountered a connection error|Client was closed|timeout exceeded when trying to connect)/

/**
 * True where a retry can help: conflicts, a restarting server, a lost connection. A transaction that failed so did
 * nothing; a single write outside of one may have happened when its connection was lost, so it must be idempotent.
 */
export function isTransient(error: unknown): boolean {
  if (error instanceof DatabaseError) {
    const state = error.code ?? ''
    return transientStates.has(state) || state.startsWith('08') || isStalePlan(error)
  }
  return isConnectionLost(error)
}

export function isUniqueViolation(error: unknown): boolean {
  return error instanceof DatabaseError && error.code === '23505'
}

/** Returns true where a statement would have written NULL into this column. */
export function isNullViolation(
  error: unknown,
  { table, column }: { readonly table: string; readonly column: string },
): boolean {
  const isNull = error instanceof DatabaseError && error.code === '23502'
  return isNull && error.table === table && error.column === column
}

/**
 * Returns the reason that the database cannot take writes: its disk is full (53100), or it is read only or failing;
 * undefined for any other error.
 */
export function findStorageProblem(
  error: unknown,
): 'STORAGE_FULL' | 'STORAGE_READ_ONLY' | undefined {
  if (!(error instanceof DatabaseError)) return undefined
  if (error.code === '53100') return 'STORAGE_FULL'
  const isReadOnly = readOnlyStates.has(error.code ?? '') || fileTexts.test(error.message)
  return isReadOnly ? 'STORAGE_READ_ONLY' : undefined
}

/**
 * Returns the fault (503) that tells a caller of temporary trouble with the database; undefined for any other
 * error.
 */
export function toDatabaseFault(error: unknown): Fault | undefined {
  const problem = findStorageProblem(error)
  // A statement that was cancelled, as it waited too long for a lock, did nothing; it may be quicker the next time.
  const isPassing = isTransient(error) || isCancelled(error) || error instanceof CommitUnknownError
  if (problem === undefined && !isPassing) return undefined
  // Only here, as making the text of a stack costs more than most refusals do.
  const internal = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return problem === undefined
    ? new Fault('UNAVAILABLE', { internal, cause: error, retryAfterSeconds: 1 })
    : new Fault(problem, { internal, cause: error, retryAfterSeconds: storageRetrySeconds })
}

/**
 * True where the database refused the statement for what it says or finds, so that it did nothing and would be refused
 * again.
 */
export function isRefusedStatement(error: unknown): boolean {
  const isOfServer =
    endsSession(error) ||
    isTransient(error) ||
    isCancelled(error) ||
    findStorageProblem(error) !== undefined
  return error instanceof DatabaseError && !isOfServer
}

/** True where a statement would pass one of the server's own limits (class 54), such as the size of a row of its catalog. */
export function isLimitExceeded(error: unknown): boolean {
  return error instanceof DatabaseError && error.code?.startsWith('54') === true
}

/** True where a statement took longer than it may, as one that waits for a lock. */
export function isCancelled(error: unknown): boolean {
  return error instanceof DatabaseError && error.code === '57014'
}

/** True where a statement got no lock within the time that it has for that. */
export function isLockMissed(error: unknown): boolean {
  return error instanceof DatabaseError && error.code === '55P03'
}

/** Returns the missing table that a statement names; undefined for any other error. */
export function findMissingTable(error: unknown): string | undefined {
  if (!(error instanceof DatabaseError) || error.code !== '42P01') return undefined
  return /^relation "([^"]+)" does not exist/.exec(error.message)?.[1]
}

/** True where a table was dropped before it could be locked, or where somebody who drops tables waited for us to end. */
export function isDropConflict(error: unknown): boolean {
  return error instanceof DatabaseError && (error.code === '42P01' || error.code === '40P01')
}

/**
 * True for the error that a statement gets because BEGIN, or a statement before it in the transaction, had failed.
 */
export function isAftermath(error: unknown): boolean {
  return error instanceof DatabaseError && (error.code === '25P02' || error.code === '34000')
}

/** True for a prepared statement whose result columns changed (a table was altered); preparing it anew helps. */
export function isStalePlan(error: unknown): boolean {
  return (
    error instanceof DatabaseError &&
    error.code === '0A000' &&
    error.routine === 'RevalidateCachedQuery'
  )
}

/** True where the session is gone, so that its connection must not go back to the pool. */
export function endsSession(error: unknown): boolean {
  return (
    !(error instanceof DatabaseError) || error.severity === 'FATAL' || error.severity === 'PANIC'
  )
}

/** True where the connection was known to be lost, or never made, so that the statement was not sent at all. */
export function isUnsent(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  return unsentTexts.test(error.message) || (error as NodeJS.ErrnoException).syscall === 'connect'
}

/**
 * True where the database has not said what became of a statement that it may have got: it may be carried out yet, as
 * the server does not notice that its client is gone while it works.
 */
export function isUnanswered(error: unknown): boolean {
  return error instanceof CommitUnknownError || (isConnectionLost(error) && !isUnsent(error))
}

function isConnectionLost(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof CommitUnknownError) return false
  // ENOENT and other system codes count only where a socket gave them, not a file.
  const { code, syscall } = error as NodeJS.ErrnoException
  if (code !== undefined && socketCodes.has(code))
    return ['connect', 'read', 'write'].includes(syscall ?? '')
  return connectionTexts.test(error.message)
}
