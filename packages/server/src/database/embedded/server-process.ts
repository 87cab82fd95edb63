import { existsSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import type { World } from '../../base/world.ts'
import { DatabaseSetupError } from '../errors.ts'
import { clusterUser } from './cluster.ts'
import { type Guarded, startGuarded } from './guardian.ts'
import { findCommandLine, isAlive, readText, waitUntil } from './process-info.ts'
import type { ServerUser } from './server-user.ts'
import {
  backendMemoryMbKept,
  backendMemoryMbMax,
  buildServerCommand,
  type ServerFolders,
  type ServerSettings,
} from './settings.ts'
import { socketPort } from './socket-folder.ts'

export type ServerProcessOptions = ServerFolders & {
  readonly user: ServerUser
  readonly settings: ServerSettings
  readonly logPath: string
  /** The service's data folder. */
  readonly dataDir: string
  readonly world: World
  /** Includes crash recovery, which reads back up to max_wal_size. */
  readonly startTimeoutMs: number
}

const logBytesMax = 10 * 1024 * 1024
const logTailChars = 2_000
const connectTimeoutMs = 10_000
/** Time limits of the three ways to end a server, each harsher than the one before. */
const endSteps = [
  ['SIGINT', 10_000],
  ['SIGQUIT', 8_000],
  ['SIGKILL', 5_000],
] as const
/** Grace period for the guardian of a killed process to end its server. */
const leftServerGraceMs = 2_000
/** A server killed alone leaves its memory to children that take a moment to notice. */
const memoryReleaseAttemptsMax = 20
const memoryReleaseWaitMs = 250

/** Starts the server and waits until it answers. The error includes the end of its log. */
export async function startServerProcess(
  options: ServerProcessOptions,
  onExit: (reason: string) => void,
): Promise<Guarded> {
  await endLeftServer(options)
  rotateLog(options.logPath)
  for (let attempt = 1; ; attempt++) {
    const logStart = readSize(options.logPath)
    let isReady = false
    const server = await startGuarded(buildServerCommand(options, options.settings), {
      user: options.user,
      logPath: options.logPath,
      memoryKbMax: backendMemoryMbMax * 1024,
      memoryKbKept: backendMemoryMbKept * 1024,
      ...(options.settings.temporary === true ? { removeIfOrphaned: options.dataDir } : {}),
      onExit: (reason) => {
        if (isReady) onExit(reason)
      },
    })
    const problem = await becomeReady(server, options)
    isReady = problem === undefined
    // The server may have ended since the last check without anyone being told.
    const lateProblem = problem ?? server.exitReason()
    if (lateProblem === undefined) return server
    await endServerProcess(server.pid, options)
    const tail = logTail(options.logPath, logStart)
    if (attempt < memoryReleaseAttemptsMax && tail.includes('pre-existing shared memory block')) {
      await options.world.sleep(memoryReleaseWaitMs)
      continue
    }
    throw new DatabaseSetupError(
      `PostgreSQL did not start (${lateProblem}). It wrote to ${options.logPath}:\n${tail}`,
    )
  }
}

/** Ends the server orderly if possible, else by force; every step has a time limit. True once it is gone. */
export async function endServerProcess(
  pid: number,
  { world }: ServerProcessOptions,
  steps: readonly (readonly [NodeJS.Signals, number])[] = endSteps,
): Promise<boolean> {
  for (const [signal, timeoutMs] of steps) {
    if (!isAlive(pid)) return true
    sendSignal(pid, signal)
    if (await waitUntil(world, timeoutMs, () => !isAlive(pid))) return true
  }
  return !isAlive(pid)
}

/**
 * Ends a server of an earlier process that still runs on these data; PostgreSQL itself clears the file of a dead
 * one.
 */
export async function endLeftServer(options: ServerProcessOptions): Promise<void> {
  const pid = Number(readText(join(options.clusterFolder, 'postmaster.pid'))?.split('\n')[0])
  const isOurs = () => isAlive(pid) && (findCommandLine(pid) ?? '').includes(options.clusterFolder)
  if (!Number.isSafeInteger(pid) || pid <= 1 || !isOurs()) return
  if (await waitUntil(options.world, leftServerGraceMs, () => !isOurs())) return
  // SIGINT is left out: a server whose backends were killed has been seen to hang in an orderly stop.
  if (await endServerProcess(pid, options, endSteps.slice(1))) return
  throw new DatabaseSetupError(
    `a server with the process id ${pid} still uses ${options.clusterFolder} and does not end`,
  )
}

/** Returns the reason that it is not ready; undefined once it answers. */
async function becomeReady(
  server: Guarded,
  options: ServerProcessOptions,
): Promise<string | undefined> {
  const { world, startTimeoutMs } = options
  const inTime = await waitUntil(world, startTimeoutMs, () => {
    return server.exitReason() !== undefined || saysReady(server.pid, options.clusterFolder)
  })
  if (server.exitReason() !== undefined) return server.exitReason()
  if (!inTime) return `not ready after ${startTimeoutMs} ms`
  const client = new Client({
    host: options.socketFolder,
    port: socketPort,
    user: clusterUser,
    database: 'postgres',
    ssl: false,
    connectionTimeoutMillis: connectTimeoutMs,
  })
  client.on('error', () => undefined)
  try {
    await client.connect()
    await client.end()
    return undefined
  } catch (error) {
    return String(error)
  }
}

/** Line 8 of postmaster.pid is the server's state, as pg_ctl reads it; reading it costs the server nothing. */
function saysReady(pid: number, clusterFolder: string): boolean {
  const lines = (readText(join(clusterFolder, 'postmaster.pid')) ?? '').split('\n')
  return Number(lines[0]) === pid && lines[7]?.trim() === 'ready'
}

function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It has just ended.
  }
}

/** Rotates the log and keeps one old file. */
function rotateLog(path: string): void {
  if (readSize(path) <= logBytesMax) return
  rmSync(`${path}.1`, { force: true })
  renameSync(path, `${path}.1`)
}

function readSize(path: string): number {
  return existsSync(path) ? statSync(path).size : 0
}

function logTail(path: string, start: number): string {
  return (readText(path) ?? '')
    .slice(-Math.min(logTailChars, Math.max(readSize(path) - start, 0)))
    .trim()
}
