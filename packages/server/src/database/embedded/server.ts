import { existsSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import type { Log } from '../../base/log.ts'
import { makeFolder } from '../../base/make-folder.ts'
import type { World } from '../../base/world.ts'
import { DatabaseSetupError } from '../errors.ts'
import { findBinaries } from './binaries.ts'
import { clusterUser, prepareCluster } from './cluster.ts'
import type { Guarded } from './guardian.ts'
import { isLocked, lockFolder } from './lock.ts'
import {
  endLeftServer,
  endServerProcess,
  type ServerProcessOptions,
  startServerProcess,
} from './server-process.ts'
import { chooseServerUser, ensureFolderAccess } from './server-user.ts'
import type { ServerSettings } from './settings.ts'
import { findSocketFolder, prepareSocketFolder, socketPort } from './socket-folder.ts'

export type EmbeddedOptions = ServerSettings & {
  /** The service's data folder; the server's own is `postgres` inside it. */
  readonly dataDir: string
  readonly world: World
  readonly log: Log
  /** Folder of the programs postgres and initdb, instead of searching for them. */
  readonly binaries?: string
  readonly startTimeoutMs?: number
  /** Never use a user namespace, where the service runs as root. */
  readonly avoid?: 'namespace'
}

export type EmbeddedPostgres = {
  readonly connection: {
    readonly host: string
    readonly port: number
    readonly user: string
    readonly database: string
  }
  readonly major: number
  /** Process id of the server as it runs now; another one after a restart. */
  readonly pid: () => number
  /** Ends the server and frees the data folder. */
  readonly stop: () => Promise<void>
  /** Calls back when the server ends by itself, until the returned function is called. */
  readonly onExit: (listener: (exit: ServerExit) => void) => () => void
}

export type ServerExit = {
  readonly reason: string
  /** False where it ended too often and is not restarted. */
  readonly restarting: boolean
}

/** Time for recovery to read back all the log that a crash can leave on a slow disk. */
const startTimeoutMsDefault = 180_000
const restartsMax = 5
const restartWindowMs = 60_000
const restartWaitMs = 200

/**
 * Starts PostgreSQL as a child of this process, reached by a socket that only this user can open. It ends with this
 * process, however that ends, and is restarted when it crashes. DatabaseSetupError says what is in the way.
 */
export async function startEmbeddedPostgres(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  makeFolder(options.dataDir, 0o700)
  const dataDir = realpathSync(options.dataDir)
  const unlock = lockFolder(dataDir)
  try {
    const user = await chooseServerUser(options.avoid)
    await ensureFolderAccess(user, dataDir)
    const binaries = await findBinaries({
      ...(options.binaries === undefined ? {} : { explicit: options.binaries }),
      copyPrefix: join(dataDir, 'postgres.programs'),
      user,
    })
    const clusterFolder = join(dataDir, 'postgres')
    await prepareCluster({ folder: clusterFolder, binaries, user })
    const supervisor = new Supervisor(options.log, {
      binaries,
      clusterFolder,
      socketFolder: prepareSocketFolder(dataDir, user),
      user,
      settings: options,
      dataDir,
      logPath: join(dataDir, 'postgres.log'),
      world: options.world,
      startTimeoutMs: options.startTimeoutMs ?? startTimeoutMsDefault,
    })
    await supervisor.start()
    return handle(supervisor, unlock)
  } catch (error) {
    unlock()
    throw error
  }
}

/** Finds the server that another process keeps running on this data folder; undefined where none does. */
export function findRunning(dataDir: string): EmbeddedPostgres['connection'] | undefined {
  if (!existsSync(dataDir) || !isLocked(dataDir)) return undefined
  return connectTo(findSocketFolder(realpathSync(dataDir)))
}

function connectTo(host: string): EmbeddedPostgres['connection'] {
  return { host, port: socketPort, user: clusterUser, database: 'postgres' }
}

function handle(supervisor: Supervisor, unlock: () => void): EmbeddedPostgres {
  const { socketFolder: host, binaries } = supervisor.options
  return {
    connection: connectTo(host),
    major: binaries.major,
    pid: () => supervisor.pid,
    stop: async () => {
      await supervisor.stop()
      unlock()
    },
    onExit: (listener) => supervisor.onExit(listener),
  }
}

/** Keeps one server running. */
class Supervisor {
  readonly options: ServerProcessOptions
  readonly #log: Log
  readonly #listeners = new Set<(exit: ServerExit) => void>()
  #server: Guarded | undefined
  #restartTimes: number[] = []
  #restarting: Promise<void> = Promise.resolve()
  #stopping: Promise<void> | undefined

  constructor(log: Log, options: ServerProcessOptions) {
    this.#log = log
    this.options = options
  }

  get pid(): number {
    return this.#server?.pid ?? 0
  }

  async start(): Promise<void> {
    const startedAt = this.options.world.now()
    this.#server = await startServerProcess(this.options, (reason) => {
      this.#restarting = this.#restart(reason)
    })
    const { binaries, world } = this.options
    const fields = {
      pid: this.pid,
      major: binaries.major,
      folder: binaries.folder,
      ms: world.now() - startedAt,
    }
    this.#log.info(fields, 'PostgreSQL is running')
  }

  onExit(listener: (exit: ServerExit) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop()
    return this.#stopping
  }

  async #stop(): Promise<void> {
    await this.#restarting
    if (this.#server !== undefined && !(await endServerProcess(this.#server.pid, this.options))) {
      throw new DatabaseSetupError(`the server with the process id ${this.pid} does not end`)
    }
    // A killed guardian may have left it.
    await endLeftServer(this.options)
  }

  async #restart(reason: string): Promise<void> {
    if (this.#stopping !== undefined) return
    const { world } = this.options
    this.#restartTimes = this.#restartTimes.filter((time) => time > world.now() - restartWindowMs)
    const restarting = this.#restartTimes.length < restartsMax
    this.#log.error({ reason, restarting }, 'PostgreSQL ended by itself')
    for (const listener of this.#listeners) listener({ reason, restarting })
    if (!restarting) return
    this.#restartTimes.push(world.now())
    await world.sleep(restartWaitMs * this.#restartTimes.length)
    try {
      await this.start()
    } catch (error) {
      await this.#restart(String(error))
    }
  }
}
