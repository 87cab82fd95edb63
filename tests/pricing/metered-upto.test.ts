import { expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { rebuild } from '../../packages/server/src/operator/rebuild.ts'
import { listOpenClaims } from '../../packages/server/src/services/payments/claims/claim-lists.ts'
import { Payments } from '../../packages/server/src/services/payments/payments.ts'
import { makeDyingPayments, replacePayments } from '../payments/dying-payments.ts'
import { makeUptoBuyer } from '../payments/upto-buyer.ts'
import { ask, list, readBalance } from '../support/buyer.ts'
import { expectBalanced, readChainBalance, readEarnings, readReceipt } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import { perRow } from '../support/price-rules.ts'
import { createSeller } from './support.ts'

type Buyer = Awaited<ReturnType<typeof makeUptoBuyer>>

const funds = 20_000_000n
const stepsMax = 40

withService(
  (service) => {
    const target = { collection: 'sales' }
    const seller = async (...rules: object[]) => {
      const app = await createSeller(service(), {})
      const { status, text } = await app.call('PUT', '/pricing', { rules })
      expect(status, text).toBe(200)
      const earned = () => readEarnings(service(), app)
      return { ...app, root: `${app.appId}::sales`, earned }
    }
    const quota = (unit: string, quantity: number) => ({
      ...{ target, operation: 'read', model: 'free_quota', unit, quantity },
    })
    const tiered = { ...perRow('100'), tiers: [{ above: 4, amount: '10' }] }

    /** Reads rows, and gives what the notice and the wallet say that was taken; both are the same. */
    const readBy = async (buyer: Buyer, root: string, limit: number): Promise<number> => {
      const before = await readChainBalance(service(), buyer.address)
      const reply = await buyer.list({ root, limit })
      expect(reply.status, reply.text).toBe(200)
      const taken = before - (await readChainBalance(service(), buyer.address))
      expect(reply.notice).toMatchObject({ success: true, amount: String(taken) })
      expect(await readReceipt(service(), reply)).toMatchObject({
        ...{ amount: String(taken), deposited: String(taken), change: '0' },
      })
      return Number(taken)
    }

    test('rows above a bound cost less, and the true cost is taken from the wallet', async () => {
      const { root, earned } = await seller(tiered)
      const buyer = await makeUptoBuyer(service())
      expect(await readBy(buyer, root, 3)).toBe(300)
      // One row at 100, and two above the bound.
      expect(await readBy(buyer, root, 3)).toBe(120)
      expect(await readBy(buyer, root, 3)).toBe(30)
      expect(await readBy(await makeUptoBuyer(service()), root, 3)).toBe(300)
      expect(await readBalance(service(), buyer.address)).toBe(0n)
      expect(await earned()).toBe(600n)
      await expectBalanced(service())
    })

    test('a quota that covers an answer is used up by it, though nothing is taken', async () => {
      const { root } = await seller(perRow('1000'), quota('row', 4))
      const buyer = await makeUptoBuyer(service())
      expect(await readBy(buyer, root, 3)).toBe(3000)
      expect(await readBy(buyer, root, 3)).toBe(0)
      // One row is left of it.
      expect(await readBy(buyer, root, 3)).toBe(2000)
      expect(await readBy(buyer, root, 1)).toBe(1000)
      await expectBalanced(service())
    })

    test('an answer that a quota covered is given again, for its own request alone', async () => {
      const { root } = await seller(perRow('1000'), quota('row', 4))
      const buyer = await makeUptoBuyer(service())
      await readBy(buyer, root, 1)
      const asked = list({ root, limit: 3 })
      const header = await buyer.sign(asked)
      const replies = await Promise.all([1, 2, 3].map(() => ask(service(), asked, header)))
      expect(replies.map(({ status }) => status)).toEqual([200, 200, 200])
      const other = await ask(service(), list({ root, limit: 2 }), header)
      expect([402, 409]).toContain(other.status)
      // It was used once: one row is left.
      expect(await readBy(buyer, root, 2)).toBe(1000)
      await expectBalanced(service())
    })

    test('many requests at once get no more of a quota than it has, and no tier by what is not paid yet', async () => {
      const { root } = await seller(tiered, quota('row', 10))
      const buyer = await makeUptoBuyer(service())
      expect(await readBy(buyer, root, 3)).toBe(300)
      const replies = await Promise.all([1, 2, 3, 4, 5].map(() => buyer.list({ root, limit: 3 })))
      const charges = replies.map(({ status, text, notice }) => {
        expect(status, text).toBe(200)
        return Number(notice.amount)
      })
      // 15 rows, of which 10 are free; each of the others costs 100 or 10.
      const paid = charges.reduce((sum, one) => sum + one, 0)
      expect(paid).toBeGreaterThanOrEqual(140)
      expect(paid).toBeLessThanOrEqual(500)
      await expectBalanced(service())
    })

    test('a valid time pass makes an answer free', async () => {
      const pass = { target, operation: 'read', model: 'time_pass', hours: 24, amount: '500' }
      const app = await seller(perRow('100'), pass)
      const buyer = await makeUptoBuyer(service())
      const bought = await buyer.post(`/api/apps/${app.appId}/passes`, { target, hours: 24 })
      expect(bought.status, bought.text).toBeLessThan(300)
      expect(bought.notice.amount).toBe('500')
      expect(await readBy(buyer, app.root, 3)).toBe(0)
      expect(await readBy(await makeUptoBuyer(service()), app.root, 3)).toBe(300)
      await expectBalanced(service())
    })

    /** Works while the buyer takes back its allowance whenever its money is about to be taken. */
    const whileItFails = async (buyer: Buyer, work: () => Promise<void>) => {
      const { ports } = service().running.service.payments
      const methods = ports.methods.map(({ upto, ...method }) => ({
        ...method,
        ...(upto && {
          upto: {
            ...upto,
            settle: async (...given: Parameters<typeof upto.settle>) => {
              await buyer.approve(0n)
              return upto.settle(...given)
            },
          },
        }),
      }))
      replacePayments(service(), new Payments({ ...ports, methods }))
      try {
        await work()
      } finally {
        replacePayments(service(), new Payments(ports))
      }
      await buyer.approve(funds)
    }

    test('what its payer makes fail gets no answer, and leads to no cheaper tier', async () => {
      const { root, earned } = await seller(tiered)
      const buyer = await makeUptoBuyer(service())
      await whileItFails(buyer, async () => {
        const reply = await buyer.list({ root, limit: 3 })
        expect(reply.status, reply.text).toBe(402)
        expect(reply.text).not.toContain('"id"')
      })
      expect(await readBy(buyer, root, 3)).toBe(300)
      expect(await earned()).toBe(240n)
      await expectBalanced(service())
    })

    test('what its payer makes fail keeps its part of a quota, as the same permit may still pay for it', async () => {
      const { root } = await seller(perRow('100'), quota('row', 2))
      const buyer = await makeUptoBuyer(service())
      expect(await readBy(buyer, root, 1)).toBe(100)
      const asked = list({ root, limit: 3 })
      const header = await buyer.sign(asked)
      await whileItFails(buyer, async () => {
        const reply = await ask(service(), asked, header)
        expect(reply.status, reply.text).toBe(402)
      })
      // Both free rows are kept for the answer that waits for its money.
      expect(await readBy(buyer, root, 2)).toBe(200)
      const before = await readChainBalance(service(), buyer.address)
      const again = await ask(service(), asked, header)
      expect(again.status, again.text).toBe(200)
      expect(before - (await readChainBalance(service(), buyer.address))).toBe(100n)
      expect(await readBy(buyer, root, 1)).toBe(100)
      await expectBalanced(service())
    })

    test('of many requests at once by a wallet that has the money for one, one more is kept at most', async () => {
      const { root } = await seller({ ...perRow('100'), tiers: [{ above: 1000, amount: '10' }] })
      const buyer = await makeUptoBuyer(service(), 300n)
      const asked = list({ root, limit: 3 })
      const headers = await Promise.all([1, 2, 3, 4, 5, 6].map(() => buyer.sign(asked)))
      const replies = await Promise.all(headers.map((header) => ask(service(), asked, header)))
      const statuses = replies.map(({ status }) => status)
      expect(statuses.filter((status) => status === 200)).toHaveLength(1)
      expect(statuses.every((status) => [200, 402, 503].includes(status))).toBe(true)
      // One that came when the first was paid has promised its money until its permit ends, and nobody counts on that again.
      const open = await service().database.query(sql`
        SELECT id FROM operations.claim WHERE state = 'ready' AND identity LIKE ${`%/${buyer.address}/%`}`)
      expect(open.length).toBeLessThanOrEqual(1)
      await buyer.approve(funds)
      expect(await readBy(buyer, root, 1)).toBe(100)
      await expectBalanced(service())
    })

    test('a seller gives the charge back to the buyer, as of every sale', async () => {
      const app = await seller(tiered)
      const buyer = await makeUptoBuyer(service())
      const reply = await buyer.list({ root: app.root, limit: 3 })
      const id = reply.headers.get('x-payment-id')
      const refund = await app.call('POST', `/sales/${id}/refund`, { amount: '240' })
      expect(refund.status, refund.text).toBeLessThan(300)
      expect(await readBalance(service(), buyer.address)).toBe(240n)
      await expectBalanced(service())
    })

    test.each(['before', 'after'] as const)(
      'a payment survives a death %s each of its steps: the retry is answered, and its cost is taken once',
      async (when) => {
        const { root } = await seller({ ...perRow('100'), tiers: [{ above: 2, amount: '10' }] })
        const buyer = await makeUptoBuyer(service())
        let [taken, rows] = [0n, 0]
        for (let step = 0; ; step++) {
          expect(step).toBeLessThan(stepsMax)
          const asked = list({ root, limit: 1 })
          const header = await buyer.sign(asked)
          const { ports } = service().running.service.payments
          const dying = makeDyingPayments(ports, { step, when })
          replacePayments(service(), dying.payments)
          await ask(service(), asked, header)
          replacePayments(service(), new Payments(ports))
          const again = await ask(service(), asked, header)
          const at = `${step}: ${dying.steps().join(', ')}`
          expect(again.status, `${at} ${again.text}`).toBe(200)
          taken += rows < 2 ? 100n : 10n
          rows += 1
          expect(await readChainBalance(service(), buyer.address), at).toBe(funds - taken)
          if (dying.steps().length <= step) break
        }
        expect(await readBalance(service(), buyer.address)).toBe(0n)
        await expectBalanced(service())
      },
    )

    test.each([
      ['that costs something', [{ ...perRow('100'), tiers: [{ above: 2, amount: '10' }] }]],
      ['that a quota covers', [perRow('100'), quota('row', 1000)]],
    ])(
      'where a payer does not come back after a death at any step, an answer %s is sold once or not at all',
      async (_, rules) => {
        const { root, earned } = await seller(...rules)
        const buyer = await makeUptoBuyer(service())
        await readBy(buyer, root, 1)
        const { ports } = service().running.service.payments
        for (let step = 0; ; step++) {
          expect(step).toBeLessThan(stepsMax)
          const asked = list({ root, limit: 1 })
          const header = await buyer.sign(asked)
          const dying = makeDyingPayments(ports, { step, when: 'after' })
          replacePayments(service(), dying.payments)
          await ask(service(), asked, header)
          const fresh = new Payments(ports)
          replacePayments(service(), fresh)
          const open = { olderThanMs: Date.now() + 60_000, after: { at: -1n, id: '' }, limit: 100 }
          for (const claim of await listOpenClaims(ports.database, open))
            await fresh.reconcile(claim)
          if (dying.steps().length <= step) break
        }
        const taken = funds - (await readChainBalance(service(), buyer.address))
        const { body } = await service().request('GET', `/api/wallets/${buyer.address}`)
        expect(BigInt(body.available) + BigInt(body.pending)).toBe(0n)
        expect(((await earned()) * 10n) / 8n).toBe(taken)
        await expectBalanced(service())
      },
    )

    test('tables made anew from the log are the same, and the audit finds no difference', async () => {
      await service().whileStopped(async (config) => {
        expect((await audit(config, () => undefined)).difference).toBeUndefined()
        expect(await rebuild(config, () => undefined)).toMatchObject({ equal: true })
      })
    })
  },
  { devnet: true },
)
