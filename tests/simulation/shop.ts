import { createPrivateKey, type KeyObject } from 'node:crypto'
import { giveParts } from '@tollbase/testing/give-parts'
import pino from 'pino'
import { Semaphore } from '../../packages/server/src/base/semaphore.ts'
import { makeSigner, type Signer } from '../../packages/server/src/chain/signing.ts'
import type { Database } from '../../packages/server/src/database/database.ts'
import { makePaidWriteAnswerer } from '../../packages/server/src/operations/answer-paid-write.ts'
import {
  openTenants,
  type Tenants,
} from '../../packages/server/src/services/applications/tenants.ts'
import type { Service } from '../../packages/server/src/services/call.ts'
import { DataKeys } from '../../packages/server/src/services/encryption/data-keys.ts'
import { QueryStatistics } from '../../packages/server/src/services/indexes/query-statistics.ts'
import { KeyUse } from '../../packages/server/src/services/keys/key-use.ts'
import { startClaimer } from '../../packages/server/src/services/payments/channels/claimer.ts'
import { startReconciler } from '../../packages/server/src/services/payments/claims/reconciler.ts'
import { Facilitating } from '../../packages/server/src/services/payments/facilitating/facilitating.ts'
import type {
  PaymentMethod,
  PaymentPorts,
} from '../../packages/server/src/services/payments/payment-ports.ts'
import { Payments } from '../../packages/server/src/services/payments/payments.ts'
import { startAutomaticPayouts } from '../../packages/server/src/services/payments/payouts/payouts.ts'
import { startRefunds } from '../../packages/server/src/services/payments/refunds/refund-once.ts'
import { startMoveWatch } from '../../packages/server/src/services/payments/reversals/watch-moves.ts'
import { findRestoredAt } from '../../packages/server/src/services/payments/settling/network-pin.ts'
import {
  makeSweepMemory,
  sweepRound,
} from '../../packages/server/src/services/payments/settling/sweeper.ts'
import {
  postStorageFees,
  type StorageFeeParts,
} from '../../packages/server/src/services/payments/storage/storage-fees.ts'
import { Transfers } from '../../packages/server/src/services/payments/transfers/transfers.ts'
import { QueryPlans } from '../../packages/server/src/services/queries/query-plans.ts'
import { QueryRates } from '../../packages/server/src/services/queries/query-rates.ts'
import { ResultCache } from '../../packages/server/src/services/reading/result-cache.ts'
import { ShortReads } from '../../packages/server/src/services/reading/short-reads.ts'
import { NamedRequests } from '../../packages/server/src/services/requests/named-requests.ts'
import { ViewBuilder } from '../../packages/server/src/services/views/view-builder.ts'
import { BlockWatch } from '../../packages/server/src/x402/block-watch.ts'
import { makeEscrow } from '../../packages/server/src/x402/channels/escrow.ts'
import { readTransactionTime } from '../../packages/server/src/x402/evm-chain.ts'
import {
  makeEvmFacilitator,
  settleTimeoutMs,
} from '../../packages/server/src/x402/evm-facilitator.ts'
import { Failures } from '../../packages/server/src/x402/failures.ts'
import { makeNativeTransfers } from '../../packages/server/src/x402/native-transfer.ts'
import { makePaymentNetwork } from '../../packages/server/src/x402/networks.ts'
import { makePaymentsUnderWay } from '../../packages/server/src/x402/payments-under-way.ts'
import { JournaledSender } from '../../packages/server/src/x402/sender.ts'
import { deriveAddress } from '../../packages/server/src/x402/signature.ts'
import { makeTreasury } from '../../packages/server/src/x402/treasury.ts'
import { makeUptoFacilitator } from '../../packages/server/src/x402/upto/upto-facilitator.ts'
import type { Life } from './life.ts'
import type { PaymentChain } from './payment-chain.ts'
import { makePlateStore } from './plate-shelf.ts'
import type { RemoteFacilitator } from './remote-facilitator.ts'

/** The time of the shop's founding, milliseconds since 1970; every run begins a little later. */
export const foundedMs = Date.UTC(2026, 0, 1)
export const serviceName = 'simulated'
export const application = 'shop'
/** The shop's owner, to whom its payouts go. */
export const owner = `0x${'0e'.repeat(20)}`
export const operatorKey = 'operator-of-the-simulation'
/** Another seller, whose records are joined to the shop's goods. */
export const supplier = 'farm'
/** A seller whose buyers pay its own wallet where its balance has the platform's share. */
export const press = 'press'
export const pressWallet = `0x${'9e'.repeat(20)}`
/** The price of each request for its news, enough for a payment on either network. */
export const newsPrice = 5_000n
export const news = ['n0', 'n1', 'n2'].map((id) => ({ id, text: `text of ${id}` }))
/** An application whose agents buy with keys. */
export const agency = 'agency'
export const feeds = ['c1', 'c3', 'c4'].map((id) => ({ id, feed: `of ${id}` }))
export const firstPrice = 1000n
/** The first price of joining the supplier's records. */
export const firstDerive = 77n

