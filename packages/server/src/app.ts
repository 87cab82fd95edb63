import { hostname } from 'node:os'
import { join } from 'node:path'
import { interfaceVersion, tollbase } from '@tollbase/contract/contract'
import { openapi } from '@tollbase/contract/openapi'
import type { FastifyInstance } from 'fastify'
import pino, { type Logger } from 'pino'
import { createMetrics } from './app-metrics.ts'
import { migrations } from './app-migrations.ts'
import { operatorKey } from './app-operator-key.ts'
import { openWays } from './app-payments.ts'
import type { World } from './base/world.ts'
import { loadSigner } from './chain/signing.ts'
import type { Config } from './config.ts'
import { type Database, openDatabase } from './database/database.ts'
import { startEmbeddedPostgres } from './database/embedded/server.ts'
import { runMigrations } from './database/migrations.ts'
import { type Devnet, startDevnet } from './devnet/devnet.ts'
import { authorize, identify } from './domains/access/access.ts'
import type { Call, Service } from './domains/call.ts'
import { handlers } from './domains/handlers.ts'
import { KeyUse } from './domains/keys/key-use.ts'
import { Payments } from './domains/payments/payments.ts'
import { startReconciler } from './domains/payments/reconciler.ts'
import { ensureSecret } from './domains/service/secrets.ts'
import { hashOfKey } from './domains/tenancy/keys.ts'
import { openTenancy, type Tenancy } from './domains/tenancy/tenancy.ts'
import { docsPage } from './http/docs-page.ts'
import { type Enter, implement } from './http/implement.ts'
import { createServer } from './http/server.ts'

export const programVersion = '0.1.0'

export type RunningService = {
  /** http://host:port, no trailing slash. */
  readonly url: string
  readonly operatorKey: { readonly key: string; readonly isNew: boolean; readonly path: string }
  readonly devnet: Devnet | undefined
  /** For tests and tools that look inside. */
  readonly service: Service
  /** Finishes what runs, then closes everything. */
  readonly close: () => Promise<void>
}

export type StartOptions = {
  readonly config: Config
  readonly world: World
  readonly log?: Logger
  /** The service cannot go on (its database is gone for good). */
  readonly onFatal?: (reason: string) => void
}

/** Composes the service and listens. What is started is stopped in reverse, also when a later step fails. */
export async function startService(options: StartOptions): Promise<RunningService> {
  const closers: (() => Promise<unknown>)[] = []
  const closeAll = async () => {
    for (const close of closers.reverse()) await close()
    closers.length = 0
  }
  try {
    return await start(options, closers, closeAll)
  } catch (error) {
    await closeAll().catch(() => undefined)
    throw error
  }
}

