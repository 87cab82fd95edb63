import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { listOpenClaims } from '../../packages/server/src/services/payments/claims/claim-lists.ts'
import { dropReplies } from '../../packages/server/src/services/payments/claims/reply-store.ts'
import type { PaymentPorts } from '../../packages/server/src/services/payments/payment-ports.ts'
import { Payments } from '../../packages/server/src/services/payments/payments.ts'
import {
  type Asked,
  ask,
  type Buyer,
  createFundedBuyer,
  depositing,
  list,
  makeBuyer,
  type PaymentHeader,
  quote,
  readBalance,
} from '../support/buyer.ts'
import {
  expectBalanced,
  type Market,
  openMarket,
  readChainBalance,
  readEarnings,
  readReceipt,
  setPrices,
} from '../support/market.ts'
import { createFundedPayer, pay } from '../support/payer.ts'
import { withService } from '../support/per-engine.ts'
import type { Json, TestReply, TestService } from '../support/service.ts'
import { askSigned, makeTestWallet } from '../support/wallet.ts'
import { type Death, makeDyingPayments, replacePayments } from './dying-payments.ts'

type Scene = {
  readonly market: Market
  readonly buyer: Pick<Buyer, 'address'>
  readonly asked: Asked
  readonly header: PaymentHeader
}

/** No purchase has more steps; the test fails where one does. */
const stepsMax = 40
const kinds = [
  'a paid read',
  'a read paid by a transfer',
  'a read paid by a key',
  'a paid write',
  'a deposit',
  "a deposit to another's wallet",
] as const
type Kind = (typeof kinds)[number]

withService(
  (service) => {
    describe.each(kinds)('%s', (kind) => {
      test.each(['before', 'after'] as const)(
        'P7: a payment survives a death %s each of its steps: the retry delivers, charges once, and writes once',
        async (when) => {
          const ports = service().running.service.payments.ports
          const seen = new Set<string>()
          for (let step = 0; ; step++) {
            expect(step).toBeLessThan(stepsMax)
            const scene = await openScene(kind, service())
            const died = await buyDying(scene, { step, when })
            for (const name of died.steps) seen.add(name)
            if (died.steps.length <= step) break
            expect(died.reply.status, `step ${step}: ${died.steps.join(', ')}`).toBeGreaterThan(399)
            await recover(scene, { step, ports })
            await expectOnce(kind, service(), scene)
          }
          const isByKey = kind === 'a read paid by a key'
          const always = isByKey ? ['append'] : ['verify', 'settle', 'append', 'INSERT claim']
          expect([...seen]).toEqual(expect.arrayContaining(always))
        },
      )
    })

    test.each(kinds)('P7: %s survives several deaths in a row, each at any step', async (kind) => {
      const deaths = fc.array(
        fc.record({
          step: fc.integer({ min: 0, max: 14 }),
          when: fc.constantFrom('before' as const, 'after' as const),
        }),
        { minLength: 2, maxLength: 4 },
      )
      await fc.assert(
        fc.asyncProperty(deaths, fc.nat(1), async (given, step) => {
          const { ports } = service().running.service.payments
          const scene = await openScene(kind, service())
          for (const death of given) await buyDying(scene, death)
          await recover(scene, { step, ports })
          await expectOnce(kind, service(), scene)
        }),
        { numRuns: 12 },
      )
    })

    test('an append whose outcome was never known is not booked twice, and does not stop the ledger', async () => {
      const { running } = service()
      const ports = running.service.payments.ports
      const scene = await openScene('a paid read', service())
      const { system } = ports.tenants
      const lost = { ...system.chain.head() }
      const twice = await buyDying(scene, never)
      expect(twice.reply.status).toBe(200)
      // The same group is sent once more, as after a commit that was thought to have failed.
      await system.chain.whenApplied(system.chain.head().height)
      const block = await system.chain.readBlock(lost.height + 1)
      const group = (block?.entries ?? []).flatMap((one) =>
        one?.header.type === 'ledger' ? [one] : [],
      )
      expect(group).toHaveLength(2)
      await system.chain.append(group.map(({ header, body }) => ({ header, body })))
      await system.chain.append([{ header: { type: 'ledger' }, body: group[0]?.body ?? '' }])
      await expectOnce('a paid read', service(), scene)
      expect(system.chain.failure).toBeUndefined()
      replacePayments(service(), new Payments(ports))
      expect((await ask(service(), scene.asked, scene.header)).text).toBe(twice.reply.text)
    })

    test('an answer that was charged and is kept no longer is never sold again: 410, and the receipt stays', async () => {
      const { ports } = service().running.service.payments
      const scene = await openScene('a paid read', service())
      const sold = await send(service(), scene)
      expect(sold.status).toBe(200)
      const { chain } = ports.tenants.system
      await chain.whenApplied(chain.head().height)
      await dropReplies(ports.database, { nowMs: Date.now() + 25 * 3_600_000, bytesMax: 0 })
      const gone = await send(service(), scene)
      expect(gone.status).toBe(410)
      expect(gone.body.code).toBe('PAYMENT_REPLY_GONE')
      await readReceipt(service(), sold)
      await expectOnce('a paid read', service(), scene)
    })

    test('an answer that was kept and not charged for is not forgotten before: the retry gets it', async () => {
      const { ports } = service().running.service.payments
      const scene = await openScene('a paid read', service())
      const whole = await buyDying(await openScene('a paid read', service()), never)
      const append = whole.steps.indexOf('append')
      const died = await buyDying(scene, { step: append, when: 'before' })
      expect(died.reply.status).toBeGreaterThan(399)
      await dropReplies(ports.database, { nowMs: Date.now() + 25 * 3_600_000, bytesMax: 0 })
      expect((await send(service(), scene)).status).toBe(200)
      await expectOnce('a paid read', service(), scene)
    })

    test('the audit finds every table as the entries make it after all these deaths', async () => {
      const report = await service().whileStopped((config) => audit(config, () => undefined))
      expect(report.difference).toBeUndefined()
      expect(report.equal).toBe(true)
    }, 180_000)

    async function buyDying(
      scene: Scene,
      death: Death,
    ): Promise<{ reply: TestReply; steps: readonly string[] }> {
      const { ports } = service().running.service.payments
      const dying = makeDyingPayments(ports, death)
      replacePayments(service(), dying.payments)
      try {
        const reply = await send(service(), scene)
        return { reply, steps: dying.steps() }
      } finally {
        replacePayments(service(), new Payments(ports))
      }
    }

    /** A new process reconciles first at every other death; then the client tries again. */
    async function recover(scene: Scene, { step, ports }: { step: number; ports: PaymentPorts }) {
      const fresh = new Payments(ports)
      replacePayments(service(), fresh)
      if (step % 2 === 1) {
        const claims = await listOpenClaims(ports.database, {
          olderThanMs: Date.now() + 60_000,
          after,
          limit: 100,
        })
        for (const claim of claims) await fresh.reconcile(claim)
      }
      const retries = await Promise.all([1, 2, 3].map(() => send(service(), scene)))
      for (const reply of retries) {
        expect(reply.status, `after step ${step}: ${reply.text}`).toBeLessThan(300)
        expect(reply.text).toBe(retries[0]?.text)
      }
    }
  },
  { devnet: true },
)

