import { join } from 'node:path'
import { tollbase } from '@tollbase/contract/contract'
import { limits } from '@tollbase/contract/limits'
import type { FastifyInstance } from 'fastify'
import pino, { type Logger } from 'pino'
import { makeHolderName } from './base/lease-holder.ts'
import { Semaphore } from './base/semaphore.ts'
import type { World } from './base/world.ts'
import { loadSigner } from './chain/signing.ts'
import type { Config } from './config/config.ts'
import type { Database } from './database/database.ts'
import { toDatabaseFault } from './database/errors.ts'
import { type Devnet, startDevnet } from './devnet/devnet.ts'
import { admitRequests } from './http/admit-requests.ts'
import { compressAnswers } from './http/compress.ts'
import { implement } from './http/implement.ts'
import { listen, tryListening } from './http/listen.ts'
import { RateLimits } from './http/rate-limits.ts'
import { createServer } from './http/server.ts'
import { makePaidWriteAnswerer } from './operations/answer-paid-write.ts'
import { handlers } from './operations/handlers.ts'
import { judgeRefused } from './operations/judge-refused.ts'
import { createAccessLog } from './operator/access-log.ts'
import { keyFiles } from './operator/backup/manifest.ts'
import {
  isFirstStart,
  noteFirstStart,
  refuseUnfinishedRestore,
} from './operator/backup/restore-marks.ts'
import { createMetrics, type Metrics } from './operator/metrics.ts'
import { openStorage } from './operator/open-storage.ts'
import { ensureOperatorKey } from './operator/operator-key.ts'
import { watchSystemChain } from './operator/watch-system-chain.ts'
import { createAdmission } from './services/access/admission.ts'
import { readAnew, toDeletedFault } from './services/access/find-sources.ts'
import { openUpstreams } from './services/api-collections/open-upstreams.ts'
import { openTenants, type Tenants, type TenantsOptions } from './services/applications/tenants.ts'
import { openBlobs } from './services/blobs/blobs.ts'
import { startBlobCollector } from './services/blobs/collect-blobs.ts'
import type { Service, Uses } from './services/call.ts'
import { loadDataSets } from './services/data-sets/operator-data-sets.ts'
import { openDataKeys } from './services/encryption/open-data-keys.ts'
import { Resealings } from './services/encryption/resealings.ts'
import { describeProgram } from './services/identity/program-info.ts'
import { ensureSecret, serviceSecrets } from './services/identity/secrets.ts'
import { ensureSigningKey } from './services/identity/signing-key.ts'
import { IndexBuilder } from './services/indexes/index-builder.ts'
import { QueryStatistics } from './services/indexes/query-statistics.ts'
import { KeyUse } from './services/keys/key-use.ts'
import { openOtherChains } from './services/open-other-chains.ts'
import { findEarlierReply } from './services/payments/replies/earlier-reply.ts'
import { startPayments } from './services/payments/start-payments.ts'
import { QueryPlans } from './services/queries/query-plans.ts'
import { QueryRates } from './services/queries/query-rates.ts'
import { ResultCache } from './services/reading/result-cache.ts'
import { ShortReads } from './services/reading/short-reads.ts'
import { openNamedRequests } from './services/requests/open-named-requests.ts'
import { startRetentionSweeps } from './services/retention/sweep-retention.ts'
import { ViewBuilder } from './services/views/view-builder.ts'

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
  /** Called when the service cannot go on (its database is gone for good). */
  readonly onFatal?: (reason: string) => void
}

