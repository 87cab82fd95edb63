import pino, { type DestinationStream, type Logger } from 'pino'
import { isRecord } from '../base/is-record.ts'
import type { LogFormat } from '../config/config-file.ts'

/** The service's log, without anything that a request brought. */
export function createLog(level: string, destination: DestinationStream): Logger {
  return pino({ level, base: null, serializers: { error: errorFields } }, destination)
}

/** Stderr: JSON lines for programs, text for people; by default text where stderr is a terminal. */
export async function openLogDestination(
  format: LogFormat | undefined,
): Promise<DestinationStream> {
  const isTerminal = process.stderr.isTTY === true
  if ((format ?? (isTerminal ? 'pretty' : 'json')) === 'json') return openJsonLines()
  const { default: pretty } = await import('pino-pretty')
  return pretty({
    destination: 2,
    sync: true,
    colorize: isTerminal,
    singleLine: true,
    translateTime: 'SYS:HH:MM:ss.l',
  })
}

/** The time, and the bytes, for which lines about requests are gathered: writing each by itself costs a system call. */
const gatherMs = 100
const gatherBytes = 8 * 1024
const infoLine = '{"level":30,'

/** Gathers lines of level info; any other line, and the end of the process, writes all that are there. */
function openJsonLines(): DestinationStream {
  const lines = pino.destination({
    dest: 2,
    sync: true,
    minLength: gatherBytes,
    periodicFlush: gatherMs,
  })
  const flush = () => {
    try {
      lines.flushSync()
    } catch {
      // Nobody reads the log any more; the service goes on.
    }
  }
  process.once('exit', flush)
  return {
    write: (line) => {
      lines.write(line)
      if (!line.startsWith(infoLine)) flush()
    },
  }
}

/**
 * Picks the fields of an error that may be logged. A database's error also holds whole rows and values, which may
 * be anybody's data.
 */
function errorFields(error: unknown): unknown {
  if (!(error instanceof Error)) return isRecord(error) ? String(error) : error
  const { name, message, stack } = error
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined
  const cause = error.cause === undefined ? undefined : errorFields(error.cause)
  return { name, code, message, stack, cause }
}
