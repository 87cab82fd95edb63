import { createPrivateKey, type KeyObject } from 'node:crypto'
import { Fault } from '../../packages/server/src/base/fault.ts'
import { noLog } from '../../packages/server/src/base/log.ts'
import { Semaphore } from '../../packages/server/src/base/semaphore.ts'
import { makeSigner, type Signer } from '../../packages/server/src/chain/signing.ts'
import type { Database } from '../../packages/server/src/database/database.ts'
import { CommitUnknownError } from '../../packages/server/src/database/errors.ts'
import { runMigrations } from '../../packages/server/src/database/run-migrations.ts'
import { HttpReply } from '../../packages/server/src/http/reply.ts'
import { RequestContext } from '../../packages/server/src/http/request-context.ts'
import type { RequestInfo } from '../../packages/server/src/http/request-info.ts'
import { makeWriteAnswerer } from '../../packages/server/src/operations/answer-write.ts'
import { createApplication } from '../../packages/server/src/operations/applications/create-application.ts'
import { createCollection } from '../../packages/server/src/operations/collections/create-collection.ts'
import { updateCollection } from '../../packages/server/src/operations/collections/update-collection.ts'
import { listRecords } from '../../packages/server/src/operations/listing/list-records.ts'
import { getReceipt } from '../../packages/server/src/operations/payments/get-receipt.ts'
import { settlePayment } from '../../packages/server/src/operations/payments/settle-payment.ts'
import { setPricing } from '../../packages/server/src/operations/pricing/set-pricing.ts'
import { storeRecords } from '../../packages/server/src/operations/records/store-records.ts'
import { migrations } from '../../packages/server/src/operator/migrations.ts'
import { hashKey } from '../../packages/server/src/projections/keys.ts'
import { identify } from '../../packages/server/src/services/access/access.ts'
import { openTenants } from '../../packages/server/src/services/applications/tenants.ts'
import type { Call, Service } from '../../packages/server/src/services/call.ts'
import { DataKeys } from '../../packages/server/src/services/encryption/data-keys.ts'
import { QueryStatistics } from '../../packages/server/src/services/indexes/query-statistics.ts'
import { startReconciler } from '../../packages/server/src/services/payments/claims/reconciler.ts'
import { Payments } from '../../packages/server/src/services/payments/payments.ts'
import type {
  PaymentMethod,
  PaymentPorts,
} from '../../packages/server/src/services/payments/purchase.ts'
import { findEarlierReply } from '../../packages/server/src/services/payments/replies/earlier-reply.ts'
import { ShortReads } from '../../packages/server/src/services/reading/short-reads.ts'
import { makeEvmFacilitator } from '../../packages/server/src/x402/evm-facilitator.ts'
import { makePaymentNetwork } from '../../packages/server/src/x402/networks.ts'
import { JournaledSender } from '../../packages/server/src/x402/sender.ts'
import { Chance } from './chance.ts'
import { calm, Life, Lost, Reset, Turns } from './life.ts'
import type { PaymentChain } from './payment-chain.ts'
import type { RemoteFacilitator } from './remote-facilitator.ts'
import { Scheduler } from './scheduler.ts'

/** The time of the shop's founding, milliseconds since 1970; every run begins a little later. */
export const foundedMs = Date.UTC(2026, 0, 1)
export const serviceName = 'simulated'
export const application = 'shop'
export const operatorKey = 'operator-of-the-simulation'
/** Another seller, whose records are joined to the shop's goods. */
export const supplier = 'farm'
export const feeds = ['c1', 'c3', 'c4'].map((id) => ({ id, feed: `of ${id}` }))
export const firstPrice = 1000n
/** The first price of joining the supplier's records. */
export const firstDerive = 77n

const publicUrl = () => 'https://shop.example'

const payTo = `0x${'a1'.repeat(20)}`
const asset = { name: 'Test Dollar', version: '2', symbol: 'TUSD', decimals: 6 }