const after = { at: -1n, id: '' }
const never: Death = { step: stepsMax, when: 'before' }

async function openScene(kind: Kind, service: TestService): Promise<Scene> {
  if (kind === 'a read paid by a transfer') {
    const market = await openMarket(service, { price: { per_row: '1000' } })
    const payer = await createFundedPayer(service)
    const asked = list({ root: market.root, limit: 3 })
    return { market, buyer: payer, asked, header: await pay(service, payer, asked) }
  }
  const buyer = await createFundedBuyer(service)
  if (kind === 'a read paid by a key') {
    const market = await openMarket(service, { price: { per_row: '1000' } })
    const deposited = await buyer.buy(service, depositing(buyer.address, '3000'))
    expect(deposited.status, deposited.text).toBe(200)
    const granted = await askSigned(service, makeTestWallet(buyer.account), {
      ...{ method: 'POST', path: `/api/apps/${market.appId}/authorizations` },
      body: { grantee: 'an agent', spend_limit: '3000' },
    })
    const header = { 'x-user-key': granted.body.user_key, 'idempotency-key': 'once' }
    return { market, buyer, asked: list({ root: market.root, limit: 3 }), header }
  }
  if (kind === "a deposit to another's wallet") {
    const market = await openMarket(service, {})
    const asked = depositing(makeBuyer().address, '3000')
    const header = await buyer.payV2(await quote(service, asked))
    return { market, buyer, asked, header }
  }
  if (kind !== 'a paid write') {
    const market = await openMarket(service, { price: { per_row: '1000' } })
    const asked = list({ root: market.root, limit: 3 })
    const header = await buyer.payV2(await quote(service, asked))
    return { market, buyer, asked: kind === 'a deposit' ? makeDeposit(header) : asked, header }
  }
  const market = await openMarket(service, { records: [] })
  await setPrices(service, market, [{ operation: 'write', model: 'per_record', amount: '1000' }])
  // The records have no keys, so that a second write would be seen as further records.
  const body = JSON.stringify({ root: market.root, data: [{ n: 1 }, { n: 2 }, { n: 3 }] })
  const asked = { method: 'POST', path: '/store', raw: body, headers: market.headers }
  const header = await buyer.payV2(await quote(service, asked))
  return { market, buyer, asked, header }
}

function makeDeposit(header: PaymentHeader): Asked {
  const text = Buffer.from(header['payment-signature'] ?? '', 'base64').toString()
  const paymentPayload = JSON.parse(text)
  const body = { x402Version: 2, paymentPayload, paymentRequirements: paymentPayload.accepted }
  return { method: 'POST', path: '/api/payments/settle', raw: JSON.stringify(body) }
}

function send(service: TestService, { asked, header }: Scene): Promise<TestReply> {
  return ask(service, asked, asked.path === '/api/payments/settle' ? {} : header)
}

async function expectOnce(kind: Kind, service: TestService, scene: Scene): Promise<void> {
  const { market, buyer } = scene
  expect(await readChainBalance(service, buyer.address)).toBe(100_000_000n - 3000n)
  const isDeposit = kind.startsWith('a deposit')
  expect(await readBalance(service, buyer.address)).toBe(kind === 'a deposit' ? 3000n : 0n)
  expect(await readEarnings(service, market)).toBe(isDeposit ? 0n : 2400n)
  const [, address] = /^\/api\/wallets\/(0x[0-9a-f]+)\/deposit$/.exec(scene.asked.path) ?? []
  if (address !== undefined) expect(await readBalance(service, address)).toBe(3000n)
  await expectBalanced(service)
  if (kind !== 'a paid write') return
  // The 202 came before the tables show the record.
  const { chain } = await service.running.service.tenants.load(market.appId)
  await chain.whenApplied(chain.head().height)
  const { body } = await service.request('POST', '/list', {
    headers: market.headers,
    body: { root: market.root },
  })
  expect(body.records.map(({ n }: Json) => n)).toEqual([1, 2, 3])
}
