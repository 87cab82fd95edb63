import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { DatabaseSetupError } from '../errors.ts'
import { type Command, makeSpawnArguments, type ServerUser } from './server-user.ts'

/** A process that does not outlive this one, even where this one is killed with -9. */
export type Guarded = {
  readonly pid: number
  /** The reason that it ended; undefined while it runs. */
  readonly exitReason: () => string | undefined
}

export type GuardOptions = {
  readonly user: ServerUser
  /** Both output streams are appended here. */
  readonly logPath: string
  /** A folder to remove when this process ends without ending the command. */
  readonly removeIfOrphaned?: string
  /** Private memory that each process of the command may have, in KB, where the system bounds it. */
  readonly memoryKbMax: number
  /** Freed memory that each process of the command keeps for its next work, in KB, where the system lets it. */
  readonly memoryKbKept: number
  readonly onExit: (reason: string) => void
}

/**
 * A shell between us and the command. Its standard input is a pipe that only we hold open: when we are gone,
 * however that happened, the pipe closes and the command gets SIGQUIT (PostgreSQL's immediate shutdown).
 */
const script = `
scrap=$1; memory=$2; kept=$(($3 * 1024)); shift 3
# Linux counts all private memory by it. Where it cannot be set, the command runs without.
ulimit -d "$memory" 2>/dev/null || true
exec 3<&0
# The C library of Linux reads these two. Another one does not know them.
MALLOC_TRIM_THRESHOLD_=$kept MALLOC_MMAP_THRESHOLD_=$kept "$@" </dev/null >&2 3<&- &
pid=$!
( read -r line <&3; kill -QUIT "$pid" ) >/dev/null 2>&1 &
watcher=$!
exec 3<&-
echo "$pid"
exec >&-
wait "$pid"
status=$?
kill "$watcher" 2>/dev/null
wait "$watcher" 2>/dev/null
# 143 is SIGTERM: the watcher was still waiting, so our parent lives.
[ $? -eq 143 ] || [ -z "$scrap" ] || rm -rf "$scrap"
exit "$status"
`

/** Starts the command in a session of its own, so that a Ctrl-C meant for us does not reach it first. */
export function startGuarded(command: Command, options: GuardOptions): Promise<Guarded> {
  const shell = spawnShell(command, options)
  const { stdin, stdout } = shell
  if (stdin === null || stdout === null) throw new Error('the guardian has no pipes')
  // The shell must not keep our process from ending by itself.
  shell.unref()

  let reason: string | undefined
  return new Promise((resolve, reject) => {
    shell.once('error', (error) => {
      reject(new DatabaseSetupError(`${command[0]} could not be started: ${error.message}`))
    })
    shell.once('exit', (code, signal) => {
      reason = exitText(code, signal)
      reject(new DatabaseSetupError(`${command[0]} ended at once: ${reason}`))
      options.onExit(reason)
    })
    // A pipe to a process that has just ended breaks; its exit event is what counts.
    stdin.on('error', () => undefined)
    let text = ''
    stdout.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
      if (text.endsWith('\n')) resolve({ pid: Number(text), exitReason: () => reason })
    })
  })
}

function spawnShell(command: Command, guard: GuardOptions) {
  const { user, logPath, memoryKbMax, memoryKbKept, removeIfOrphaned = '' } = guard
  const settings = [removeIfOrphaned, String(memoryKbMax), String(memoryKbKept)]
  const guarded: Command = ['/bin/sh', '-c', script, 'guardian', ...settings, ...command]
  const { file, args, options } = makeSpawnArguments(user, guarded)
  const log = openSync(logPath, 'a', 0o600)
  try {
    return spawn(file, args, { ...options, detached: true, stdio: ['pipe', 'pipe', log] })
  } finally {
    closeSync(log)
  }
}

/** A shell reports a signal as 128 plus its number. */
function exitText(code: number | null, signal: NodeJS.Signals | null): string {
  if (signal !== null) return `guardian killed by ${signal}`
  if (code !== null && code > 128) return `killed by signal ${code - 128}`
  return `exit code ${code}`
}
