import { tmpdir } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import { verifyDocument } from '@tollbase/verify/verify'
import { describe, expect, test, vi } from 'vitest'
import { realWorld } from '../../packages/server/src/base/world.ts'
import type { Database } from '../../packages/server/src/database/database.ts'
import { watchFreeSpace } from '../../packages/server/src/database/embedded/free-space.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { ask, createFundedBuyer, list, quote, readBalance } from '../support/buyer.ts'
import { expectBalanced, type Market, openMarket, readChainBalance } from '../support/market.ts'
import { startProgram } from '../support/program.ts'
import { startTestService, type TestReply, type TestService } from '../support/service.ts'
import { insist, openPlace, type Place, readBooks } from './place.ts'
import { canMount, openSmallDisk, type SmallDisk } from './small-disk.ts'

if (!canMount)
  console.warn(
    'Nothing can be mounted here: disks that are full or fail are not tested in this run.',
  )

/** The time-out is for a slow day: a service that has to come back twice. */
vi.setConfig({ testTimeout: 240_000 })
const patience = { timeout: 60_000 }

/** A kilobyte that does not compress. */
const ballast = () => Buffer.from(realWorld.randomBytes(512)).toString('hex')

function store(service: Place['service'], market: Market, data: readonly object[]) {
  const body = { root: `${market.appId}::notes`, data }
  return service.request('POST', '/store?wait=true', { headers: market.headers, body })
}

function expectRefused(reply: TestReply, code: string): void {
  expect({ status: reply.status, code: reply.body.code }).toEqual({ status: 503, code })
  expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0)
}

async function records(service: Place['service'], market: Market): Promise<Map<string, number>> {
  const { status, body } = await service.request('POST', '/list', {
    headers: market.headers,
    body: { root: `${market.appId}::notes`, select: { id: true, n: true } },
  })
  expect(status).toBe(200)
  return new Map(body.records.map(({ id, n }: { id: string; n: number }) => [id, n]))
}

/** Writes from several writers until told to end; gives the acknowledged records. */
function load(service: Place['service'], market: Market) {
  const acknowledged = new Map<string, number>()
  const refusals: TestReply[] = []
  let over = false
  const write = async (side: string) => {
    for (let n = 0; !over; n++) {
      const id = `${side}-${n}`
      const data = [{ id, n, ballast: ballast() }]
      const reply = await store(service, market, data).catch(() => undefined)
      if (reply?.status === 200) acknowledged.set(id, n)
      else if (reply !== undefined) refusals.push(reply)
      if (reply?.status !== 200) await wait(20)
    }
  }
  const sides = ['a', 'b', 'c'].map(write)
  return {
    acknowledged,
    refusals,
    stop: async () => {
      over = true
      await Promise.all(sides)
    },
  }
}

test('a disk without room for more is named, and asked again only after a while', () => {
  let now = 0
  const world = { ...realWorld, now: () => now }
  const folder = tmpdir()
  const roomy = watchFreeSpace({ folder, bytesMin: 1, world })
  expect(roomy.need).not.toThrow()
  expect([roomy.isShort(), roomy.bytes() > 0]).toEqual([false, true])
  const full = watchFreeSpace({ folder, bytesMin: Number.MAX_SAFE_INTEGER, world })
  expect(full.isShort()).toBe(true)
  expect(full.need).toThrow(
    expect.objectContaining({ code: 'STORAGE_FULL', retryAfterSeconds: 10 }),
  )
  now = 10_000
  expect(full.need).toThrow(/full/)
})

test("room that is promised to one writer is nobody else's, until that one has written or ends", async () => {
  const folder = tmpdir()
  const free = watchFreeSpace({ folder, bytesMin: 1, world: realWorld }).bytes()
  // Shares so large that other work on the disk does not matter.
  const share = Math.floor(free / 5)
  const disk = watchFreeSpace({ folder, bytesMin: Math.floor(free / 2), world: realWorld })
  const hold = () => {
    let end: (error?: Error) => void = () => undefined
    const ending = new Promise<void>((resolve, reject) => {
      end = (error) => (error === undefined ? resolve() : reject(error))
    })
    const run = disk.useRoom(async (needRoom) => {
      // A writer that asks again has written what the first share was for.
      needRoom(share)
      needRoom(share)
      await ending
    })
    return { run, end }
  }
  const [first, second] = [hold(), hold()]
  const full = { code: 'STORAGE_FULL' }
  const ask = () => disk.useRoom(async (needRoom) => needRoom(share))
  await expect(ask()).rejects.toMatchObject(full)
  expect(() => disk.needFor(share)).toThrow(expect.objectContaining(full))
  expect(disk.isShort()).toBe(false)
  first.end(new Error('broken off'))
  await expect(first.run).rejects.toThrow('broken off')
  await ask()
  second.end()
  await second.run
  await disk.useRoom(async (needRoom) => needRoom(2 * share))
  disk.needFor(2 * share)
})

