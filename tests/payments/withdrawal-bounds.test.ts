import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { limits } from '@tollbase/contract/limits'
import { privateKeyToAddress } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { noLog as log } from '../../packages/server/src/base/log.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import { type Devnet, startDevnet } from '../../packages/server/src/devnet/devnet.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { payOutDue } from '../../packages/server/src/services/payments/payouts/payouts.ts'
import { type Buyer, depositing, list, makeBuyer, readBalance } from '../support/buyer.ts'
import {
  expectBalanced,
  openMarket,
  readAccounts,
  readEarnings,
  readReceipt,
  readTokens,
} from '../support/market.ts'
import { connectChain } from '../support/payer.ts'
import { withService } from '../support/per-engine.ts'
import {
  type Json,
  startTestService,
  type TestReply,
  type TestService,
} from '../support/service.ts'
import { makeTestWorld } from '../support/test-world.ts'
import { askSigned, makeTestWallet } from '../support/wallet.ts'

const dayMs = limits.withdrawalSeconds * 1000

function withdraw(service: TestService, by: Buyer, body: object): Promise<TestReply> {
  const path = `/api/wallets/${by.address}/withdraw`
  return askSigned(service, makeTestWallet(by.account), { method: 'POST', path, body })
}

/** A buyer whose balance has this much, of which it has bought nothing. */
async function createDepositor(service: TestService, devnet: Devnet, amount: string) {
  const buyer = makeBuyer()
  await devnet.faucet(buyer.address, BigInt(amount) * 2n)
  const paid = await buyer.buy(service, depositing(buyer.address, amount))
  expect(paid.status, paid.text).toBe(200)
  return buyer
}