async function start(
  options: StartOptions,
  closers: (() => Promise<unknown>)[],
  closeAll: () => Promise<void>,
): Promise<RunningService> {
  const { config, world } = options
  const log = options.log ?? pino({ level: 'silent' })
  const operator = operatorKey(config.dataDir, config.operatorKey, world)
  // Storage first: its lock keeps a second service on the folder away from the first one's devnet.
  const { database, onCrash } = await openStorage(options, log, closers)
  const devnet = config.devnet
    ? await startDevnet({ dataDir: config.dataDir, world, log })
    : undefined
  if (devnet !== undefined) closers.push(() => devnet.stop())
  const keyUse = new KeyUse(database, world)
  await keyUse.load()
  closers.push(() => keyUse.close())
  const tenancy = await openTenancy({
    database,
    world,
    log,
    signerOf: (origin) => loadSigner(join(config.dataDir, 'signing-key.pem'), origin),
    serviceName:
      config.serviceName ??
      `tollbase-${(await ensureSecret(database, world, { name: 'service-name', bytes: 4 })).toString('hex')}`,
    holder: `${hostname()}/${process.pid}/${world.randomBytes(4).toString('hex')}`,
  })
  closers.push(() => tenancy.close())
  onCrash(() => tenancy.reopenAll())
  watchSystemChain(options, tenancy, closers)
  const { ways, close: closeWays } = await openWays(config, devnet, { database, world, log })
  closers.push(closeWays)
  let url = ''
  const payments = new Payments({
    database,
    tenancy,
    world,
    ways,
    quoteSecret: await ensureSecret(database, world, { name: 'quotes', bytes: 32 }),
    publicUrl: () => config.publicUrl ?? url,
    split: { platformBasisPoints: config.platformBasisPoints },
  })
  const stopReconciler = startReconciler(payments, log)
  closers.push(async () => stopReconciler())
  const metrics = createMetrics()
  metrics.watch(tenancy, database)
  const api = openapi(tollbase, { version: interfaceVersion })
  let draining = false
  const service: Service = {
    world,
    log,
    database,
    tenancy,
    payments,
    ticketKey: await ensureSecret(database, world, { name: 'tickets', bytes: 16 }),
    info: {
      version: programVersion,
      startedAtMs: world.now(),
      draining: () => draining,
      keyLastUsed: (hash) => keyUse.lastUsed(hash),
      openapiJson: JSON.stringify(api),
      docsHtml: () => docsPage(api, { baseUrl: config.publicUrl ?? url }),
      metrics: () => metrics.text(),
      faucet: devnet && ((address, amount) => devnet.faucet(address, amount)),
    },
  }
  const fastify = createServer({ world, log, onFinish: metrics.observe })
  const enter = entrance(service, { operatorKey: operator.key, onKey: (hash) => keyUse.note(hash) })
  implement(fastify, tollbase, { handlers, enter })
  closers.push(() => fastify.close())
  url = await listen(fastify, config)
  const close = async () => {
    draining = true
    await closeAll()
  }
  return { url, operatorKey: operator, devnet, service, close }
}

/** Without the service's own chain nothing can be sold or defined; a new start reads what is committed. */
function watchSystemChain(
  options: StartOptions,
  tenancy: Tenancy,
  closers: (() => Promise<unknown>)[],
): void {
  const stop = options.world.every(1_000, () => {
    const { failure } = tenancy.system.chain
    if (failure !== undefined)
      options.onFatal?.(`the service's own chain stopped: ${failure.message}`)
  })
  closers.push(async () => stop())
}

/** PostgreSQL: the server of the URL, or our own child process. */
async function openStorage(
  options: StartOptions,
  log: Logger,
  closers: (() => Promise<unknown>)[],
): Promise<{ database: Database; onCrash: (listener: () => void) => void }> {
  const { config, world } = options
  const listeners: (() => void)[] = []
  const connection =
    config.databaseUrl === undefined ? await embedded() : { url: config.databaseUrl }
  const database = await openDatabase({ connection, log, world })
  closers.push(() => database.close())
  await runMigrations(database, migrations, { now: world.now() })
  return { database, onCrash: (listener) => listeners.push(listener) }

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

/** Who calls, and whether they may: before the body is judged. */
function entrance(
  service: Service,
  keys: { operatorKey: string; onKey: (hash: string) => void },
): Enter<Call> {
  const { tenancy, database, world } = service
  const operatorKeyHash = hashOfKey(keys.operatorKey)
  const ports = { tenancy, database, world, operatorKeyHash }
  return async (_operationId, route, facts) => {
    const caller = await identify(facts, ports)
    if (caller.kind === 'key') keys.onKey(caller.key.key_hash)
    authorize(route, caller, { appId: facts.params.app, tenancy })
    return { service, caller, facts }
  }
}

async function listen(fastify: FastifyInstance, config: Config): Promise<string> {
  await fastify.listen({ host: config.host, port: config.port })
  const address = fastify.server.address()
  const port = typeof address === 'object' && address !== null ? address.port : config.port
  const host = config.host.includes(':') ? `[${config.host}]` : config.host
  return `http://${host}:${port}`
}
