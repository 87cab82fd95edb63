import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { privateKeyToAddress } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { noLog as log } from '../../packages/server/src/base/log.ts'
import type { Database } from '../../packages/server/src/database/database.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import { type Devnet, startDevnet } from '../../packages/server/src/devnet/devnet.ts'
import { listOpenClaims } from '../../packages/server/src/services/payments/claims/claim-lists.ts'
import { sweepRound } from '../../packages/server/src/services/payments/settling/sweeper.ts'
import {
  type Asked,
  ask,
  createFundedBuyer,
  list,
  type PaymentHeader,
  quote,
  readBalance,
} from '../support/buyer.ts'
import {
  expectBalanced,
  openMarket,
  readEarnings,
  readReceipt,
  setPrices,
} from '../support/market.ts'
import { connectChain, createFundedPayer, makeProof, pay } from '../support/payer.ts'
import {
  type Json,
  startTestService,
  type TestReply,
  type TestService,
} from '../support/service.ts'
import { makeTestWorld } from '../support/test-world.ts'
import { claimAll, makeChannelBuyer, readChannels } from './channel-buyer.ts'
import { makeUptoBuyer } from './upto-buyer.ts'

const refusal = /has sent \d+ transactions that this database does not know/

/** The parts of a service's own state that a backup holds, put aside in the same database. */
const parts = ['system', 'operations']

async function listTables(database: Database): Promise<{ schema: string; name: string }[]> {
  return database.query(sql`
    SELECT schemaname AS schema, tablename AS name FROM pg_tables WHERE schemaname = ANY(${parts}::text[])`)
}

async function backUp(database: Database): Promise<void> {
  await database.execute(sql`CREATE SCHEMA backup`)
  for (const { schema, name } of await listTables(database)) {
    const copy = sql.id('backup', `${schema}.${name}`)
    await database.execute(sql`CREATE TABLE ${copy} AS TABLE ${sql.id(schema, name)}`)
  }
}

async function restore(database: Database): Promise<void> {
  for (const { schema, name } of await listTables(database)) {
    const table = sql.id(schema, name)
    await database.execute(sql`TRUNCATE ${table}`)
    await database.execute(
      sql`INSERT INTO ${table} SELECT * FROM ${sql.id('backup', `${schema}.${name}`)}`,
    )
  }
}

/** Puts a purchase of the life that will be lost into the backup, as one that was under way at that moment. */
async function backUpClaimed(
  database: Database,
  payer: string,
  as: object = { state: 'claimed', settled_by: null, told_transaction: null },
): Promise<void> {
  const state = JSON.stringify(as)
  await database.execute(sql`
    INSERT INTO backup."operations.claim" SELECT made.* FROM operations.claim AS claim,
      LATERAL jsonb_populate_record(claim, ${state}::jsonb) AS made WHERE split_part(claim.identity, '/', 3) = ${payer}`)
}

/** Makes the request that settles this payment for its payer's balance. */
function makeSettling(header: PaymentHeader): Asked {
  const text = Buffer.from(header['payment-signature'] ?? '', 'base64').toString()
  const paymentPayload = JSON.parse(text)
  const body = { x402Version: 2, paymentPayload, paymentRequirements: paymentPayload.accepted }
  const headers = { 'idempotency-key': 'settlement-1' }
  return { method: 'POST', path: '/api/payments/settle', raw: JSON.stringify(body), headers }
}

/** The money of the payment is held, and nothing else came of it. */
function expectHeld(reply: TestReply, payer: string, amount: bigint): void {
  expect(reply.status, reply.text).toBe(409)
  expect(reply.body).toMatchObject({ code: 'PAYMENT_HELD', details: { payer } })
  expect(reply.body.details.amount).toBe(String(amount))
  expect(reply.text).not.toContain('Wien')
}

async function listHeld(service: TestService): Promise<Json[]> {
  const reply = await service.request('GET', '/api/platform/held', { headers: service.operator })
  expect(reply.status, reply.text).toBe(200)
  return reply.body.payments
}

