import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { noLog as log } from '@tollbase/server/base/log'
import { realWorld } from '@tollbase/server/base/world'
import { type Database, openDatabase } from '@tollbase/server/database/database'
import { startEmbeddedPostgres } from '@tollbase/server/database/embedded/server'
import { sql } from '@tollbase/server/database/sql'
import { buildCollectionTables } from '@tollbase/server/projections/project-records'
import { compileIndex } from '@tollbase/server/query/index-key'
import { indexedFields } from './documents.ts'
import { makeHttpRequest, sendOnce } from './load.ts'
import type { BareConfig } from './peers/bare-config.ts'
import { type Child, startChild } from './process.ts'

/** One PostgreSQL server, as the service starts it by default, with a database for each side. */
export type Place = {
  /** The data folder of our service. */
  readonly serviceDir: string
  readonly connection: BareConfig['connection']
  /** The connection to our service's own database. */
  readonly database: Database
  readonly databaseUrl: string
  readonly close: () => Promise<void>
}

export const operatorKey = 'the-operator-of-the-benchmark'
export const app = 'bench'

export async function openPlace(): Promise<Place> {
  const dataDir = mkdtempSync(join(tmpdir(), 'tollbase-bench-'))
  const server = await startEmbeddedPostgres({ dataDir, world: realWorld, log })
  const { connection } = server
  const database = await openDatabase({ connection })
  return {
    serviceDir: join(dataDir, 'service'),
    connection,
    database,
    databaseUrl: `postgres://${connection.user}@${encodeURIComponent(connection.host)}:${connection.port}/${connection.database}`,
    close: async () => {
      await database.close()
      await server.stop()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

const root = join(import.meta.dirname, '..')
export const program = join(root, 'bin/tollbase.js')

/**
 * The load comes from one address, sends more than any client, and is not logged by the peers either; no answer is
 * cached.
 */
export const configFile = join(import.meta.dirname, 'tollbase.config.json')

/**
 * The same configuration, except that free answers of predefined queries are cached in memory, as the service does
 * by default.
 */
export const keepingConfigFile = join(import.meta.dirname, 'kept-answers.config.json')

/** Starts our service as users run it: the built program, in a process of its own, on the database of the place. */
export function startOurs(
  place: Place,
  options: {
    readonly nodeOptions: readonly string[]
    readonly command?: 'serve' | 'dev'
    readonly config?: string
  },
): Promise<Child> {
  const args = [
    options.command ?? 'serve',
    ...['--config', options.config ?? configFile, '--port', '0', '--operator-key', operatorKey],
    ...['--data-dir', place.serviceDir, '--database-url', place.databaseUrl],
  ]
  if (options.nodeOptions.length === 0) return startChild(args, program)
  return startChild([...options.nodeOptions, program, ...args])
}

/** `tollbase dev`: with a database and a devnet of its own. */
export const startDev = (dataDir: string): Promise<Child> => startAlone('dev', dataDir)

/** `tollbase serve`, with a database of its own. */
export const startServe = (dataDir: string): Promise<Child> => startAlone('serve', dataDir)

function startAlone(command: 'serve' | 'dev', dataDir: string): Promise<Child> {
  const options = ['--port', '0', '--operator-key', operatorKey, '--data-dir', dataDir]
  return startChild([command, '--config', configFile, ...options], program)
}

/** Starts a program of peers/ in a process of its own. */
export function startPeer(
  name: string,
  config: object,
  nodeOptions: readonly string[] = [],
): Promise<Child> {
  const file = join(import.meta.dirname, 'peers', `${name}.ts`)
  return startChild([...nodeOptions, '--import', 'tsx', file, JSON.stringify(config)])
}

/** Sends a JSON request that must succeed. */
export async function call(
  port: number,
  path: string,
  request: { readonly body: object; readonly key?: string },
): Promise<Record<string, unknown>> {
  const headers = request.key === undefined ? {} : { 'x-app-key': request.key }
  const reply = await sendOnce(port, makeHttpRequest(path, JSON.stringify(request.body), headers))
  const text = reply.body.toString()
  if (reply.status >= 300) throw new Error(`POST ${path}: ${reply.status} ${text}`)
  return JSON.parse(text)
}

/** Creates an application; gives its key. */
export async function createApplication(port: number): Promise<string> {
  const body = { name: 'Benchmark', app_id: app }
  const reply = await call(port, '/api/apps', { body, key: operatorKey })
  return String(reply.app_key)
}

/** Creates a collection with the two indexes, public by default, because the readers have no key. */
export async function createCollection(
  port: number,
  collection: { readonly key: string; readonly name: string; readonly policy?: object },
): Promise<void> {
  const { key, name, policy: access_policy = 'public' } = collection
  const path = `/api/apps/${app}/collections`
  await call(port, path, { key, body: { name, access_policy } })
  for (const field_name of indexedFields)
    await call(port, `${path}/${name}/indexes`, { key, body: { field_name } })
}

/** Creates the same table with the same indexes for the bare server, in the schema `bare` of the same database. */
export async function createBareTable(database: Database, name: string): Promise<void> {
  await database.execute(sql`CREATE SCHEMA IF NOT EXISTS bare`)
  const definition = {
    id: name,
    number: Number(name.slice('c_'.length)),
    name,
    namespace: name,
    primary_column: 'id',
    sort_column: null,
    collection_type: 'document',
    access_policy: null,
    schema_definition: null,
    created_at: '',
    updated_at: '',
  } as const
  for (const statement of buildCollectionTables('bare', definition))
    await database.execute(statement)
  for (const field of indexedFields) {
    const index = compileIndex({
      schema: 'bare',
      table: name,
      name: `${name}_${field}`,
      paths: [[field]],
      method: 'btree',
    })
    await database.execute(sql.compiled(index.text, index.values))
  }
}