/** Composes the service and listens. Started parts are stopped in reverse order, also when a later step fails. */
export async function startService(options: StartOptions): Promise<RunningService> {
  const closers: (() => Promise<unknown>)[] = []
  const closeAll = async () => {
    const failures: unknown[] = []
    // Where one cannot end in order (its database may be gone), the others still do.
    for (const close of closers.reverse()) await close().catch((error) => failures.push(error))
    closers.length = 0
    if (failures.length > 0) throw failures[0]
  }
  const { dataDir } = options.config
  try {
    refuseUnfinishedRestore(dataDir)
    await tryListening(options.config)
    const afterRestore = options.config.afterRestore || isFirstStart(dataDir)
    const config = { ...options.config, afterRestore }
    const running = await start({ ...options, config }, closers, closeAll)
    noteFirstStart(dataDir)
    return running
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
  const metrics = createMetrics()
  const operator = ensureOperatorKey(config.dataDir, config.operatorKey, world)
  // Storage first: its lock keeps a second service on the folder away from the first one's devnet.
  const { database, queryDatabase, onCrash, freeSpace } = await openStorage(options, log, closers)
  const devnet = config.devnet
    ? await startDevnet({ dataDir: config.dataDir, world, log })
    : undefined
  if (devnet !== undefined) closers.push(() => devnet.stop())
  const keyUse = new KeyUse(database, world)
  closers.push(() => keyUse.close())
  const { tenants, viewBuilder, ...builders } = await openChains(options, closers, {
    database,
    log,
    refuseFullDisk: freeSpace?.need,
    onBlock: metrics.onBlock,
    onQuota: metrics.onQuota,
    onStaleView: metrics.onStaleView,
  })
  onCrash(() => tenants.reopenAll())
  closers.push(watchSystemChain(tenants, world, (reason) => options.onFatal?.(reason)))
  const { methods, gasKeys, ...others } = await openOtherChains(config, closers, {
    ...{ devnet, database, world, log, tenants },
  })
  let url = ''
  const publicUrl = () => config.publicUrl ?? url
  const blobs = await openBlobs(config, { world, log })
  const secrets = await ensureSecrets(database, world)
  const rates = createRateLimits(options, metrics)
  const { payments, transfers, facilitating, stops } = await startPayments(config, {
    ...{ database, tenants, world, methods, publicUrl, log, files: blobs.store },
    ...{ refuseFullDisk: freeSpace?.need, onFacilitated: metrics.onFacilitated },
    ...{ onState: metrics.onPaymentState, onClaim: metrics.onClaim, rates },
    answerPaidWrite: makePaidWriteAnswerer({ world, database, ...secrets }),
  })
  closers.push(...stops)
  const files = { database, tenants, blobs, world, log, viewBuilder, ...builders }
  const resealings = new Resealings(files)
  closers.push(() => resealings.close(), startBlobCollector(files))
  const queries = createQueryParts(options, queryDatabase, metrics)
  metrics.watch({ world, database, freeSpace, tenants, payments, gasKeys, ...others, ...queries })
  let draining = false
  const service: Service = {
    world,
    log,
    database,
    tenants,
    payments,
    ...{ transfers, facilitating, blobs, viewBuilder, resealings },
    ...others,
    ...builders,
    keyUse,
    ...queries,
    upstreams: await openUpstreams(config, database, world),
    dataSets: await loadDataSets(database, config.dataSets),
    ...secrets,
    program: {
      ...describeProgram(publicUrl),
      startedAtMs: world.now(),
      isDraining: () => draining,
    },
    freeSpace,
    ...getPrices(config),
    faucet: devnet && ((address, amount) => devnet.faucet(address, amount)),
    readMetrics: () => metrics.text(),
  }
  const fastify = await createHttpServer(service, closers, { config, metrics, rates, operator })
  url = await listen(fastify, config)
  const end = async () => {
    draining = true
    for (const { data } of tenants.listOpen()) data.watchers.wakeAll()
    await closeAll()
  }
  return { url, operatorKey: operator, devnet, service, close: end }
}

function createRateLimits({ config, world }: StartOptions, metrics: Metrics): RateLimits {
  return new RateLimits({ world, settings: config.rateLimits, onRefused: metrics.onRateLimit })
}

/**
 * Creates the statistics of recent queries, the limits of queries that run at once, and the memory for predefined
 * queries.
 */
function createQueryParts(
  { config, world }: StartOptions,
  queryDatabase: Database,
  metrics: Metrics,
): Uses<'queryRunner' | 'queryStatistics' | 'queryPlans' | 'queryRates' | 'resultCache'> {
  const semaphore = new Semaphore({
    world,
    atOnceMax: limits.queriesAtOnceMax,
    waitingMax: limits.queriesWaitingMax,
    waitingOfApplicationMax: limits.queriesWaitingOfApplicationMax,
    waitingOfCallerMax: limits.queriesWaitingOfCallerMax,
    waitMs: limits.queryWaitMs,
  })
  const resultCache = new ResultCache({
    bytesMax: config.resultCacheBytes,
    onLookup: metrics.onAnswerLookup,
  })
  const shortReads = new ShortReads({
    world,
    boundMs: limits.quickReadMs,
    slowForMs: limits.slowReaderMs,
    atOnceMax: limits.quickReadsOfCallerMax,
  })
  return {
    queryRunner: { database: queryDatabase, semaphore, shortReads },
    queryStatistics: new QueryStatistics(),
    queryPlans: new QueryPlans(),
    queryRates: new QueryRates(),
    resultCache,
  }
}

/** Opens the service's own chain and, on demand, those of applications; indexes and views are built beside them. */
async function openChains(
  { config, world }: StartOptions,
  closers: (() => Promise<unknown>)[],
  parts: Pick<TenantsOptions, 'database' | 'log' | 'refuseFullDisk' | 'onBlock' | 'onQuota'> & {
    readonly onStaleView: () => void
  },
): Promise<Uses<'tenants' | 'indexBuilder' | 'viewBuilder' | 'ownsDatabase'>> {
  const { database, log } = parts
  const keyFile = join(config.dataDir, keyFiles.signing)
  await ensureSigningKey(database, keyFile)
  const { masterKeys, keyCommand } = config
  const masterKeyFile = join(config.dataDir, keyFiles.master)
  const keys = openDataKeys({
    database,
    world,
    log,
    keyFile: masterKeyFile,
    masterKeys,
    keyCommand,
  })
  closers.push(keys.close)
  const indexBuilder = new IndexBuilder({ database, world, log })
  const viewBuilder = new ViewBuilder({
    database,
    world,
    log,
    tenantOf: (app) => tenants.load(app),
    tenants: () => tenants.listOpen(),
    viewBytesMax: ({ application }) => tenants.getCurrentQuota(application.app_id).bytes,
    onStale: parts.onStaleView,
  })
  const tenants: Tenants = await openTenants({
    ...parts,
    dataKeys: keys.dataKeys,
    world,
    quota: config.quota,
    loadSigner: (origin) => loadSigner(keyFile, origin),
    serviceName:
      config.serviceName ??
      `tollbase-${(await ensureSecret(database, world, serviceSecrets.serviceName)).toString('hex')}`,
    holder: makeHolderName(world),
    onDefinitions: (tables) => indexBuilder.notice(tables),
    onViews: (app) => viewBuilder.notice(app),
  })
  closers.push(() => tenants.close())
  // Before the chains: a build must not outlast them.
  closers.push(() => indexBuilder.close())
  closers.push(() => viewBuilder.close())
  viewBuilder.start()
  return { tenants, indexBuilder, viewBuilder, ownsDatabase: config.databaseUrl === undefined }
}

function getPrices(config: Config): Uses<'encryptionPrice' | 'retentionPrice'> {
  return { encryptionPrice: config.encryptionUpdatePrice, retentionPrice: config.retentionPrice }
}

/** Returns the secrets, which are made once and kept with the database. */
async function ensureSecrets(
  database: Database,
  world: World,
): Promise<Uses<'ticketKey' | 'cursorSecret' | 'recordNameKey'>> {
  return {
    ticketKey: await ensureSecret(database, world, serviceSecrets.tickets),
    cursorSecret: await ensureSecret(database, world, serviceSecrets.cursors),
    recordNameKey: await ensureSecret(database, world, serviceSecrets.recordNames),
  }
}

/** Creates the HTTP server with every endpoint, behind rate limits and with a line in the log for each request. */
async function createHttpServer(
  service: Service,
  closers: (() => Promise<unknown>)[],
  parts: { config: Config; metrics: Metrics; rates: RateLimits; operator: { key: string } },
): Promise<FastifyInstance> {
  const { world, log, keyUse } = service
  const { config, metrics, rates, operator } = parts
  const namedRequests = await openNamedRequests(service, join(config.dataDir, keyFiles.signing))
  const noteRequest = config.accessLog ? createAccessLog(log) : () => undefined
  const fastify = createServer({
    world,
    log,
    trustProxy: config.trustProxy,
    finishMs: config.drainMs,
    explain: (error) => toDatabaseFault(error) ?? toDeletedFault(error),
    onFinish: (request, reply, ms) => {
      metrics.onRequest({ request, reply, ms })
      noteRequest(request, reply, ms)
    },
  })
  const admission = createAdmission(service, {
    operatorKey: operator.key,
    onKey: (hash) => keyUse.note(hash),
    registration: config.registration,
    rates,
  })
  compressAnswers(fastify)
  admitRequests(fastify, admission.admit)
  implement(fastify, tollbase, {
    handlers,
    enter: admission.enter,
    judge: judgeRefused,
    findEarlierReply,
    runOnce: (call, operation, work) => namedRequests.run(call, operation, work),
    readAnew: (work) => readAnew(world, work),
  })
  closers.push(startRetentionSweeps(service), namedRequests.start(), () => fastify.close())
  return fastify
}