function release(service: TestService, body: object): Promise<TestReply> {
  const { operator: headers } = service
  return service.request('POST', '/api/platform/held/release', { headers, body })
}

describe('databases restored from a backup', () => {
  let service: TestService
  beforeAll(async () => {
    service = await startTestService({ devnet: true })
  })
  afterAll(() => service?.close())
  const say = (afterRestore: boolean) => Object.assign(service.config, { afterRestore })

  test('A3: a restored database is not started without a word from the operator, and sells nothing for what it sold before', async () => {
    const market = await openMarket(service, { price: { per_row: '1000' } })
    const owned = await openMarket(service, { records: [] })
    await setPrices(service, owned, [{ operation: 'write', model: 'per_record', amount: '1000' }])
    const [buyer, claimed, depositor, investor, settler, swept, unswept] = [
      await createFundedBuyer(service),
      await createFundedBuyer(service),
      await createFundedBuyer(service),
      await createFundedBuyer(service),
      await createFundedBuyer(service),
      await createFundedPayer(service),
      await createFundedPayer(service),
    ]
    const path = `/api/apps/${owned.appId}`
    const named = await service.request('PATCH', path, {
      body: { owner_address: unswept.address },
      headers: service.operator,
    })
    expect(named.status, named.text).toBe(200)
    const byChannel = await makeChannelBuyer(service)
    const { root } = await openMarket(service, { price: { per_row: '1000' } })
    expect((await byChannel.list({ root, limit: 1 })).status).toBe(200)
    const upto = await makeUptoBuyer(service)
    const uptoClaimed = await makeUptoBuyer(service)
    await service.whileStopped(() => backUp(service.database))

    const asked = list({ root: market.root, limit: 3 })
    const raw = JSON.stringify({ root: owned.root, data: [{ n: 1 }] })
    const stored = {
      ...{ method: 'POST', path: '/store?wait=true', raw },
      headers: { ...owned.headers, 'idempotency-key': 'note-1' },
    }
    const signed = await buyer.payV2(await quote(service, asked))
    const two = list({ root: market.root, limit: 2 })
    const most = await upto.sign(two)
    const mostUnderWay = await uptoClaimed.sign(two)
    const underWay = await claimed.payV2(await quote(service, asked))
    const depositing = {
      method: 'POST',
      path: `/api/apps/${owned.appId}/wallet/deposit`,
      raw: JSON.stringify({ amount: '5000' }),
      headers: owned.headers,
    }
    const deposit = await depositor.payV2(await quote(service, depositing))
    const investment = await investor.payV2(await quote(service, depositing))
    const settling = makeSettling(await settler.payV2(await quote(service, asked)))
    const native = await pay(service, swept, asked)
    const later = await pay(service, unswept, asked)
    const { payTo } = service.running.service.payments.ports.methods[0]?.network ?? { payTo: '' }
    const own = makeProof(undefined, await unswept.transfer({ to: payTo, value: 1000n }))
    for (const [what, header] of [
      [asked, signed],
      [asked, underWay],
      [depositing, deposit],
      [depositing, investment],
      [two, most],
      [two, mostUnderWay],
      [settling, {}],
      [asked, native],
    ] as const)
      expect((await ask(service, what, header)).status).toBe(200)
    await sweepRound(service.running.service.payments.ports, service.running.service.log)
    expect((await ask(service, asked, later)).status).toBe(200)
    expect((await ask(service, stored, own)).status).toBe(200)

    const voucher = await byChannel.sign(list({ root, limit: 9 }))
    expect((await ask(service, list({ root, limit: 9 }), voucher)).status).toBe(200)
    await claimAll(service)

    await backUpClaimed(service.database, claimed.address)
    await backUpClaimed(service.database, uptoClaimed.address)
    await backUpClaimed(service.database, investor.address)
    await expect(service.whileStopped(() => restore(service.database))).rejects.toThrow(refusal)
    say(true)
    await service.restart()
    say(false)
    await service.restart()

    expect(await readEarnings(service, market)).toBe(0n)
    // The claims that were under way when the backup was made are brought to their end by nobody but the upkeep.
    const { payments } = service.running.service
    const page = { olderThanMs: service.world.now(), after: { at: -1n, id: '' }, limit: 100 }
    for (const claim of await listOpenClaims(service.database, page))
      await payments.reconcile(claim)
    const shown = [
      [asked, signed, buyer.address, 3000n],
      [asked, underWay, claimed.address, 3000n],
      [depositing, deposit, depositor.address, 5000n],
      [depositing, investment, investor.address, 5000n],
      [two, most, upto.address, 2000n],
      [two, mostUnderWay, uptoClaimed.address, 2000n],
      [settling, {}, settler.address, 3000n],
      [asked, native, swept.address, 3000n],
      [asked, later, unswept.address, 3000n],
      [stored, own, unswept.address, 1000n],
    ] as const
    for (let time = 1; time <= 2; time++)
      for (const [what, header, payer, amount] of shown)
        expectHeld(await ask(service, what, header), payer, amount)
    for (const [, , payer] of shown) expect(await readBalance(service, payer)).toBe(0n)
    expect(await readEarnings(service, market)).toBe(0n)
    expect(await readEarnings(service, owned)).toBe(0n)
    const told = await service.request('GET', '/metrics', { headers: service.operator })
    expect(told.text).toContain('payments_held_atomic 30000')

    // Nobody but the operator decides: one payment, all of a payer, or all.
    const held = await listHeld(service)
    const toTell = (one: Json) => [one.payer, one.amount, one.account]
    expect(held.map(toTell).toSorted()).toEqual(
      shown
        .map(([, , payer, amount]) => {
          // The backup knows alone of this one what it was for.
          const account = payer === investor.address ? `app:${owned.appId}` : `wallet:${payer}`
          return [payer, String(amount), account]
        })
        .toSorted(),
    )
    const first = held.find((one) => one.payer === buyer.address)
    expect((await release(service, { payment_id: first?.payment_id })).status).toBe(200)
    expect((await release(service, { payment_id: first?.payment_id })).status).toBe(404)
    expect((await release(service, { payment_id: 'x', all: true })).status).toBe(400)
    expect(await readBalance(service, buyer.address)).toBe(3000n)
    expect((await release(service, { payer: unswept.address })).body.payments).toHaveLength(2)
    expect(await readBalance(service, unswept.address)).toBe(4000n)
    expect(await readBalance(service, swept.address)).toBe(0n)
    expect((await release(service, { all: true })).body.payments).toHaveLength(7)
    expect((await release(service, { all: true })).body.payments).toHaveLength(0)
    expect(await listHeld(service)).toEqual([])
    expect(await readBalance(service, depositor.address)).toBe(5000n)
    // That the money was held is not kept as the answer to the settlement under its key.
    expect((await ask(service, settling)).body).toMatchObject({ success: true })
    expect(await readBalance(service, settler.address)).toBe(3000n)
    // A deposit for an application is for its keys to spend, also where it was held first.
    const agent = await service.request('POST', `/api/apps/${owned.appId}/keys`, {
      ...{ body: { permissions: ['Pay'] }, headers: owned.headers },
    })
    const paid = await service.request('POST', '/list', {
      ...{ body: { root, limit: 1 }, headers: { 'x-agent-key': agent.body.key } },
    })
    expect(paid.status, paid.text).toBe(200)

    // The payment itself buys nothing, and its money does.
    const again = await ask(service, asked, signed)
    expect([again.status, again.body.code]).toEqual([409, 'PAYMENT_ALREADY_USED'])
    const fromBalance = await buyer.payV2(await quote(service, asked))
    expect((await ask(service, asked, fromBalance)).status).toBe(200)
    expect(await readBalance(service, buyer.address)).toBe(0n)
    expect(await readEarnings(service, market)).toBe(2400n)

    // The chain tells what was claimed of a channel: that much buys nothing again, of whatever quote.
    for (const limit of [9, 5, 2]) {
      const twice = await ask(service, list({ root, limit }), voucher)
      expect(twice.status, twice.text).toBe(402)
      expect(twice.body.error).toMatch(/cumulative_amount_mismatch$/)
    }

    // Payments from now on buy as ever. Blocks state their time in seconds; a block in the second of the restore
    // still counts as before it.
    await setTimeout(1100)
    expect((await buyer.buy(service, asked)).status).toBe(200)
    const fresh = await createFundedPayer(service)
    const bought = await ask(service, asked, await pay(service, fresh, asked))
    expect(bought.status, bought.text).toBe(200)
    expect(await readEarnings(service, market)).toBe(7200n)
    // That its payment was held is no answer to the write: it is made for another payment under the same key.
    const written = await ask(service, stored, await pay(service, fresh, stored))
    expect(written.status, written.text).toBe(200)
    await expectBalanced(service)
  })
})

