import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type RunningService,
  type StartOptions,
  startService,
} from '../../packages/server/src/app.ts'
import { type Config, readConfig } from '../../packages/server/src/config/config.ts'
import type { Database } from '../../packages/server/src/database/database.ts'
import { runMigrations } from '../../packages/server/src/database/run-migrations.ts'
import {
  createFilledDatabase,
  createTestDatabase,
  type TestEngine,
} from '../../packages/server/src/database/testing.ts'
import { migrations } from '../../packages/server/src/operator/migrations.ts'
import { checkReply } from './contract-replies.ts'
import { makeTestWorld, type TestWorld } from './test-world.ts'

export type TestOptions = {
  /** The kind of PostgreSQL; the bundled one by default. */
  readonly engine?: TestEngine
  readonly devnet?: boolean
  /** Overrides of the configuration; there are no rate limits by default. */
  readonly config?: Partial<Config>
  /** The log; silent by default. */
  readonly log?: NonNullable<StartOptions['log']>
  /** Runs on the empty database, before the service comes to it. */
  readonly prepare?: (database: Database) => Promise<void>
}

/** A JSON value that a test looks into without knowing its shape yet. */
// biome-ignore lint/suspicious/noExplicitAny: replies are judged by expectations, and their shape by the contract.
export type Json = any

export type TestReply = {
  readonly status: number
  /** Parsed JSON; undefined when the reply is something else. */
  readonly body: Json
  readonly text: string
  readonly headers: Headers
}

export type RequestOptions = {
  /** The body, sent as JSON. */
  readonly body?: unknown
  /** The bytes to send as they are, instead of `body`. */
  readonly raw?: string | Uint8Array
  readonly headers?: Readonly<Record<string, string>>
}

export type TestApp = {
  readonly appId: string
  readonly key: string
  readonly keyHash: string
  /** Headers of a request with the first key: Read, Write and Admin. */
  readonly headers: Readonly<Record<string, string>>
}

export type TestService = {
  readonly url: string
  readonly operatorKey: string
  readonly operator: Readonly<Record<string, string>>
  readonly world: TestWorld
  readonly config: Config
  readonly running: RunningService
  /** A pool of its own on the same database, for tests that read or damage tables. */
  readonly database: Database
  readonly createApp: (id?: string) => Promise<TestApp>
  /** Sends one HTTP request; a reply of 2xx that breaks the contract's schema fails the test. */
  readonly request: (method: string, path: string, options?: RequestOptions) => Promise<TestReply>
  /** Stops the service, keeping folder and database, and starts another one on them. */
  readonly restart: () => Promise<void>
  /** Stops the service, does the work on its tables and data folder, and starts another one. */
  readonly whileStopped: <T>(work: (config: Config) => Promise<T>) => Promise<T>
  readonly close: () => Promise<void>
}

let applications = 0

/** The tables of a service that was never started: most tests need not wait until each is made anew. */
const migrate = (database: Database) => runMigrations(database, migrations, { now: 0 })

/**
 * Starts the real service in this process: a free port, a database that no service has written to, a temporary folder.
 */
export async function startTestService(options: TestOptions = {}): Promise<TestService> {
  const pool = { poolSize: 2 }
  const store = options.prepare
    ? await createTestDatabase(options.engine, pool)
    : await createFilledDatabase(options.engine, pool, migrate)
  const dataDir = mkdtempSync(join(tmpdir(), 'tollbase-end-to-end-'))
  const world = makeTestWorld()
  const flags = {
    port: '0',
    dataDir,
    databaseUrl: makeUrl(store.connection),
    devnet: options.devnet ?? false,
    logLevel: 'error',
    logFormat: 'json',
  }
  // Tests of the limits ask for them; anchors would come between any two entries of the service's own chain.
  const unlimited = {
    rateLimits: {},
    accessLog: false,
    drainMs: 2_000,
    anchors: 'off',
    publishers: 'off',
  } as const
  const config: Config = { ...readConfig(flags, {}), ...unlimited, ...options.config }
  const clean = async () => {
    await store.drop()
    rmSync(dataDir, { recursive: true, force: true })
  }
  let running: RunningService
  try {
    await options.prepare?.(store.database)
    running = await startService({ config, world, ...(options.log && { log: options.log }) })
  } catch (error) {
    await clean()
    throw error
  }
  const operator = { authorization: `Bearer ${running.operatorKey.key}` }
  const request = (method: string, path: string, with_: RequestOptions = {}) =>
    send(running.url, { method, path, ...with_ })
  const whileStopped = async <T>(work: (config: Config) => Promise<T>): Promise<T> => {
    await running.close()
    try {
      return await work(config)
    } finally {
      running = await startService({ config, world, ...(options.log && { log: options.log }) })
    }
  }
  return {
    get url() {
      return running.url
    },
    operatorKey: running.operatorKey.key,
    operator,
    world,
    config,
    get running() {
      return running
    },
    database: store.database,
    createApp: async (id) => {
      applications += 1
      const appId = id ?? `app-${applications}`
      const { status, body } = await request('POST', '/api/apps', {
        body: { name: `Application ${appId}`, app_id: appId },
        headers: operator,
      })
      if (status !== 201) throw new Error(`application ${appId}: ${status} ${JSON.stringify(body)}`)
      return {
        appId,
        key: body.app_key,
        keyHash: body.key_hash,
        headers: { 'x-app-key': body.app_key },
      }
    },
    request,
    restart: () => whileStopped(async () => undefined),
    whileStopped,
    close: async () => {
      await running.close()
      await clean()
    },
  }
}

/** Sends one request to a service at `url`, checked against the contract where it succeeds. */
export async function send(
  url: string,
  { method, path, body, raw, headers }: { method: string; path: string } & RequestOptions,
): Promise<TestReply> {
  const sent = raw ?? (body === undefined ? undefined : JSON.stringify(body))
  const answer = await fetch(url + path, {
    method,
    headers: {
      ...(sent === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(sent === undefined ? {} : { body: sent }),
  })
  const text = await answer.text()
  const isJson = answer.headers.get('content-type')?.startsWith('application/json') ?? false
  const reply = {
    status: answer.status,
    body: isJson && text !== '' ? JSON.parse(text) : undefined,
    text,
    headers: answer.headers,
  }
  checkReply({ method, path }, reply)
  return reply
}

/** The socket's folder travels as a parameter: a URL has no place for it in its host. */
function makeUrl(connection: {
  readonly host: string
  readonly port: number
  readonly user: string
  readonly database: string
}): string {
  const { host, port, user, database } = connection
  return `postgresql://${encodeURIComponent(user)}@/${database}?host=${encodeURIComponent(host)}&port=${port}`
}
