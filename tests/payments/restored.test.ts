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
import { sweepRound } from '../../packages/server/src/services/payments/settling/sweeper.ts'
import { startTestService, type TestReply, type TestService } from '../support/service.ts'
import { makeTestWorld } from '../support/test-world.ts'
import { ask, createFundedBuyer, list, quote, readBalance } from './buyer.ts'
import { claimAll, makeChannelBuyer } from './channel-buyer.ts'
import { expectBalanced, openMarket, readEarnings, setPrices } from './market.ts'
import { connectChain, createFundedPayer, makeProof, pay } from './payer.ts'

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

/** The kept payment, or its money, is on the payer's balance, and nothing else came of it. */
function expectBalance(reply: TestReply, why: RegExp): void {
  expect(reply.status, reply.text).toBe(402)
  expect(reply.body.error).toMatch(why)
  expect(reply.body.error).toMatch(/atomic units are on the balance/)
  expect(reply.text).not.toContain('Wien')
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
    const [buyer, swept, unswept] = [
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
    await service.whileStopped(() => backUp(service.database))

    const asked = list({ root: market.root, limit: 3 })
    const raw = JSON.stringify({ root: owned.root, data: [{ n: 1 }] })
    const stored = { method: 'POST', path: '/store?wait=true', raw, headers: owned.headers }
    const signed = await buyer.payV2(await quote(service, asked))
    const native = await pay(service, swept, asked)
    const later = await pay(service, unswept, asked)
    const { payTo } = service.running.service.payments.ports.methods[0]?.network ?? { payTo: '' }
    const own = makeProof(undefined, await unswept.transfer({ to: payTo, value: 1000n }))
    for (const [what, header] of [
      [asked, signed],
      [asked, native],
    ] as const)
      expect((await ask(service, what, header)).status).toBe(200)
    await sweepRound(service.running.service.payments.ports, service.running.service.log)
    expect((await ask(service, asked, later)).status).toBe(200)
    expect((await ask(service, stored, own)).status).toBe(200)

    const voucher = await byChannel.sign(list({ root, limit: 9 }))
    expect((await ask(service, list({ root, limit: 9 }), voucher)).status).toBe(200)
    await claimAll(service)

    await expect(service.whileStopped(() => restore(service.database))).rejects.toThrow(refusal)
    say(true)
    await service.restart()
    say(false)
    await service.restart()

    expect(await readEarnings(service, market)).toBe(0n)
    expectBalance(await ask(service, asked, signed), /used before/)
    expectBalance(await ask(service, asked, native), /used before/)
    expectBalance(await ask(service, asked, later), /before this service was restored/)
    expectBalance(await ask(service, stored, own), /before this service was restored/)
    for (const header of [signed, native, later])
      expect([402, 409]).toContain((await ask(service, asked, header)).status)
    expect(await readBalance(service, buyer.address)).toBe(3000n)
    expect(await readBalance(service, swept.address)).toBe(3000n)
    expect(await readBalance(service, unswept.address)).toBe(4000n)
    expect(await readEarnings(service, market)).toBe(0n)
    expect(await readEarnings(service, owned)).toBe(0n)

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
    expect(await readEarnings(service, market)).toBe(4800n)
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
    expectBalance(await ask(service, asked, transfer), /before this service was restored/)
    expect(await readEarnings(service, market)).toBe(0n)
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