test('A3: a clock that is slow at the first start after a restore lets no older transfer buy again', async () => {
  const service = await startTestService({ devnet: true })
  try {
    const market = await openMarket(service, { price: { per_row: '1000' } })
    const payer = await createFundedPayer(service)
    await service.whileStopped(() => backUp(service.database))
    const asked = list({ root: market.root, limit: 3 })
    const transfer = await pay(service, payer, asked)
    expect((await ask(service, asked, transfer)).status).toBe(200)
    service.world.advance(-120_000)
    Object.assign(service.config, { afterRestore: true })
    await service.whileStopped(() => restore(service.database))
    service.world.advance(120_000)
    expectHeld(await ask(service, asked, transfer), payer.address, 3000n)
    expect(await readEarnings(service, market)).toBe(0n)
  } finally {
    await service.close()
  }
})

test('A3: a voucher that was used after the backup and was not claimed buys once more, and brings its money once', async () => {
  const service = await startTestService({ devnet: true })
  try {
    const market = await openMarket(service, { price: { per_row: '1000' } })
    const buyer = await makeChannelBuyer(service)
    const { root } = market
    expect((await buyer.list({ root, limit: 1 })).status).toBe(200)
    await service.whileStopped(() => backUp(service.database))
    const asked = list({ root, limit: 3 })
    const voucher = await buyer.sign(asked)
    expect((await ask(service, asked, voucher)).status).toBe(200)
    Object.assign(service.config, { afterRestore: true })
    // A service that ends claims what is due; one that dies does not.
    for (const { escrow } of service.running.service.payments.ports.methods)
      Object.assign(escrow ?? {}, { claim: () => Promise.reject(new Error('it died')) })
    await service.whileStopped(() => restore(service.database))
    // Nothing was claimed for it, so its payer still has that money: it is sold, and once.
    const again = await ask(service, asked, voucher)
    expect(again.status, again.text).toBe(200)
    expect(await readEarnings(service, market)).toBe(3200n)
    expect((await ask(service, asked, voucher)).text).toBe(again.text)
    const next = await ask(service, list({ root, limit: 2 }), voucher)
    expect([next.status, next.body.error]).toEqual([402, expect.stringMatching(/mismatch$/)])
    await claimAll(service)
    const [after] = await readChannels(service, buyer.address)
    expect(after?.claimed).toBe('4000')
    await expectBalanced(service)
  } finally {
    await service.close()
  }
})

