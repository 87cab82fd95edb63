import { readFileSync } from 'node:fs'
import { takeShare } from '@tollbase/testing/by-commit'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Failpoint, failpoints } from '../../packages/server/src/base/failpoints.ts'
import {
  type Asked,
  ask,
  type Buyer,
  list,
  makeBuyer,
  type PaymentHeader,
  quote,
  readBalance,
} from '../support/buyer.ts'
import type { Act, Kill } from '../support/kill.ts'
import { type Market, openMarket, readEarnings, setPrices } from '../support/market.ts'
import type { Json, TestReply } from '../support/service.ts'
import { insist, openPlace, type Place, readBooks } from './place.ts'

/** The time-out is for a slow day: each test waits for a program, an audit and an answer. */
vi.setConfig({ testTimeout: 240_000 })

/**
 * Every step of every kind of request, and the process that dies there; a new point is covered once it is in the
 * list.
 */
const kinds = ['a paid write', 'a paid read', 'a store'] as const
type Kind = (typeof kinds)[number]

const funds = 100_000n
const price = 3000n
/** 80 per cent of the price. */
const share = 2400n

const harm: Readonly<Record<Act, string>> = {
  service: 'the service is killed',
  database: 'the database is killed',
  both: 'service and database are killed',
  pause: 'its client hangs up',
}

type Scene = {
  readonly kind: Kind
  readonly asked: Asked
  readonly header: PaymentHeader
  readonly buyer: Buyer | undefined
  /** The text by which the written records are found. */
  readonly cell: string
  readonly earned: bigint
}

let place: Place
let market: Market
let cells = 0
let sales = 0n
/**
 * The kills since the program started: PostgreSQL that dies more often than this within a minute stays down, by
 * design.
 */
let databaseKills = 0
const databaseKillsMax = 5

beforeAll(async () => {
  place = await openPlace()
  market = await openMarket(place.service, { price: { per_row: '1000' } })
  for (const name of ['orders', 'notes']) {
    const body = { name, access_policy: { read: 'public' } }
    const path = `/api/apps/${market.appId}/collections`
    await place.service.request('POST', path, { body, headers: market.headers })
  }
  await setPrices(place.service, market, [
    { operation: 'read', model: 'per_row', amount: '1000' },
    { target: { collection: 'orders' }, operation: 'write', model: 'per_record', amount: '1000' },
  ])
})
afterAll(() => place?.close())

describe.each(kinds)('%s under every fault', (kind) => {
  const points = failpoints.filter((point) => passes(kind, point))
  const kills = points.flatMap((point) =>
    listTimes(kind, point).flatMap((time) => listActs(kind).map((act) => ({ point, time, act }))),
  )
  for (const kill of takeShare(kills, 4)) {
    const { point, time, act } = kill
    test(`${kind} is delivered, charged and written once though ${harm[act]} at ${point} (${time})`, async () => {
      const scene = await openScene(kind)
      await expectOnce(
        scene,
        act === 'pause' ? await sendAndLeave(scene, kill) : await sendKilled(scene, kill),
      )
    })
  }
})

/** Says that a kind of request passes the point. */
function passes(kind: Kind, point: Failpoint): boolean {
  // Other tests cover them: views.test.ts those of views, payments/reversal-crashes.test.ts those of moves, and each of
  // the others the room that it is named by, x402 for a transaction that is replaced.
  const others =
    /^(view|blob|upload|expiry|resealing|plaintext|columns|channel|move|publication|celestia)\./
  if (others.test(point) || point === 'block.erased' || point === 'payment.replaced') return false
  switch (kind) {
    case 'a paid write':
      return true
    case 'a paid read':
      return !point.startsWith('store.') && point !== 'payment.writeNoted'
    case 'a store':
      return !point.startsWith('payment.')
  }
}

/**
 * A paid write passes every point, and each is tried in every way; the other kinds would show nothing more with a
 * new process.
 */
function listActs(kind: Kind): readonly Act[] {
  return kind === 'a paid write' ? ['service', 'database', 'both', 'pause'] : ['database', 'pause']
}

/** A paid write makes two blocks: the application's, and the ledger's. */
function listTimes(kind: Kind, point: Failpoint): number[] {
  return kind === 'a paid write' && /^(block|applier)/.test(point) ? [1, 2] : [1]
}

async function openScene(kind: Kind): Promise<Scene> {
  cells += 1
  const cell = `cell-${cells}`
  const earned = await readEarnings(place.service, market)
  if (kind === 'a store') {
    const body = { root: `${market.appId}::notes`, data: [{ id: cell, cell }] }
    return { kind, asked: storing(body), header: {}, buyer: undefined, cell, earned }
  }
  const buyer = makeBuyer()
  const { status } = await place.service.request('POST', '/devnet/faucet', {
    body: { address: buyer.address, amount: String(funds) },
  })
  expect(status).toBe(200)
  // The records have no keys, so that a second write would be seen as further records.
  const asked =
    kind === 'a paid read'
      ? list({ root: market.root, limit: 3 })
      : storing({ root: `${market.appId}::orders`, data: [1, 2, 3].map((n) => ({ cell, n })) })
  const header = await buyer.payV2(await quote(place.service, asked))
  return { kind, asked, header, buyer, cell, earned }
}

