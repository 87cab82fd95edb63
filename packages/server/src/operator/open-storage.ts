import { limits } from '@tollbase/contract/limits'
import type { Logger } from 'pino'
import type { World } from '../base/world.ts'
import type { Config } from '../config/config.ts'
import { type Database, openDatabase } from '../database/database.ts'
import { type FreeSpace, watchFreeSpace } from '../database/embedded/free-space.ts'
import { lowerPriority } from '../database/embedded/lower-priority.ts'
import { startEmbeddedPostgres } from '../database/embedded/server.ts'
import { adoptExtension } from '../database/extensions.ts'
import { runMigrations } from '../database/run-migrations.ts'
import { vectorExtension } from '../query/single-vector.ts'
import { explainConnecting } from './explain-connecting.ts'
import { migrations } from './migrations.ts'

/** For heavy queries, which are few at once, and whatever no shared connection takes; and those that short reads share. */
const queryConnections = { poolSize: 12, pipelines: 4 }
/** For all else, and those that share reads of one record, blob or proof. */
const otherConnections = { poolSize: 10, pipelines: 2 }

type Storage = {
  readonly database: Database
  /** For lists and SQL. */
  readonly queryDatabase: Database
  /** Calls back when the database has crashed. */
  readonly onCrash: (listener: () => void) => void
  /** The free space on its disk, where the service can see that. */
  readonly freeSpace: FreeSpace | undefined
}

/**
 * Opens PostgreSQL: the server of the URL, or our own child process; `closers` gets what ends it again. `onFatal` is
 * called when our own is gone for good.
 */
export async function openStorage(
  options: {
    readonly config: Config
    readonly world: World
    readonly onFatal?: (reason: string) => void
  },
  log: Logger,
  closers: (() => Promise<unknown>)[],
): Promise<Storage> {
  const { config, world } = options
  const listeners: (() => void)[] = []
  const connection =
    config.databaseUrl === undefined ? await embedded() : { url: config.databaseUrl }
  const opening = openDatabase({ connection, log, world, ...otherConnections })
  const database = await explainConnecting(config.databaseUrl, opening)
  closers.push(() => database.close())
  const readOnly = { temporaryKbMax: limits.queryTemporaryKbMax }
  const queryDatabase = await openDatabase({
    connection,
    log,
    world,
    readOnly,
    ...queryConnections,
    // The server of a URL has processors that only it knows.
    onConnection: config.databaseUrl === undefined ? lowerPriority : undefined,
    statementTimeoutMs: limits.quickReadMs,
    longTimeoutMs: limits.queryTimeoutMs,
  })
  closers.push(() => queryDatabase.close())
  await runMigrations(database, migrations, { now: world.now() })
  await adoptExtension(database, vectorExtension, log)
  const onCrash = (listener: () => void) => listeners.push(listener)
  // A server elsewhere has a disk that only it can see.
  if (config.databaseUrl !== undefined)
    return { database, queryDatabase, onCrash, freeSpace: undefined }
  const bytesMin = limits.storageFreeBytesMin
  return {
    database,
    queryDatabase,
    onCrash,
    freeSpace: watchFreeSpace({ folder: config.dataDir, bytesMin, world }),
  }

  async function embedded() {
    const server = await startEmbeddedPostgres({ dataDir: config.dataDir, world, log })
    closers.push(() => server.stop())
    server.onExit(({ reason, restarting }) => {
      log.error({ reason, restarting }, 'the database server ended')
      if (!restarting) options.onFatal?.(`the database server ended and stays down: ${reason}`)
      for (const listener of listeners) listener()
    })
    return server.connection
  }
}