test('A3: a payment that the backup has as under way or failed, and that bought its answer since, buys it no second time where it is shown before the upkeep comes by', async () => {
  const service = await startTestService({ devnet: true })
  try {
    const market = await openMarket(service, { price: { per_row: '1000' } })
    const owned = await openMarket(service, { records: [] })
    await setPrices(service, owned, [{ operation: 'write', model: 'per_record', amount: '1000' }])
    const fund = () => createFundedBuyer(service)
    const states = ['claimed', 'failed', 'void'] as const
    const buyers = await Promise.all(
      states.map(async (state) => ({
        state,
        ...{ v1: await fund(), v2: await fund(), writer: await fund() },
        ...{ upto: await makeUptoBuyer(service), native: await createFundedPayer(service) },
      })),
    )
    const written = await fund()
    await service.whileStopped(() => backUp(service.database))
    const asked = list({ root: market.root, limit: 3 })
    const raw = JSON.stringify({ root: owned.root, data: [{ n: 1 }] })
    const stored = { method: 'POST', path: '/store?wait=true', raw, headers: owned.headers }
    const signed = await written.payV2(await quote(service, stored))
    const before = await ask(service, stored, signed)
    expect(before.status, before.text).toBe(200)
    const read = { what: asked, amount: 3000n }
    const write = { what: stored, amount: 1000n }
    const shown = (
      await Promise.all(
        buyers.map(async ({ state, v1, v2, writer, upto, native }) => [
          {
            ...read,
            state,
            payer: v1.address,
            header: await v1.payV1(await quote(service, asked)),
          },
          {
            ...read,
            state,
            payer: v2.address,
            header: await v2.payV2(await quote(service, asked)),
          },
          { ...read, state, payer: upto.address, header: await upto.sign(asked) },
          { ...read, state, payer: native.address, header: await pay(service, native, asked) },
          {
            ...{ ...write, state, payer: writer.address },
            header: await writer.payV2(await quote(service, stored)),
          },
        ]),
      )
    ).flat()
    for (const { what, header } of shown) {
      const reply = await ask(service, what, header)
      expect(reply.status, reply.text).toBe(200)
    }
    for (const { state, payer } of [...shown, { state: 'claimed', payer: written.address }])
      await backUpClaimed(service.database, payer, {
        ...{ state, reason: state === 'claimed' ? null : 'not_sent' },
        ...{ settled_by: null, told_transaction: null },
        // A whole restore takes the application's log back, too, and with it what was written.
        ...(payer !== written.address && { write_after: null, write_form: null }),
      })
    Object.assign(service.config, { afterRestore: true })
    await service.whileStopped(() => restore(service.database))
    for (let time = 1; time <= 2; time++)
      for (const { what, header, payer, amount } of shown)
        expectHeld(await ask(service, what, header), payer, amount)
    expect(await readEarnings(service, market)).toBe(0n)
    expect(await listHeld(service)).toHaveLength(shown.length)
    // A write that the log has is charged for, and not made again.
    const after = await ask(service, stored, signed)
    expect([after.status, after.body], after.text).toEqual([200, before.body])
    expect(await readEarnings(service, owned)).toBe(800n)
    expect((await release(service, { all: true })).body.payments).toHaveLength(shown.length)
    for (const { payer, amount } of shown) expect(await readBalance(service, payer)).toBe(amount)
    await expectBalanced(service)
  } finally {
    await service.close()
  }
})