test('a database that turns read only refuses writes and payments and names the reason, goes on reading, and goes on writing when it is writable', async () => {
  const service = await startTestService({ devnet: true })
  try {
    await expectRefusalAndReturn(service, {
      code: 'STORAGE_READ_ONLY',
      harm: () => setForAll(service.database, 'default_transaction_read_only', 'on'),
      heal: () => setForAll(service.database, 'default_transaction_read_only', undefined),
    })
  } finally {
    await service.close()
  }
})

describe.runIf(canMount)('a disk that can be filled', () => {
  test('tables that cannot grow refuse writes and payments and name the reason, reads go on, and all goes on when there is room', async () => {
    const disk = openSmallDisk({ kind: 'memory', mebibytes: 48 })
    const tablespace = `small_${process.pid}`
    const service = await startTestService({
      devnet: true,
      prepare: async (database) => {
        const create = `CREATE TABLESPACE ${tablespace} LOCATION '${disk.folder}'`
        await database.execute(sql.compiled(create, []))
        await setForAll(database, 'default_tablespace', tablespace)
      },
    })
    try {
      await expectRefusalAndReturn(service, {
        code: 'STORAGE_FULL',
        harm: async () => disk.fill(0),
        heal: async () => disk.empty(),
      })
    } finally {
      await service.close()
      disk.remove()
    }
  })

  test('a database of ours that is nearly out of room takes and sells nothing new, reads go on, and all goes on when there is room', async () => {
    const disk = openSmallDisk({ kind: 'memory', mebibytes: 320 })
    const place = await openPlace(disk.folder)
    try {
      const { service } = place
      const { market, asked, buyer, header } = await openScene(service)
      disk.fill(16 * 1024 * 1024)
      await expect.poll(async () => (await store(service, market, [{}])).status, patience).toBe(503)
      expectRefused(await store(service, market, [{ id: 'x' }]), 'STORAGE_FULL')
      expectRefused(await createCollection(service, market), 'STORAGE_FULL')
      expectRefused(await ask(service, asked, header), 'STORAGE_FULL')
      disk.fill(0)
      expectRefused(await ask(service, asked, header), 'STORAGE_FULL')
      expect(await place.onChain(buyer.address)).toBe(funds)
      expect((await records(service, market)).get('before')).toBe(1)
      expect((await service.request('GET', '/health')).status).toBe(200)
      const ready = await service.request('GET', '/ready')
      expect(ready).toMatchObject({ status: 503, body: { checks: { storage: 'full' } } })
      const { text } = await service.request('GET', '/metrics')
      expect(text).toMatch(/^tollbase_storage_free_bytes \d+$/m)
      disk.empty()
      await expect.poll(async () => (await store(service, market, [{}])).status, patience).toBe(200)
      expect((await ask(service, asked, header)).status).toBe(200)
      expect(await place.onChain(buyer.address)).toBe(funds - 3000n)
      expect((await createCollection(service, market)).status).toBe(201)
      await place.program().end('SIGTERM')
      expect((await readBooks(place.dataDir)).report).toMatchObject({ equal: true })
    } finally {
      await place.close()
      disk.remove()
    }
  })

  test.each([
    ['is filled to the last byte', 'memory', (disk: SmallDisk) => disk.fill(0)],
    ['fails', 'file', (disk: SmallDisk) => disk.fail()],
  ] as const)(
    'a disk that %s under load loses nothing acknowledged, and a new start goes on',
    async (_, kind, harm) => {
      const disk = openSmallDisk({ kind, mebibytes: 320 })
      const place = await openPlace(disk.folder)
      try {
        const { market } = await openScene(place.service)
        const writing = load(place.service, market)
        await expect.poll(() => writing.acknowledged.size, patience).toBeGreaterThan(20)
        harm(disk)
        // A process that dies of it dies in this time; all others live on.
        await wait(3_000)
        await writing.stop()
        for (const { status, text } of writing.refusals) expect(status, text).toBe(503)
        await place.program().end('SIGKILL')
        await place.leave()
        if (kind === 'file') disk.repair()
        else disk.empty()
        expect((await readBooks(place.dataDir)).report).toMatchObject({ equal: true })
        await place.start()
        expect((await insistToStore(place.service, market)).status).toBe(200)
        const found = await records(place.service, market)
        for (const [id, n] of writing.acknowledged) expect(found.get(id), id).toBe(n)
      } finally {
        await place.close()
        disk.remove()
      }
    },
  )

  test('a data folder that cannot be written to is refused at start and named', async () => {
    const disk = openSmallDisk({ kind: 'memory', mebibytes: 200 })
    try {
      const first = startProgram(disk.folder)
      await first.url
      expect(await first.end('SIGTERM')).toBe(0)
      disk.protect()
      const second = startProgram(disk.folder)
      expect(await second.ended).not.toBe(0)
      expect(second.output()).toContain(disk.folder)
      expect(second.output()).toMatch(/read-only/i)
    } finally {
      disk.remove()
    }
  })
})