/** The time after which a transfer of a payer's own making that its chain took back counts as gone. */
export const returnSeconds = 150
/** The time between two rounds of sweeps, and of fees. */
export const oftenMs = 7_000
/** The operator's price for storage: a day of the library's plates costs as much as some of its pages. */
export const storageFees = { price: 2n * 10n ** 11n, freeBytes: 0n }

/** The time in which a settlement waits for its block where others are served: some of them are told that it is pending. */
const hastyMs = 6_000
/** The bounds of what is settled for other servers: some of them ask for more. */
export const facilitatorSettings = {
  access: 'key',
  networks: undefined,
  minimumPayment: undefined,
  settlementsPerDay: 3,
  allSettlementsPerDay: 10,
} as const

export const publicUrl = () => 'https://shop.example'

/** The key of the address that payments go to, and withdrawals and payouts come from. */
const treasuryKey = Buffer.alloc(32, 10)
const payTo = deriveAddress(treasuryKey)
/** The key that pays the gas, and claims from payment channels. */
const gasKey = Buffer.alloc(32, 9)
export const gasAddress = deriveAddress(gasKey)
const asset = { name: 'Test Dollar', version: '2', symbol: 'TUSD', decimals: 6 }

/** The network on which the service settles itself. */
export const ownNetwork = makePaymentNetwork({
  chainId: 84532,
  payTo,
  withdrawalMinimum: 100n,
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

/** The log is not read. */
const log = pino({ level: 'silent' })

export type Running = {
  readonly life: Life
  readonly service: Service
  readonly namedRequests: NamedRequests
  /** Ends the service as the composition root does: what is under way first, its chains last. */
  readonly stop: () => Promise<void>
}

/** Composes the service in a process, as the composition root does, except for the simulated outside. */
export async function startShop(
  life: Life,
  parts: {
    readonly database: Database
    readonly chain?: PaymentChain
    readonly remote?: RemoteFacilitator
    readonly onStep?: PaymentPorts['onStep']
    /** True where refunds that were cut off are looked for. */
    readonly givesRefunds?: boolean
    /** True where buyers may pay by channels. */
    readonly hasChannels?: boolean
    /** True where the chain may take back what is booked. */
    readonly watchesMoves?: boolean
    /** True where buyers may sign for the most that something costs. */
    readonly hasUpto?: boolean
    /** True where buyers may send money to a quote's own address by themselves. */
    readonly takesNatives?: boolean
    /** True where payments to other servers are settled. */
    readonly settlesForOthers?: boolean
    /** The folder whose files cost their application a fee for each day. */
    readonly chargesFolder?: number | undefined
  },
): Promise<Running> {
  const { world } = life
  const database = life.database(parts.database)
  // Views are not measured from time to time: nothing here grows beyond its bound.
  const viewBuilder = new ViewBuilder({
    ...{ database, world, log },
    tenantOf: (app) => tenants.load(app),
    tenants: () => tenants.listOpen(),
    viewBytesMax: () => null,
    onStale: () => undefined,
  })
  const tenants: Tenants = await openTenants({
    database,
    world,
    log,
    serviceName,
    holder: life.name,
    onViews: (app) => viewBuilder.notice(app),
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
  const stops: (() => Promise<unknown>)[] = [() => tenants.close(), () => viewBuilder.close()]
  const methods: PaymentMethod[] = []
  if (parts.chain !== undefined) {
    const own = await makeOwnMethod(life, { ...parts, chain: parts.chain, database })
    methods.push(own.method)
    stops.push(own.stop)
  }
  if (parts.remote !== undefined)
    methods.push({ network: parts.remote.network, facilitator: parts.remote.facilitator(life) })
  const ticketKey = Buffer.alloc(16, 5)
  const namedRequests = new NamedRequests({
    ...{ database, tenants, world, log },
    secret: Buffer.alloc(32, 7),
    answerKey: Buffer.alloc(32, 8),
  })
  const files = makePlateStore(life, parts.chargesFolder)
  const payments = new Payments({
    database,
    files,
    tenants,
    world,
    methods,
    quoteSecret: Buffer.alloc(32, 3),
    depositSecret: Buffer.alloc(32, 4),
    publicUrl,
    split: { platformBasisPoints: 2000n },
    answerPaidWrite: makePaidWriteAnswerer({ world, database, ticketKey }),
    ...(parts.onStep && { onStep: parts.onStep }),
  })
  stops.push(startReconciler(payments, log))
  if (parts.givesRefunds === true) stops.push(startRefunds({ database, tenants, world }, log))
  if (parts.hasChannels === true) stops.push(startClaimer({ ...payments.ports, log }))
  if (parts.takesNatives === true) stops.push(startSweeps(payments.ports))
  if (parts.chargesFolder !== undefined)
    stops.push(startFees({ database, tenants, world, files, settings: storageFees }))
  const transfers = new Transfers({ ...payments.ports, log })
  if (parts.chain !== undefined)
    stops.push(
      transfers.start(),
      startAutomaticPayouts({ ...payments.ports, transfers }, () => undefined),
    )
  if (parts.watchesMoves === true)
    stops.push(startMoveWatch({ ...payments.ports, log, turns: payments.turns }))
  world.every(1000, () => {
    const { failure } = tenants.system.chain
    if (failure !== undefined) life.die(`the system chain stopped: ${failure.message}`)
  })
  // The operations that are simulated use nothing else of the service.
  const service = giveParts<Service>({
    world,
    log,
    database,
    tenants,
    payments,
    transfers,
    ...(parts.settlesForOthers === true && {
      facilitating: new Facilitating(payments.ports, facilitatorSettings),
    }),
    viewBuilder,
    blobs: { store: files },
    queryPlans: new QueryPlans(),
    queryRates: new QueryRates(),
    resultCache: new ResultCache({ bytesMax: 0, onLookup: () => undefined }),
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
    keyUse: new KeyUse(database, world),
    cursorSecret: Buffer.alloc(32, 6),
    ticketKey,
  })
  const stop = async () => {
    for (const end of stops.toReversed()) await end().catch(() => undefined)
  }
  return { life, service, namedRequests, stop }
}

/** Sweeps deposit addresses. */
function startSweeps(ports: PaymentPorts): () => Promise<void> {
  const memory = makeSweepMemory(ports)
  return repeatOften(ports, () => sweepRound(ports, log, memory))
}

/** Charges the fees for stored files. */
function startFees(parts: StorageFeeParts): () => Promise<void> {
  const free = new Map<string, string>()
  return repeatOften(parts, () => postStorageFees(parts, () => undefined, free))
}

/** Repeats some work more often than the composition root does: most of a run is rough for a minute. */
function repeatOften(
  { world }: Pick<PaymentPorts, 'world'>,
  work: () => Promise<void>,
): () => Promise<void> {
  let running: Promise<void> | undefined
  const stop = world.every(oftenMs, () => {
    running ??= work()
      .catch(() => undefined)
      .finally(() => {
        running = undefined
      })
  })
  return async () => {
    stop()
    await running
  }
}

async function makeOwnMethod(
  life: Life,
  {
    chain,
    database,
    hasChannels = false,
    hasUpto = false,
    watchesMoves = false,
    takesNatives = false,
    settlesForOthers = false,
  }: {
    readonly chain: PaymentChain
    readonly database: Database
    readonly hasChannels?: boolean
    readonly hasUpto?: boolean
    readonly watchesMoves?: boolean
    readonly takesNatives?: boolean
    readonly settlesForOthers?: boolean
  },
): Promise<{ readonly method: PaymentMethod; readonly stop: () => Promise<void> }> {
  const { network, confirmations } = chain
  const { world } = life
  const rpc = chain.rpc(life)
  const sender = new JournaledSender({ database, world, log, rpc, network, key: gasKey })
  await sender.start()
  const failures = new Failures({ rpc, world })
  const pollMs = 500
  const underWay = makePaymentsUnderWay({ rpc, network, world, pollMs, waitMs: settleTimeoutMs })
  const by = { rpc, network, sender, world, log, pollMs, confirmations, failures, underWay }
  const hasty = settlesForOthers ? { settleTimeoutMs: hastyMs } : {}
  const facilitator = makeEvmFacilitator({ ...by, ...hasty })
  const restoredAt = await findRestoredAt(database, network.id)
  const treasury = makeTreasury({ network, facilitator, rpc, world, key: treasuryKey })
  const method = {
    ...{ network, facilitator, treasury },
    ...(hasChannels && { escrow: makeEscrow(by) }),
    ...(hasUpto && { upto: makeUptoFacilitator(by) }),
    ...((watchesMoves || takesNatives) && { blocks: new BlockWatch(rpc, network.asset.address) }),
    ...(restoredAt !== undefined && {
      restoredAt,
      readTime: (transaction: string) => readTransactionTime(rpc, transaction),
    }),
    ...(takesNatives && {
      native: makeNativeTransfers({ ...by, returnSeconds: BigInt(returnSeconds) }),
    }),
  }
  return { method, stop: () => sender.stop() }
}