test('A3: money that had come for a purchase when the backup was made, and that nobody answered since, is held', async () => {
  const service = await startTestService({ devnet: true })
  try {
    const market = await openMarket(service, { price: { per_row: '1000' } })
    const buyer = await createFundedBuyer(service)
    await service.whileStopped(() => backUp(service.database))
    const asked = list({ root: market.root, limit: 3 })
    const signed = await buyer.payV2(await quote(service, asked))
    const reply = await ask(service, asked, signed)
    expect(reply.status, reply.text).toBe(200)
    const { transaction } = await readReceipt(service, reply)
    await backUpClaimed(service.database, buyer.address, { state: 'held', settled_by: transaction })
    await service.database.execute(sql`
      INSERT INTO backup."operations.account_hold" (id, account, amount)
      SELECT id, ${`wallet:${buyer.address}`}, cap FROM backup."operations.claim"`)
    Object.assign(service.config, { afterRestore: true })
    await service.whileStopped(() => restore(service.database))
    const { payments } = service.running.service
    const reconcile = async () => {
      const page = { olderThanMs: service.world.now(), after: { at: -1n, id: '' }, limit: 100 }
      for (const claim of await listOpenClaims(service.database, page))
        await payments.reconcile(claim)
    }
    await reconcile()
    // Its request may be repeated for five minutes, and would be sold to it.
    expect(await listHeld(service)).toEqual([])
    service.world.advance(301_000)
    await reconcile()
    expect(await listHeld(service)).toMatchObject([{ payer: buyer.address, amount: '3000' }])
    expectHeld(await ask(service, asked, signed), buyer.address, 3000n)
    // A process that died in between leaves the claim as it was.
    await service.database.execute(sql`UPDATE operations.claim SET state = 'held'`)
    expectHeld(await ask(service, asked, signed), buyer.address, 3000n)
    await reconcile()
    expect(await readBalance(service, buyer.address)).toBe(0n)
    expect((await release(service, { all: true })).body.payments).toHaveLength(1)
    expect(await readBalance(service, buyer.address)).toBe(3000n)
    await expectBalanced(service)
  } finally {
    await service.close()
  }
})

