import { createPrivateKey, type KeyObject } from 'node:crypto'
import { Fault } from '../../packages/server/src/base/fault.ts'
import { Slots } from '../../packages/server/src/base/semaphore.ts'
import { noLog } from '../../packages/server/src/chain/log.ts'
import { type Signer, signerOf } from '../../packages/server/src/chain/signing.ts'
import type { Database } from '../../packages/server/src/database/database.ts'
import { CommitUnknownError } from '../../packages/server/src/database/errors.ts'
import { runMigrations } from '../../packages/server/src/database/migrations.ts'
import { HttpReply } from '../../packages/server/src/http/reply.ts'
import { Pass } from '../../packages/server/src/http/request-context.ts'
import type { RequestFacts } from '../../packages/server/src/http/request-info.ts'
import { createApplication } from '../../packages/server/src/operations/applications/create-application.ts'
import { createCollection } from '../../packages/server/src/operations/collections/create-collection.ts'
import { updateCollection } from '../../packages/server/src/operations/collections/update-collection.ts'
import { listRecords } from '../../packages/server/src/operations/listing/list-records.ts'
import { getReceipt } from '../../packages/server/src/operations/payments/get-receipt.ts'
import { settlePayment } from '../../packages/server/src/operations/payments/settle-payment.ts'
import { setPricing } from '../../packages/server/src/operations/pricing/set-pricing.ts'
import { storeRecords } from '../../packages/server/src/operations/records/store-records.ts'
import { migrations } from '../../packages/server/src/operator/migrations.ts'
import { hashOfKey } from '../../packages/server/src/projections/keys.ts'
import { identify } from '../../packages/server/src/services/access/access.ts'
import { openTenancy } from '../../packages/server/src/services/applications/tenancy.ts'
import type { Call, Service } from '../../packages/server/src/services/call.ts'
import { QueryStatistics } from '../../packages/server/src/services/indexes/query-statistics.ts'
import { keptAnswer } from '../../packages/server/src/services/payments/earlier-answer.ts'
import { Payments } from '../../packages/server/src/services/payments/payments.ts'
import type { Way } from '../../packages/server/src/services/payments/purchase.ts'
import { startReconciler } from '../../packages/server/src/services/payments/reconciler.ts'
import { QuickReads } from '../../packages/server/src/services/reading/short-reads.ts'
import { evmFacilitator } from '../../packages/server/src/x402/evm-facilitator.ts'
import { paymentNetwork } from '../../packages/server/src/x402/networks.ts'
import { JournaledSender } from '../../packages/server/src/x402/sender.ts'
import { Chance } from './chance.ts'
import { calm, Life, Lost, Reset, Turns } from './life.ts'
import type { PaymentChain } from './payment-chain.ts'
import type { ToldNetwork } from './remote-facilitator.ts'
import { Scheduler } from './scheduler.ts'

/** When the shop was founded, milliseconds since 1970; every run begins a little later. */
export const foundedMs = Date.UTC(2026, 0, 1)
export const serviceName = 'simulated'
export const application = 'shop'
export const operatorKey = 'operator-of-the-simulation'
/** Another seller, whose records are joined to the shop's goods. */
export const supplier = 'farm'
export const feeds = ['c1', 'c3', 'c4'].map((id) => ({ id, feed: `of ${id}` }))
export const firstPrice = 1000n
/** What joining the supplier's records costs at first. */
export const firstDerive = 77n

const publicUrl = () => 'https://shop.example'

const payTo = `0x${'a1'.repeat(20)}`
const asset = { name: 'Test Dollar', version: '2', symbol: 'TUSD', decimals: 6 }