/** The network on which the service settles itself. */
export const ownNetwork = makePaymentNetwork({
  chainId: 84532,
  payTo,
  asset: { ...asset, address: `0x${'b2'.repeat(20)}` },
})
/** The network that it reaches through a remote facilitator. */
export const otherNetwork = makePaymentNetwork({
  chainId: 43113,
  payTo,
  minimumPayment: 4_000n,
  asset: { ...asset, address: `0x${'c3'.repeat(20)}` },
})

/** Ed25519 keys in PKCS8 are these bytes and the 32 of the key. */
const pkcs8 = Buffer.from('302e020100300506032b657004220420', 'hex')

/** The service's signing key, the same in every run, so that runs repeat to the last byte. */
export const signingKey: KeyObject = createPrivateKey({
  key: Buffer.concat([pkcs8, Buffer.alloc(32, 7)]),
  format: 'der',
  type: 'pkcs8',
})

/** The log is not read; only these three methods are called. */
const log = noLog as unknown as Service['log']

export type Running = { readonly life: Life; readonly service: Service }

/** Composes the service in a process, as the composition root does, except for the simulated outside. */
export async function startShop(
  life: Life,
  parts: {
    readonly database: Database
    readonly chain?: PaymentChain
    readonly remote?: RemoteFacilitator
    readonly onStep?: PaymentPorts['onStep']
  },
): Promise<Running> {
  const { world } = life
  const database = life.database(parts.database)
  const tenants = await openTenants({
    database,
    world,
    log,
    serviceName,
    holder: life.name,
    loadSigner: async (origin): Promise<Signer> => {
      return makeSigner(signingKey, origin)
    },
    dataKeys: new DataKeys({
      database,
      world,
      keyFile: '/nowhere/master-keys',
      masterKeys: undefined,
    }),
  })
  const methods: PaymentMethod[] = []
  if (parts.chain !== undefined) methods.push(await makeOwnMethod(life, parts.chain, database))
  if (parts.remote !== undefined)
    methods.push({ network: parts.remote.network, facilitator: parts.remote.facilitator(life) })
  const ticketKey = Buffer.alloc(16, 5)
  const payments = new Payments({
    database,
    tenants,
    world,
    methods,
    quoteSecret: Buffer.alloc(32, 3),
    depositSecret: Buffer.alloc(32, 4),
    publicUrl,
    split: { platformBasisPoints: 2000n },
    answerWrite: makeWriteAnswerer({ world, database, ticketKey }),
    ...(parts.onStep && { onStep: parts.onStep }),
  })
  startReconciler(payments, log)
  world.every(1000, () => {
    const { failure } = tenants.system.chain
    if (failure !== undefined) life.die(`the system chain stopped: ${failure.message}`)
  })
  // The operations that are simulated use nothing else of the service.
  const service = {
    world,
    log,
    database,
    tenants,
    payments,
    queryStatistics: new QueryStatistics(),
    queryRunner: {
      database,
      semaphore: new Semaphore({
        world,
        atOnceMax: 4,
        waitingMax: 100,
        waitingOfApplicationMax: 100,
        waitingOfCallerMax: 100,
        waitMs: 10_000,
      }),
      shortReads: new ShortReads({ world, boundMs: 100, slowForMs: 10_000, atOnceMax: 16 }),
    },
    cursorSecret: Buffer.alloc(32, 6),
    ticketKey,
  } satisfies Partial<Service> as unknown as Service
  return { life, service }
}

async function makeOwnMethod(
  life: Life,
  chain: PaymentChain,
  database: Database,
): Promise<PaymentMethod> {
  const { network } = chain
  const { world } = life
  const rpc = chain.rpc(life)
  const key = Buffer.alloc(32, 9)
  const sender = new JournaledSender({ database, world, log, rpc, network, key })
  await sender.start()
  const facilitator = makeEvmFacilitator({
    rpc,
    network,
    sender,
    world,
    log,
    pollMs: 500,
    confirmations: 2,
  })
  return { network, facilitator }
}

/** One request as its bytes, and the operation that serves it. */
export type Asked = {
  readonly path: string
  readonly body: object
  /** The request may have a price, so an earlier purchase is answered before the request is checked. */
  readonly isPaid: boolean
  readonly run: (call: Call<keyof Service>, body: object) => Promise<unknown>
}