withService(
  (service) => {
    const getDevnet = () => {
      const { devnet } = service().running
      if (devnet === undefined) throw new Error('this needs the devnet')
      return devnet
    }

    test('a balance has as many withdrawals in a day as the limit says; the next one is told when it can be made', async () => {
      const buyer = await createDepositor(service(), getDevnet(), '5000')
      const { withdrawalsMax } = limits
      for (let n = 1; n <= withdrawalsMax; n++) {
        const made = await withdraw(service(), buyer, { amount: 100, idempotency_key: `n${n}` })
        expect(made.status, made.text).toBe(202)
        service().world.advance(1_000)
      }
      const refused = await withdraw(service(), buyer, { amount: 100, idempotency_key: 'more' })
      expect(refused.status, refused.text).toBe(429)
      expect(refused.body).toMatchObject({
        code: 'WITHDRAWAL_LIMIT',
        details: { limit: withdrawalsMax, resets_at: expect.stringContaining('T') },
      })
      const waitMs = Date.parse(refused.body.details.resets_at) - service().world.now()
      expect(waitMs).toBeGreaterThan(dayMs - 120_000)
      expect(waitMs).toBeLessThanOrEqual(dayMs)
      const toldMs = Number(refused.headers.get('retry-after')) * 1000
      expect(toldMs).toBeGreaterThanOrEqual(waitMs)
      expect(toldMs).toBeLessThanOrEqual(dayMs)
      expect(await readBalance(service(), buyer.address)).toBe(5_000n - 1_000n)
      // One that was made before is no new one.
      const again = await withdraw(service(), buyer, { amount: 100, idempotency_key: 'n1' })
      expect(again.status, again.text).toBe(202)
      service().world.advance(waitMs + 1)
      const next = await withdraw(service(), buyer, { amount: 100, idempotency_key: 'more' })
      expect(next.status, next.text).toBe(202)
      service().world.advance(-waitMs - 1 - withdrawalsMax * 1_000)
      await expectBalanced(service())
    })

    test('an application has as many payouts in a day as the limit says; automatic ones wait', async () => {
      const market = await openMarket(service(), { price: { per_row: '1000' } })
      const buyer = makeBuyer()
      await getDevnet().faucet(buyer.address, 100_000n)
      const sold = await buyer.buy(service(), list({ root: market.root, limit: 5 }))
      expect(sold.status, sold.text).toBe(200)
      const { headers } = market
      const path = `/api/apps/${market.appId}/payout/request`
      const set = `/api/apps/${market.appId}/payout/settings`
      const destination = { payout_destination: `0x${'d'.repeat(40)}` }
      await service().request('POST', set, { headers, body: destination })
      // A destination that a key chose counts after a day.
      service().world.advance(dayMs + 1_000)
      for (let n = 1; n <= limits.payoutsMax; n++) {
        const made = await service().request('POST', path, { headers, body: { amount: '100' } })
        expect(made.status, made.text).toBe(202)
      }
      const refused = await service().request('POST', path, { headers, body: { amount: '100' } })
      expect(refused.body).toMatchObject({
        ...{ code: 'WITHDRAWAL_LIMIT', details: { limit: limits.payoutsMax } },
      })
      const settings = { auto_payout_enabled: true, payout_threshold: '100' }
      expect((await service().request('POST', set, { headers, body: settings })).status).toBe(200)
      const failures: unknown[] = []
      await payOutDue(service().running.service, (_, error) => failures.push(error))
      service().world.advance(-dayMs - 1_000)
      expect(failures).toEqual([])
      expect(await readEarnings(service(), market)).toBe(4_000n - 100n * BigInt(limits.payoutsMax))
    })

    /** Fills the bound that those share who trade nothing. */
    const fillShared = async (left = 0) => {
      const network = getDevnet().network.id
      // Another test's withdrawals of a day ago may leave the bound before this one has asked.
      const sinceMs = service().world.now() - dayMs + 60_000
      const [row] = await service().database.query<{ count: number }>(sql`
        SELECT count(*)::int4 AS count FROM operations.outgoing_transfer WHERE unspent AND created_at_ms > ${sinceMs}::int8`)
      const count = limits.unspentWithdrawalsMax - left - (row?.count ?? 0)
      await insertUnspent(service(), { network, count, atMs: service().world.now() - 5_000 })
    }

    test('wallets that buy nothing share a bound where a withdrawal has no fee; who bought something is not held up', async () => {
      const market = await openMarket(service(), { price: { per_row: '100' } })
      const idle = await createDepositor(service(), getDevnet(), '5000')
      const buyer = await createDepositor(service(), getDevnet(), '5000')
      const sold = await buyer.buy(service(), list({ root: market.root, limit: 5 }))
      expect(sold.status, sold.text).toBe(200)
      await fillShared(1)
      const last = await withdraw(service(), idle, { amount: 100 })
      expect(last.status, last.text).toBe(202)
      const refused = await withdraw(service(), idle, { amount: 100 })
      expect(refused.status, refused.text).toBe(429)
      expect(refused.body.details).toMatchObject({ limit: limits.unspentWithdrawalsMax })
      const other = await withdraw(service(), buyer, { amount: 100 })
      expect(other.status, other.text).toBe(202)
    })

    test('a purchase below the network’s smallest payment, or one that was refunded, does not free a wallet from the shared bound', async () => {
      const market = await openMarket(service(), { price: { per_row: '1' } })
      const buyer = await createDepositor(service(), getDevnet(), '5000')
      const sold = await buyer.buy(service(), list({ root: market.root, limit: 1 }))
      expect(sold.status, sold.text).toBe(200)
      await fillShared()
      // Its atomic unit pays for one withdrawal where the smallest payment is one.
      expect((await withdraw(service(), buyer, { amount: 100 })).status).toBe(202)
      const refused = await withdraw(service(), buyer, { amount: 100 })
      expect([refused.status, refused.body.details?.limit]).toEqual([
        429,
        limits.unspentWithdrawalsMax,
      ])
      expect(refused.text).toContain('smallest payment')
      const refunded = await createDepositor(service(), getDevnet(), '5000')
      const again = await refunded.buy(service(), list({ root: market.root, limit: 1 }))
      const { payment_id: id } = await readReceipt(service(), again)
      const path = `/api/apps/${market.appId}/sales/${id}/refund`
      const back = await service().request('POST', path, { headers: market.headers, body: {} })
      expect(back.status, back.text).toBeLessThan(300)
      expect((await withdraw(service(), refunded, { amount: 100 })).status).toBe(429)
    })

    test('an application that sells nothing shares the bound, too; one is paid out what it has earned', async () => {
      const market = await openMarket(service(), { price: { per_row: '1000' } })
      const idle = await openMarket(service(), { price: { per_row: '1000' } })
      const destination = { payout_destination: `0x${'d'.repeat(40)}` }
      for (const { appId, headers } of [market, idle])
        await service().request('POST', `/api/apps/${appId}/payout/settings`, {
          headers,
          body: destination,
        })
      const buyer = makeBuyer()
      await getDevnet().faucet(buyer.address, 100_000n)
      const sold = await buyer.buy(service(), list({ root: market.root, limit: 5 }))
      expect(sold.status, sold.text).toBe(200)
      const deposit = {
        ...{ method: 'POST' as const, path: `/api/apps/${idle.appId}/wallet/deposit` },
        ...{ raw: JSON.stringify({ amount: '1000' }), headers: idle.headers },
      }
      const paid = await buyer.buy(service(), deposit)
      expect(paid.status, paid.text).toBe(200)
      service().world.advance(dayMs + 1_000)
      await fillShared()
      const payOut = ({ appId, headers }: typeof market) =>
        service().request('POST', `/api/apps/${appId}/payout/request`, {
          headers,
          body: { amount: '100' },
        })
      const [one, other] = [await payOut(market), await payOut(idle)]
      service().world.advance(-dayMs - 1_000)
      expect([one.status, other.status], `${one.text} ${other.text}`).toEqual([202, 429])
    })

    test('a stranger who uses up the shared bound every day holds up a first withdrawal for a week at most', async () => {
      const waitMs = limits.firstWithdrawalSeconds * 1000
      const idle = await createDepositor(service(), getDevnet(), '5000')
      service().world.advance(waitMs - 600_000)
      await fillShared()
      const early = await withdraw(service(), idle, { amount: 100 })
      expect(early.text).toContain('at the latest')
      // The chain's times never go back, so the deposit may be as late as another test has set the clock.
      service().world.advance(dayMs + 1_200_000)
      await fillShared()
      const first = await withdraw(service(), idle, { amount: 100 })
      await fillShared()
      const second = await withdraw(service(), idle, { amount: 100 })
      service().world.advance(-waitMs - dayMs - 600_000)
      expect([early.status, first.status, second.status], `${early.text} ${first.text}`).toEqual([
        429, 202, 429,
      ])
    })
  },
  { devnet: true },
)