describe('one pay_to and one gas key for one database', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tollbase-second-'))
  let devnet: Devnet
  let other: Devnet
  beforeAll(async () => {
    devnet = await startDevnet({ dataDir: join(folder, 'one'), world: makeTestWorld(), log })
    other = await startDevnet({ dataDir: join(folder, 'other'), world: makeTestWorld(), log })
  })
  afterAll(async () => {
    await devnet?.stop()
    await other?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  /** A network with a gas key of its own. */
  async function freshNetwork() {
    const key = `0x${randomBytes(32).toString('hex')}` as const
    const address = privateKeyToAddress(key)
    await connectChain(devnet.rpcUrl).setBalance({ address, value: 10n ** 20n })
    const signer_key_file = join(folder, address)
    writeFileSync(signer_key_file, key)
    return {
      network: 'base-sepolia',
      pay_to: devnet.network.payTo,
      rpc_url: devnet.rpcUrl,
      signer_key_file,
    }
  }

  async function sellOne(service: TestService): Promise<void> {
    const market = await openMarket(service, { price: { per_access: '1000' } })
    const buyer = await createFundedBuyer(service, 0n)
    await devnet.faucet(buyer.address, 1000n)
    const reply = await buyer.buy(service, list({ root: market.root, limit: 1 }))
    expect(reply.status, reply.text).toBe(200)
  }

  test('A3: a second database with the settings of the first is refused at start, and told what to do', async () => {
    const networks = [await freshNetwork()]
    const first = await startTestService({ config: { networks } })
    try {
      await sellOne(first)
      await expect(startTestService({ config: { networks } })).rejects.toThrow(
        /^networks\[0\]: .* 1 transactions .* serve one database.*--after-restore/,
      )
      // The first one goes on, and its next start finds all that its key did in its journal.
      await sellOne(first)
      await first.restart()
      await sellOne(first)
    } finally {
      await first.close()
    }
  })

  test('A3: a key with a past of its own is taken from the moment the operator vouches for it', async () => {
    const networks = [await freshNetwork()]
    const first = await startTestService({ config: { networks } })
    await sellOne(first)
    await first.close()
    const second = await startTestService({ config: { networks, afterRestore: true } })
    try {
      Object.assign(second.config, { afterRestore: false })
      await second.restart()
      // Nobody can tell whether a block of the very second of the vouching came before it, so its money is held.
      await setTimeout(1100)
      await sellOne(second)
      await second.restart()
    } finally {
      await second.close()
    }
  })

  test('A3: a node of another chain with the same id is refused at start: its money is other money', async () => {
    const networks = [await freshNetwork()]
    const service = await startTestService({ config: { networks } })
    try {
      const [network] = networks
      Object.assign(network ?? {}, { rpc_url: other.rpcUrl })
      await expect(service.restart()).rejects.toThrow(/^networks\[0\].rpc_url: .* begins with 0x/)
      Object.assign(network ?? {}, { rpc_url: devnet.rpcUrl })
      await service.restart()
    } finally {
      await service.close()
    }
  })
})