export type Answer = {
  readonly status: number
  readonly text: string
  readonly headers: Readonly<Record<string, string>>
  /** The code from the error catalogue, where the answer is an error. */
  readonly code?: string
  /** An error that the simulation did not cause. */
  readonly bug?: unknown
}

/** Sends a request to a running service; rejects with Reset where the process dies meanwhile. */
export async function sendRequest(
  { life, service }: Running,
  asked: Asked,
  headers: Readonly<Record<string, string>>,
): Promise<Answer> {
  const requestInfo = makeRequestInfo(asked, headers)
  const serve = async () => {
    const { tenants, database, world } = service
    const operatorKeyHash = hashKey(operatorKey)
    const known = { tenants, database, world, origin: publicUrl, operatorKeyHash }
    const caller = await identify(requestInfo, known)
    const call = { service, caller, requestInfo }
    const kept = asked.isPaid ? await findEarlierReply(call) : undefined
    return kept ?? asked.run(call, asked.body)
  }
  try {
    return toAnswer(await Promise.race([serve(), life.ended]))
  } catch (error) {
    if (error instanceof Reset) throw error
    return toFailure(error)
  }
}

/** Makes the request info as the HTTP layer does. */
function makeRequestInfo(
  { path, body }: Pick<Asked, 'path' | 'body'>,
  headers: Readonly<Record<string, string>>,
): RequestInfo {
  const bodyBytes = Buffer.from(JSON.stringify(body))
  return {
    requestId: 'simulated',
    method: 'POST',
    path,
    url: path,
    queryText: '',
    headers,
    params: { app: application },
    query: {},
    bodyBytes,
    json: () => ({ text: bodyBytes.toString(), value: body }),
    remoteAddress: '127.0.0.1',
    context: new RequestContext(0, () => undefined),
  }
}

function toAnswer(reply: unknown): Answer {
  if (reply instanceof HttpReply)
    return { status: reply.status ?? 200, text: reply.text.toString(), headers: reply.headers }
  return { status: 200, text: JSON.stringify(reply), headers: {} }
}

/** Makes the answer to an error as the HTTP layer does. */
function toFailure(error: unknown): Answer {
  if (error instanceof Fault) {
    const { code, status, message } = error
    const bug = code === 'INTERNAL' && !isCaused(error) ? { bug: error } : {}
    return { status, text: message, headers: {}, code, ...bug }
  }
  const bug = isCaused(error) ? {} : { bug: error }
  return { status: 500, text: String(error), headers: {}, code: 'INTERNAL', ...bug }
}

/** Says that a connection which the simulation cut is the cause. */
function isCaused(error: unknown): boolean {
  if (error instanceof Lost || error instanceof CommitUnknownError) return true
  return error instanceof Error && error.cause !== undefined && isCaused(error.cause)
}

/** Keys of the shop and of its supplier. */
export type AppKeys = { readonly appKey: string; readonly supplierKey: string }

/**
 * Founds the shop in an empty database: an application with a collection to read at a price and one to write to at
 * a price, and a supplier with one to join at a price. Every run starts from a copy of it.
 */
export async function createShop(database: Database): Promise<AppKeys> {
  await runMigrations(database, migrations, { now: foundedMs })
  const scheduler = new Scheduler(foundedMs)
  const life = new Life('founder', {
    scheduler,
    chance: new Chance('founding'),
    faultProfile: calm,
    turns: new Turns(),
    onPause: () => undefined,
    onDeath: () => undefined,
  })
  let founded: AppKeys | undefined
  let failure: unknown
  const work = async () => {
    const running = await startShop(life, { database })
    const { service } = running
    const requestInfo = makeRequestInfo({ path: '/', body: {} }, {})
    const call: Call<keyof Service> = { service, caller: { kind: 'operator' }, requestInfo }
    const body = { app_id: application, name: 'Shop' }
    const { app_key: appKey } = plain(await createApplication(call, { body }))
    const params = { app: application }
    for (const name of ['goods', 'notes']) {
      const access_policy = { read: 'public' as const }
      await createCollection(call, { params, body: { name, access_policy } })
    }
    await setPricing(call, { params, body: makePriceList(firstPrice) })
    const data = ['c0', 'c1', 'c2', 'c3', 'c4', 'c5'].map((id) => ({ id, n: 0 }))
    await sendRequest(running, makeStoreRequest('goods', data), { 'x-app-key': appKey })
    const supplierKey = await createSupplier(running, call)
    await service.tenants.close()
    return { appKey, supplierKey }
  }
  work().then(
    (done) => {
      founded = done
    },
    (error: unknown) => {
      failure = error
    },
  )
  await scheduler.run(() => founded !== undefined || failure !== undefined)
  if (founded === undefined) throw failure
  return founded
}