const funds = 100_000n

/** Opens a market that sells and stores notes, and a buyer with a payment in hand. */
async function openScene(service: Place['service']) {
  const market = await openMarket(service, { price: { per_row: '1000' } })
  expect((await store(service, market, [{ id: 'before', n: 1 }])).status).toBe(200)
  const buyer = await createFundedBuyer(service, funds)
  const asked = list({ root: market.root, limit: 3 })
  return { market, asked, buyer, header: await buyer.payV2(await quote(service, asked)) }
}

let collections = 0

function createCollection(service: Place['service'], market: Market): Promise<TestReply> {
  collections += 1
  return service.request('POST', `/api/apps/${market.appId}/collections`, {
    headers: market.headers,
    body: { name: `collection${collections}` },
  })
}

function insistToStore(service: Place['service'], market: Market): Promise<TestReply> {
  const raw = JSON.stringify({ root: `${market.appId}::notes`, data: [{ id: 'after', n: 1 }] })
  return insist(service, { method: 'POST', path: '/store?wait=true', raw, headers: market.headers })
}

/** The database accepts no writes for a while; the service stays up all the time. */
async function expectRefusalAndReturn(
  service: TestService,
  trouble: { code: string; harm: () => Promise<void>; heal: () => Promise<void> },
): Promise<void> {
  const { market, asked, buyer, header } = await openScene(service)
  await trouble.harm()
  let acknowledged = 0
  let refusal: TestReply | undefined
  for (let n = 0; n < refusedWithin && refusal === undefined; n++) {
    const reply = await store(service, market, [{ id: `r${n}`, n, text: ballast().repeat(64) }])
    if (reply.status === 200) acknowledged = n + 1
    else if (reply.body.code !== 'UNAVAILABLE') refusal = reply
  }
  if (refusal === undefined) throw new Error('nothing was refused')
  expectRefused(refusal, trouble.code)
  const named = trouble.code === 'STORAGE_FULL' ? 'full' : 'read_only'
  const ready = await service.request('GET', '/ready')
  expect(ready).toMatchObject({ status: 503, body: { checks: { storage: named } } })
  expectRefused(await ask(service, asked, header), trouble.code)
  expect(await readChainBalance(service, buyer.address)).toBe(funds)
  expect(await readBalance(service, buyer.address)).toBe(0n)
  const during = await records(service, market)
  expect(during.get('before')).toBe(1)

  await trouble.heal()
  expect((await insistToStore(service, market)).status).toBe(200)
  const found = await records(service, market)
  for (let n = 0; n < acknowledged; n++) expect(found.get(`r${n}`)).toBe(n)
  const proof = await service.request(
    'GET',
    `/api/apps/${market.appId}/collections/notes/records/after/proof`,
    { headers: market.headers },
  )
  const head = await service.request('GET', `/api/apps/${market.appId}/chain/checkpoint`, {
    headers: market.headers,
  })
  expect(verifyDocument(proof.text, { trustedKey: head.body.key }).ok).toBe(true)
  const paid = await insist(service, asked, header)
  expect(paid.status, paid.text).toBe(200)
  expect((await service.request('GET', '/ready')).body.checks.storage).toBe('ok')
  expect(await readChainBalance(service, buyer.address)).toBe(funds - 3000n)
  await expectBalanced(service)
  await service.whileStopped(async (config) => {
    expect(await audit(config, () => undefined)).toMatchObject({ equal: true })
  })
}

/** Writes more than the remaining disk can hold, whatever was free inside of its tables. */
const refusedWithin = 300

/** Changes a default of the database, and ends all sessions that have the old one. */
async function setForAll(
  database: Database,
  name: string,
  value: string | undefined,
): Promise<void> {
  await database.transaction(async (tx) => {
    await tx.execute(sql.compiled('SET TRANSACTION READ WRITE', []))
    const [row] = await tx.query<{ own: string }>(sql`SELECT current_database() AS own`)
    const change = value === undefined ? `RESET ${name}` : `SET ${name} = '${value}'`
    await tx.execute(sql.compiled(`ALTER DATABASE ${String(row?.own)} ${change}`, []))
  })
  await database.query(sql`
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()`)
}