/** Rows of withdrawals by wallets that bought nothing, which have ended. */
async function insertUnspent(
  { database }: TestService,
  { network, count, atMs }: { network: string; count: number; atMs: number },
): Promise<void> {
  await database.execute(sql`
    INSERT INTO operations.outgoing_transfer (id, kind, account, network, recipient, amount, state, tries, valid_before, created_at_ms, unspent)
    SELECT ${`wd_x${atMs}_`} || n, 'withdrawal', 'wallet:' || n, ${network}, '0x', 1, 'returned', 0, 0, ${atMs}::int8, true
    FROM generate_series(1, ${count}::int4) AS one (n)`)
}

describe('a network whose withdrawals have a fee', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tollbase-withdrawals-'))
  let devnet: Devnet
  let service: TestService

  beforeAll(async () => {
    devnet = await startDevnet({ dataDir: folder, world: makeTestWorld(), log })
    const keep = (name: string, key: Uint8Array) => {
      const file = join(folder, name)
      writeFileSync(file, `0x${Buffer.from(key).toString('hex')}`)
      return file
    }
    const gas = Buffer.alloc(32, 7)
    const chain = connectChain(devnet.rpcUrl)
    const address = privateKeyToAddress(`0x${gas.toString('hex')}`)
    await chain.setBalance({ address, value: 10n ** 20n })
    const network = {
      ...{ network: 'base-sepolia', pay_to: devnet.network.payTo, rpc_url: devnet.rpcUrl },
      ...{ minimum_payment: 1, withdrawal_minimum: 100, withdrawal_fee: 50 },
      signer_key_file: keep('gas-key', gas),
      pay_to_key_file: keep('treasury-key', devnet.keys.treasury),
    }
    service = await startTestService({ config: { networks: [network] } })
  })

  afterAll(async () => {
    await service?.close()
    await devnet?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  test('the fee is told before, is paid beside the amount, and is the operator’s once the withdrawal is paid', async () => {
    const known = await service.request('GET', '/.well-known/tollbase')
    expect(known.body.networks).toMatchObject([{ withdrawal_minimum: '100', withdrawal_fee: '50' }])
    const buyer = await createDepositor(service, devnet, '1000')
    const tooMuch = await withdraw(service, buyer, { amount: 951 })
    expect(tooMuch.body).toMatchObject({ code: 'BALANCE_TOO_LOW', details: { asked: '1001' } })
    const before = await readTokens(devnet, buyer.address)
    const made = await withdraw(service, buyer, { amount: 400 })
    expect(made.body).toMatchObject({
      ...{ amount: '400', fee: '50', usd: { amount: '0.0004', fee: '0.00005' } },
    })
    expect(await readBalance(service, buyer.address)).toBe(550n)
    for (let n = 0; (await readTokens(devnet, buyer.address)) !== before + 400n; n++) {
      expect(n).toBeLessThan(400)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    for (let n = 0; (await readAccounts(service)).get('platform') !== 50n; n++) {
      expect(n).toBeLessThan(400)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    const entries = await askSigned(service, makeTestWallet(buyer.account), {
      ...{ method: 'GET', path: `/api/wallets/${buyer.address}/entries` },
    })
    const lines = entries.body.entries.map((one: Json) => `${one.kind} ${one.amount}`)
    expect(lines).toEqual(['withdrawal_fee -50', 'withdrawal -400', 'deposit 1000'])
    await expectBalanced(service)
    const report = await service.whileStopped((config) => audit(config, () => undefined))
    expect(report.equal, JSON.stringify(report)).toBe(true)
  })
})