/** The network that the service settles on itself. */
export const ownNetwork = paymentNetwork({
  chainId: 84532,
  payTo,
  asset: { ...asset, address: `0x${'b2'.repeat(20)}` },
})
/** The network that it knows through a facilitator elsewhere. */
export const otherNetwork = paymentNetwork({
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

/** Nobody reads it; only these three are called. */
const log = noLog as unknown as Service['log']

export type Running = { readonly life: Life; readonly service: Service }

/** Composes the service in a process, as the composition root does, but for what stands for the outside. */
export async function startShop(
  life: Life,
  parts: {
    readonly database: Database
    readonly chain?: PaymentChain
    readonly told?: ToldNetwork
  },
): Promise<Running> {
  const { world } = life
  const database = life.database(parts.database)
  const tenancy = await openTenancy({
    database,
    world,
    log,
    serviceName,
    holder: life.name,
    signerOf: async (origin): Promise<Signer> => {
      return signerOf(signingKey, origin)
    },
  })
  const ways: Way[] = []
  if (parts.chain !== undefined) ways.push(await ownWay(life, parts.chain, database))
  if (parts.told !== undefined)
    ways.push({ network: parts.told.network, facilitator: parts.told.facilitator(life) })
  const payments = new Payments({
    database,
    tenancy,
    world,
    ways,
    quoteSecret: Buffer.alloc(32, 3),
    depositSecret: Buffer.alloc(32, 4),
    publicUrl,
    split: { platformBasisPoints: 2000n },
  })
  startReconciler(payments, log)
  world.every(1000, () => {
    const { failure } = tenancy.system.chain
    if (failure !== undefined) life.die(`the system chain stopped: ${failure.message}`)
  })
  // The operations that are simulated use nothing else of the service.
  const service = {
    world,
    log,
    database,
    queryDatabase: database,
    tenancy,
    payments,
    queries: new QueryStatistics(),
    quickReads: new QuickReads({ world, boundMs: 100, slowForMs: 10_000, atOnceMax: 16 }),
    querySlots: new Slots({
      world,
      atOnceMax: 4,
      waitingMax: 100,
      waitingOfApplicationMax: 100,
      waitingOfCallerMax: 100,
      waitMs: 10_000,
    }),
    cursorSecret: Buffer.alloc(32, 6),
    ticketKey: Buffer.alloc(16, 5),
  } as unknown as Service
  return { life, service }
}

async function ownWay(life: Life, chain: PaymentChain, database: Database): Promise<Way> {
  const { network } = chain
  const { world } = life
  const rpc = chain.rpc(life)
  const key = Buffer.alloc(32, 9)
  const sender = new JournaledSender({ database, world, log, rpc, network, key })
  await sender.start()
  const facilitator = evmFacilitator({ rpc, sender, world, log, pollMs: 500, confirmations: 2 })
  return { network, facilitator }
}

/** One request as its bytes, and the operation that serves it. */
export type Asked = {
  readonly path: string
  readonly body: object
  /** It may have a price, so what it bought before is answered before it is looked at. */
  readonly isPaid: boolean
  readonly run: (call: Call, body: object) => Promise<unknown>
}

export type Answer = {
  readonly status: number
  readonly text: string
  readonly headers: Readonly<Record<string, string>>
  /** Of the error catalogue, where it is an error. */
  readonly code?: string
  /** An error that nothing which the simulation did explains. */
  readonly bug?: unknown
}

/** Sends a request to a running service; rejects with Reset where the process dies meanwhile. */
export async function request(
  { life, service }: Running,
  asked: Asked,
  headers: Readonly<Record<string, string>>,
): Promise<Answer> {
  const facts = factsOf(asked, headers)
  const serve = async () => {
    const { tenancy, database, world } = service
    const operatorKeyHash = hashOfKey(operatorKey)
    const known = { tenancy, database, world, origin: publicUrl, operatorKeyHash }
    const caller = await identify(facts, known)
    const call = { service, caller, facts }
    const kept = asked.isPaid ? await keptAnswer(call) : undefined
    return kept ?? asked.run(call, asked.body)
  }
  try {
    return answerOf(await Promise.race([serve(), life.ended]))
  } catch (error) {
    if (error instanceof Reset) throw error
    return failureOf(error)
  }
}

/** A request as the HTTP layer hands it on. */
function factsOf(
  { path, body }: Pick<Asked, 'path' | 'body'>,
  headers: Readonly<Record<string, string>>,
): RequestFacts {
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
    pass: new Pass(0, () => undefined),
  }
}

function answerOf(reply: unknown): Answer {
  if (reply instanceof HttpReply)
    return { status: reply.status ?? 200, text: reply.text.toString(), headers: reply.headers }
  return { status: 200, text: JSON.stringify(reply), headers: {} }
}

/** As the HTTP layer answers errors. */
function failureOf(error: unknown): Answer {
  if (error instanceof Fault) {
    const { code, status, message } = error
    const bug = code === 'INTERNAL' && !isCaused(error) ? { bug: error } : {}
    return { status, text: message, headers: {}, code, ...bug }
  }
  const bug = isCaused(error) ? {} : { bug: error }
  return { status: 500, text: String(error), headers: {}, code: 'INTERNAL', ...bug }
}

/** Whether a connection that the simulation cut is behind it. */
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
export async function foundShop(database: Database): Promise<AppKeys> {
  await runMigrations(database, migrations, { now: foundedMs })
  const scheduler = new Scheduler(foundedMs)
  const life = new Life('founder', {
    scheduler,
    chance: new Chance('founding'),
    weather: calm,
    turns: new Turns(),
    onPause: () => undefined,
    onDeath: () => undefined,
  })
  let founded: AppKeys | undefined
  let failure: unknown
  const work = async () => {
    const running = await startShop(life, { database })
    const { service } = running
    const facts = factsOf({ path: '/', body: {} }, {})
    const call: Call = { service, caller: { kind: 'operator' }, facts }
    const body = { app_id: application, name: 'Shop' }
    const { app_key: appKey } = plain(await createApplication(call, { body }))
    const params = { app: application }
    for (const name of ['goods', 'notes']) {
      const access_policy = { read: 'public' as const }
      await createCollection(call, { params, body: { name, access_policy } })
    }
    await setPricing(call, { params, body: priceList(firstPrice) })
    const data = ['c0', 'c1', 'c2', 'c3', 'c4', 'c5'].map((id) => ({ id, n: 0 }))
    await request(running, storing('goods', data), { 'x-app-key': appKey })
    const supplierKey = await foundSupplier(running, call)
    await service.tenancy.close()
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

async function foundSupplier(running: Running, call: Call): Promise<string> {
  const body = { app_id: supplier, name: 'Farm' }
  const { app_key: key } = plain(await createApplication(call, { body }))
  const params = { app: supplier }
  const collection = { name: 'feeds', access_policy: deriveAt(firstDerive) }
  await createCollection(call, { params, body: collection })
  await request(running, storing('feeds', feeds, supplier), { 'x-app-key': key })
  return key
}

export function storing(
  collection: string,
  data: readonly object[],
  app: string = application,
): Asked {
  return {
    path: '/store',
    isPaid: true,
    body: { root: `${app}::${collection}`, data },
    // The body was made here, in the shape that the contract wants.
    run: (call, body) => storeRecords(call, { query: {}, body: body as never }),
  }
}

/** A row read and a record written cost the same. */
export function priceList(amount: bigint) {
  const rule = (collection: string, operation: 'read' | 'write', model: 'per_row' | 'per_record') =>
    ({ target: { collection }, operation, model, amount: String(amount) }) as const
  return { rules: [rule('goods', 'read', 'per_row'), rule('notes', 'write', 'per_record')] }
}

export function listing(limit: number): Asked {
  return {
    path: '/list',
    isPaid: true,
    body: { root: `${application}::goods`, limit },
    run: (call, body) => listRecords(call, { body: body as never }),
  }
}

/** The same with what the supplier has to each. */
export function joining(limit: number): Asked {
  const resolve = { find: { id: '$data.id' } }
  const find = { feed: { model: `${supplier}::feeds`, many: false, resolve } }
  return { ...listing(limit), body: { root: `${application}::goods`, limit, find } }
}

const deriveAt = (amount: bigint) => ({
  read: 'public' as const,
  derive: { per_access: String(amount) },
})

/** Another price of the supplier's. */
export function deriving(amount: bigint): Asked {
  const params = { app: supplier, collection: 'feeds' }
  return {
    path: `/api/apps/${supplier}/collections/feeds`,
    isPaid: false,
    body: { access_policy: deriveAt(amount) },
    run: (call, body) => updateCollection(call, { params, body: body as never }),
  }
}

/** A payment for nothing but the payer's balance. */
export function depositing(paymentPayload: {
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

export function receipt(id: string): Asked {
  return {
    path: `/api/receipts/${id}`,
    isPaid: false,
    body: {},
    run: (call) => getReceipt(call, { params: { id } }),
  }
}

export function pricing(amount: bigint): Asked {
  const params = { app: application }
  return {
    path: `/api/apps/${application}/pricing`,
    isPaid: false,
    body: priceList(amount),
    run: (call, body) => setPricing(call, { params, body: body as never }),
  }
}

function plain<T>(reply: T | HttpReply): T {
  if (reply instanceof HttpReply) throw new Error('a plain reply was expected')
  return reply
}
