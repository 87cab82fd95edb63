import { writeSync } from 'node:fs'
import { Writable } from 'node:stream'
import pino, { type DestinationStream, type Logger } from 'pino'
import { isRecord } from '../base/is-record.ts'
import { realWorld } from '../base/world.ts'
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
    destination: new Writable({
      write: (chunk, _, done) => {
        writeLog(String(chunk))
        done()
      },
    }),
    colorize: isTerminal,
    singleLine: true,
    translateTime: 'SYS:HH:MM:ss.l',
  })
}

/** The time, and the length, for which lines about requests are gathered: writing each by itself costs a system call. */
const gatherMs = 100
const gatherLength = 8 * 1024
const infoLine = '{"level":30,'

/** Gathers lines of level info; any other line, and the end of the process, writes all that are there. */
function openJsonLines(): DestinationStream {
  let gathered = ''
  const flush = () => {
    const text = gathered
    gathered = ''
    writeLog(text)
  }
  realWorld.every(gatherMs, flush)
  process.once('exit', flush)
  return {
    write: (line) => {
      gathered += line
      if (gathered.length > gatherLength || !line.startsWith(infoLine)) flush()
    },
  }
}

const stderrFd = 2
const pauseMs = 10
/**
 * The time for which the service waits for a reader of stderr that does not read; after that, lines are dropped.
 */
const patienceMs = 1_000
const sleeping = new Int32Array(new SharedArrayBuffer(4))

/**
 * Writes to stderr as long as somebody reads there. pino's own destination tries for ever where nobody does
 * (`tollbase serve 2>&1 | head`), and the whole service stands still.
 */
function writeLog(text: string): void {
  let rest = Buffer.from(text)
  for (let waitedMs = 0; rest.length > 0 && waitedMs < patienceMs; ) {
    try {
      rest = rest.subarray(writeSync(stderrFd, rest))
    } catch (error) {
      if (!isBusy(error)) return
      Atomics.wait(sleeping, 0, 0, pauseMs)
      waitedMs += pauseMs
    }
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EAGAIN'
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
