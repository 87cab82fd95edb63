import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { noLog } from '../base/log.ts'
import { realWorld } from '../base/world.ts'
import type { DatabaseOptions } from './connection.ts'
import { type Database, openDatabase } from './database.ts'
import { findBundled } from './embedded/binaries.ts'
import { isLocked } from './embedded/lock.ts'
import { type EmbeddedPostgres, startEmbeddedPostgres } from './embedded/server.ts'
import { sql } from './sql.ts'

/** The bundled PostgreSQL, and the oldest supported one where the system has it. */
export type TestEngine = 'embedded' | 'debian15'

export type TestDatabase = {
  readonly database: Database
  readonly connection: {
    readonly host: string
    readonly port: number
    readonly user: string
    readonly database: string
  }
  /** Closes the pool and removes the database. */
  readonly drop: () => Promise<void>
}

const debian15Folder = '/usr/lib/postgresql/15/bin'
const folderPrefix = 'tollbase-test-'
/** A folder younger than this may belong to a process that has not locked it yet. */
const sweepAgeMs = 60_000

/** A server, and a connection that makes and drops databases: each new one costs a process of the server. */
type TestServer = { readonly server: EmbeddedPostgres; readonly admin: Database }

const servers = new Map<TestEngine, Promise<TestServer>>()
let databases = 0

/** Lists the engines found here, for describe.each. */
export function listTestEngines(): readonly TestEngine[] {
  const found: TestEngine[] = []
  if (findBundled() !== undefined) found.push('embedded')
  if (existsSync(join(debian15Folder, 'postgres'))) found.push('debian15')
  return found
}

/** Creates a new, empty database on a real server that all tests of this process share. */
export function createTestDatabase(
  engine: TestEngine = listTestEngines()[0] ?? 'embedded',
  options: Omit<DatabaseOptions, 'connection'> = {},
): Promise<TestDatabase> {
  return copyDatabase(engine, 'template0', options)
}

type Fill = (database: Database) => Promise<unknown>

/** The names of the filled databases, by what fills them and the engine: copies of them begin there. */
const templates = new WeakMap<Fill, Map<TestEngine, Promise<string>>>()

/** Creates a database with what `fill` writes into an empty one. It runs once for each engine; all others are copies. */
export async function createFilledDatabase(
  engine: TestEngine = listTestEngines()[0] ?? 'embedded',
  options: Omit<DatabaseOptions, 'connection'>,
  fill: Fill,
): Promise<TestDatabase> {
  const known = templates.get(fill) ?? new Map<TestEngine, Promise<string>>()
  templates.set(fill, known)
  const template = known.get(engine) ?? createTemplate(engine, fill)
  known.set(engine, template)
  return copyDatabase(engine, await template, options)
}

async function createTemplate(engine: TestEngine, fill: Fill): Promise<string> {
  const { database, connection } = await createTestDatabase(engine)
  await fill(database)
  // Nobody may be connected to what is copied.
  await database.close()
  return connection.database
}

async function copyDatabase(
  engine: TestEngine,
  template: string,
  options: Omit<DatabaseOptions, 'connection'>,
): Promise<TestDatabase> {
  const { server, admin } = await testServer(engine)
  databases += 1
  const name = `test_${process.pid}_${databases}`
  // Files are copied in a third of the time in which pages are, as they are in memory.
  await admin.execute(
    sql`CREATE DATABASE ${sql.id(name)} TEMPLATE ${sql.id(template)} STRATEGY file_copy`,
  )
  const connection = { ...server.connection, database: name }
  const database = await openDatabase({ poolSize: 5, ...options, connection })
  return {
    database,
    connection,
    drop: async () => {
      await database.close()
      await admin.execute(sql`DROP DATABASE ${sql.id(name)} WITH (FORCE)`)
    },
  }
}

function testServer(engine: TestEngine): Promise<TestServer> {
  const running = servers.get(engine) ?? startTestServer(engine)
  servers.set(engine, running)
  return running
}

async function startTestServer(engine: TestEngine): Promise<TestServer> {
  sweep()
  const dataDir = mkdtempSync(join(tmpdir(), folderPrefix))
  const server = await startEmbeddedPostgres({
    dataDir,
    world: realWorld,
    log: noLog,
    temporary: true,
    sharedBuffersMb: 32,
    ...(engine === 'debian15' ? { binaries: debian15Folder } : {}),
  })
  const { connection } = server
  // To drop a database of thousands of tables takes long where the disk is busy.
  return { server, admin: await openDatabase({ connection, poolSize: 1, statementTimeoutMs: 0 }) }
}

/** Removes the folders of earlier test processes whose guardian was killed too. */
function sweep(): void {
  for (const name of readdirSync(tmpdir())) {
    const folder = join(tmpdir(), name)
    if (!name.startsWith(folderPrefix) || isLocked(folder)) continue
    const age =
      realWorld.now() - (statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? realWorld.now())
    if (age > sweepAgeMs) rmSync(folder, { recursive: true, force: true })
  }
}