async function createSupplier(running: Running, call: Call<keyof Service>): Promise<string> {
  const body = { app_id: supplier, name: 'Farm' }
  const { app_key: key } = plain(await createApplication(call, { body }))
  const params = { app: supplier }
  const collection = { name: 'feeds', access_policy: deriveAt(firstDerive) }
  await createCollection(call, { params, body: collection })
  await sendRequest(running, makeStoreRequest('feeds', feeds, supplier), { 'x-app-key': key })
  return key
}

export function makeStoreRequest(
  collection: string,
  data: readonly object[],
  app: string = application,
): Asked {
  return {
    path: '/store',
    isPaid: true,
    body: { root: `${app}::${collection}`, data },
    // The body was made here, in the form that the contract requires.
    run: (call, body) => storeRecords(call, { query: {}, body: body as never }),
  }
}

/** A row read and a record written cost the same. */
export function makePriceList(amount: bigint) {
  const rule = (collection: string, operation: 'read' | 'write', model: 'per_row' | 'per_record') =>
    ({ target: { collection }, operation, model, amount: String(amount) }) as const
  return { rules: [rule('goods', 'read', 'per_row'), rule('notes', 'write', 'per_record')] }
}

export function makeListRequest(limit: number): Asked {
  return {
    path: '/list',
    isPaid: true,
    body: { root: `${application}::goods`, limit },
    run: (call, body) => listRecords(call, { body: body as never }),
  }
}

/** The same list, joined with the supplier's records. */
export function makeJoinRequest(limit: number): Asked {
  const resolve = { find: { id: '$data.id' } }
  const find = { feed: { model: `${supplier}::feeds`, many: false, resolve } }
  return { ...makeListRequest(limit), body: { root: `${application}::goods`, limit, find } }
}

const deriveAt = (amount: bigint) => ({
  read: 'public' as const,
  derive: { per_access: String(amount) },
})

/** Sets another price of the supplier. */
export function makeDeriveRequest(amount: bigint): Asked {
  const params = { app: supplier, collection: 'feeds' }
  return {
    path: `/api/apps/${supplier}/collections/feeds`,
    isPaid: false,
    body: { access_policy: deriveAt(amount) },
    run: (call, body) => updateCollection(call, { params, body: body as never }),
  }
}

/** Makes a payment for nothing but the payer's balance. */
export function makeDepositRequest(paymentPayload: {
  readonly x402Version: number
  readonly accepted?: object
}): Asked {
  const { x402Version, accepted: paymentRequirements = {} } = paymentPayload
  return {
    path: '/api/payments/settle',
    isPaid: false,
    body: { x402Version, paymentPayload, paymentRequirements },
    run: (call, body) => settlePayment(call, { body: body as never }),
  }
}

export function makeReceiptRequest(id: string): Asked {
  return {
    path: `/api/receipts/${id}`,
    isPaid: false,
    body: {},
    run: (call) => getReceipt(call, { params: { id } }),
  }
}

export function makePricingRequest(amount: bigint): Asked {
  const params = { app: application }
  return {
    path: `/api/apps/${application}/pricing`,
    isPaid: false,
    body: makePriceList(amount),
    run: (call, body) => setPricing(call, { params, body: body as never }),
  }
}

function plain<T>(reply: T | HttpReply): T {
  if (reply instanceof HttpReply) throw new Error('a plain reply was expected')
  return reply
}
