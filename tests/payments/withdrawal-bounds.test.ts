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

    test('wallets that buy nothing share a bound where a withdrawal has no fee; who bought something is not held up', async () => {
      const market = await openMarket(service(), { price: { per_row: '100' } })
      const idle = await createDepositor(service(), getDevnet(), '5000')
      const buyer = await createDepositor(service(), getDevnet(), '5000')
      const sold = await buyer.buy(service(), list({ root: market.root, limit: 5 }))
      expect(sold.status, sold.text).toBe(200)
      const network = getDevnet().network.id
      const [row] = await service().database.query<{ count: number }>(
        sql`SELECT count(*)::int4 AS count FROM operations.outgoing_transfer WHERE unspent`,
      )
      const count = limits.unspentWithdrawalsMax - 1 - (row?.count ?? 0)
      await insertUnspent(service(), { network, count, atMs: service().world.now() - 5_000 })
      const last = await withdraw(service(), idle, { amount: 100 })
      expect(last.status, last.text).toBe(202)
      const refused = await withdraw(service(), idle, { amount: 100 })
      expect(refused.status, refused.text).toBe(429)
      expect(refused.body.details).toMatchObject({ limit: limits.unspentWithdrawalsMax })
      const other = await withdraw(service(), buyer, { amount: 100 })
      expect(other.status, other.text).toBe(202)
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
    SELECT 'wd_x' || n, 'withdrawal', 'wallet:' || n, ${network}, '0x', 1, 'returned', 0, 0, ${atMs}::int8, true
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