function storing(body: object): Asked {
  return {
    method: 'POST',
    path: '/store?wait=true',
    raw: JSON.stringify(body),
    headers: market.headers,
  }
}

/**
 * Sends the request to a program that is killed during it, and restarts the program; gives the answer, if there was
 * one.
 */
async function sendKilled(scene: Scene, kill: Kill): Promise<TestReply | undefined> {
  const program = place.program()
  await program.arm(kill)
  const answered = ask(place.service, scene.asked, scene.header).catch(() => undefined)
  await Promise.race([program.killed(), failIfAnswered(answered, kill)])
  databaseKills += 1
  if (kill.act !== 'database' || databaseKills === databaseKillsMax) {
    if (kill.act === 'database') await insist(place.service, scene.asked, scene.header)
    await program.end('SIGKILL')
    await expectAudited()
    await place.start()
    databaseKills = 0
  }
  const first = await answered
  if (first !== undefined) expect([200, 503], first.text).toContain(first.status)
  return first
}

/** Fails where the request was answered and the kill has not come: it passes no such point. */
async function failIfAnswered(
  answered: Promise<TestReply | undefined>,
  { point }: Kill,
): Promise<never> {
  const reply = await answered
  if (reply === undefined) return new Promise(() => undefined)
  await new Promise((resolve) => setTimeout(resolve, 5000))
  throw new Error(`answered ${reply.status} without a kill: nothing passes ${point}`)
}

/** Sends the request and hangs up while the program is paused there. */
async function sendAndLeave(scene: Scene, kill: Kill): Promise<undefined> {
  const { pid, arm } = place.program()
  await arm(kill)
  const leaving = new AbortController()
  const left = sendUntil(scene, leaving.signal)
  try {
    await isStanding(pid)
    leaving.abort()
    await left
  } finally {
    process.kill(pid, 'SIGCONT')
  }
}

/** Sends the request until it is accepted, and hangs up without an answer when told to. */
async function sendUntil({ asked, header }: Scene, signal: AbortSignal): Promise<void> {
  const { method, path, raw = '' } = asked
  const headers = { 'content-type': 'application/json', ...asked.headers, ...header }
  const send = () =>
    fetch(place.url() + path, { method, headers, body: raw, signal }).catch(() => undefined)
  // A killed database may not be back on every connection yet.
  while ((await send())?.status === 503) await new Promise((resolve) => setTimeout(resolve, 50))
}

/**
 * Checks that a repeated request is delivered, whatever the first answer was; that it was written once, and charged
 * once or never.
 */
async function expectOnce(scene: Scene, first: TestReply | undefined): Promise<void> {
  const { kind, asked, header, buyer } = scene
  const { service } = place
  const again = await insist(service, asked, header)
  expect(again.status, again.text).toBe(200)
  if (buyer === undefined) return expect(await written(scene, 'notes')).toHaveLength(1)
  if (first?.status === 200) expect(again.text).toBe(first.text)
  expect((await ask(service, asked, header)).text).toBe(again.text)
  if (kind === 'a paid write') {
    expect((await written(scene, 'orders')).map(({ n }) => n)).toEqual([1, 2, 3])
  }
  sales += 1n
  expect(await place.onChain(buyer.address)).toBe(funds - price)
  expect(await place.onChain(place.payTo)).toBe(sales * price)
  expect(await readBalance(service, buyer.address)).toBe(0n)
  expect((await readEarnings(service, market)) - scene.earned).toBe(share)
}

async function written({ cell }: Scene, collection: string): Promise<Json[]> {
  const { status, body } = await place.service.request('POST', '/list', {
    headers: market.headers,
    body: { root: `${market.appId}::${collection}`, find: { cell } },
  })
  expect(status).toBe(200)
  return body.records
}

/** Checks a stopped service: every table is as the entries make it, and the ledger has no more than the chain. */
async function expectAudited(): Promise<void> {
  const { report, accounts } = await readBooks(place.dataDir)
  expect(report.difference).toBeUndefined()
  expect(report.equal).toBe(true)
  const total = [...accounts.values()].reduce((sum, one) => sum + one, 0n)
  expect(total).toBe(0n)
}

/** Waits until the process is paused. */
async function isStanding(pid: number): Promise<void> {
  const standing = () => /^State:\s+T/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  await expect.poll(standing, { timeout: 30_000, interval: 2 }).toBe(true)
}
