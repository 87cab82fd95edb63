import pino, { type DestinationStream, type Logger } from 'pino'
import { isRecord } from './base/is-record.ts'

/** The service's log: JSON lines without anything that a request brought. */
export function createLog(level: string, destination: DestinationStream): Logger {
  return pino({ level, base: null, serializers: { error: errorFields } }, destination)
}

/** What of an error is logged. A database's error also has whole rows and values in it, which may be anybody's data. */
function errorFields(error: unknown): unknown {
  if (!(error instanceof Error)) return isRecord(error) ? String(error) : error
  const { name, message, stack } = error
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined
  const cause = error.cause === undefined ? undefined : errorFields(error.cause)
  return { name, code, message, stack, cause }
}
