import type { Database } from '../../packages/server/src/database/database.ts'
import { runMigrations } from '../../packages/server/src/database/run-migrations.ts'
import { HttpReply } from '../../packages/server/src/http/reply.ts'
import { createApplication } from '../../packages/server/src/operations/applications/create-application.ts'
import {
  findRowShape,
  prepareBlobRow,
} from '../../packages/server/src/operations/blobs/sell-upload.ts'
import { storeBlobRow } from '../../packages/server/src/operations/blobs/store-blob-row.ts'
import { createCollection } from '../../packages/server/src/operations/collections/create-collection.ts'
import { setPayoutSettings } from '../../packages/server/src/operations/payouts/set-payout-settings.ts'
import { setPricing } from '../../packages/server/src/operations/pricing/set-pricing.ts'
import { createQuery } from '../../packages/server/src/operations/queries/create-query.ts'
import { migrations } from '../../packages/server/src/operator/migrations.ts'
import type { Tenant } from '../../packages/server/src/services/applications/tenants.ts'
import type { Call, Service } from '../../packages/server/src/services/call.ts'
import { pinNetwork } from '../../packages/server/src/services/payments/settling/network-pin.ts'
import { Chance } from './chance.ts'
import { makeExtractsDefinition } from './exhibits.ts'
import { firstSamples, makeSamplePolicy } from './letter-rules.ts'
import { library, makeLibraryPrices, maps, pages, scans } from './library.ts'
import { calm, Life, Turns } from './life.ts'
import { plates } from './plates.ts'
import { deriveAt, makePriceList, makeStoreRequest } from './requests.ts'
import { Scheduler } from './scheduler.ts'
import { makeRequestInfo, sendRequest } from './send-request.ts'
import {
  agency,
  application,
  feeds,
  firstDerive,
  firstPrice,
  foundedMs,
  news,
  newsPrice,
  owner,
  ownNetwork,
  press,
  pressWallet,
  type Running,
  startShop,
  supplier,
} from './shop.ts'
import { makeSurveyDefinition } from './surveys.ts'

/** Keys of the shop and of its supplier. */
export type AppKeys = {
  readonly appKey: string
  readonly supplierKey: string
  readonly agencyKey: string
  readonly libraryKey: string
  /** The folder of its blobs. */
  readonly libraryFolder: number
}

/**
 * Founds the shop in an empty database: an application with a collection to read at a price and one to write to at
 * a price, and a supplier with one to join at a price. Every run starts from a copy of it.
 */
export async function createShop(database: Database): Promise<AppKeys> {
  await runMigrations(database, migrations, { now: foundedMs })
  // Whoever opens a payment network notes where its chain begins.
  await pinNetwork(database, ownNetwork.id, `0x${'0b'.repeat(32)}`)
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
    const requestInfo = makeRequestInfo(
      { operationId: 'createApplication', path: '/', body: {} },
      {},
    )
    const call: Call<keyof Service> = { service, caller: { kind: 'operator' }, requestInfo }
    const body = { app_id: application, name: 'Shop', owner_address: owner }
    const { app_key: appKey } = plain(await createApplication(call, { body }))
    const params = { app: application }
    for (const name of ['goods', 'notes', 'letters', 'parcels']) {
      const access_policy = { read: 'public' as const }
      await createCollection(call, { params, body: { name, access_policy } })
    }
    const samples = { name: 'samples', access_policy: makeSamplePolicy() }
    await createCollection(call, { params, body: samples })
    await setPricing(call, { params, body: makePriceList(firstPrice) })
    const data = ['c0', 'c1', 'c2', 'c3', 'c4', 'c5'].map((id) => ({ id, n: 0 }))
    await sendRequest(running, makeStoreRequest('goods', data), { 'x-app-key': appKey })
    await sendRequest(running, makeStoreRequest('samples', firstSamples), { 'x-app-key': appKey })
    await createQuery(call, { params, body: makeSurveyDefinition() })
    const supplierKey = await createSupplier(running, call)
    const { app_key: agencyKey } = plain(
      await createApplication(call, { body: { app_id: agency, name: 'Agency' } }),
    )
    await createPress(running, call)
    const ofLibrary = await createLibrary(running, call)
    await service.tenants.close()
    return { appKey, supplierKey, agencyKey, ...ofLibrary }
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

async function createPress(running: Running, call: Call<keyof Service>): Promise<void> {
  const body = { app_id: press, name: 'Press', owner_address: pressWallet }
  const { app_key: key } = plain(await createApplication(call, { body }))
  const params = { app: press }
  const price = { per_access: String(newsPrice) }
  const policy = { access_policy: { read: 'public' as const, price } }
  await createCollection(call, { params, body: { name: 'news', ...policy } })
  await sendRequest(running, makeStoreRequest('news', news, press), { 'x-app-key': key })
  await setPayoutSettings(call, { params, body: { direct_settlement: true } })
}

async function createLibrary(
  running: Running,
  call: Call<keyof Service>,
): Promise<Pick<AppKeys, 'libraryKey' | 'libraryFolder'>> {
  const body = { app_id: library, name: 'Library' }
  const { app_key: key } = plain(await createApplication(call, { body }))
  const params = { app: library }
  for (const [name, data] of [
    ['pages', pages],
    ['scans', scans],
    ['maps', maps],
  ] as const) {
    await createCollection(call, { params, body: { name } })
    await sendRequest(running, makeStoreRequest(name, data, library), { 'x-app-key': key })
  }
  const tenant = await running.service.tenants.load(library)
  const ofBlobs = { name: 'plates', collection_type: 'blob' } as const
  await createCollection(call, { params, body: ofBlobs })
  for (const plate of plates) await storePlate(call, tenant, plate)
  await createQuery(call, { params, body: makeExtractsDefinition() })
  const { status, text } = await sendRequest(running, makeLibraryPrices(), { 'x-app-key': key })
  if (status !== 200) throw new Error(`the library's prices were answered ${status} ${text}`)
  return { libraryKey: key, libraryFolder: tenant.application.number }
}

/** Stores the row of a plate as an upload does, whose file has arrived. */
async function storePlate(
  call: Call<keyof Service>,
  tenant: Tenant,
  { sha256, bytes }: (typeof plates)[number],
): Promise<void> {
  const shape = findRowShape(tenant, 'plates')
  const file = { size: bytes.length, contentType: 'text/plain', filename: undefined }
  const facts = { ...file, sha256, contentSha256: sha256, metadata: undefined }
  const record = await prepareBlobRow(call.service.world, facts, shape)
  const collection = tenant.data.catalog.byName.get('plates')
  if (collection === undefined) throw new Error('the plates have no collection')
  const write = { collection, record, shape, wait: true, verb: 'stored' } as const
  await storeBlobRow(call, tenant, write)
}

function plain<T>(reply: T | HttpReply): T {
  if (reply instanceof HttpReply) throw new Error('a plain reply was expected')
  return reply
}
