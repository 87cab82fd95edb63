import { expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { Payments } from '../../packages/server/src/services/payments/payments.ts'
import { type Asked, ask, list, type PaymentHeader } from '../support/buyer.ts'
import { expectBalanced, openMarket, readEarnings, setPrices } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import { claimAll, makeChannelBuyer, readChannels } from './channel-buyer.ts'
import { type Death, makeDyingPayments, replacePayments } from './dying-payments.ts'

const stepsMax = 60

withService(
  (service) => {
    /** Asks a process that dies at this step, and then, as often as it takes, one that lives. */
    const askDying = async (asked: Asked, header: PaymentHeader, death: Death) => {
      const { ports } = service().running.service.payments
      const dying = makeDyingPayments(ports, death)
      replacePayments(service(), dying.payments)
      const first = await ask(service(), asked, header)
      replacePayments(service(), new Payments(ports))
      const again = await ask(service(), asked, header)
      return { first, again, steps: dying.steps() }
    }

    test.each(['before', 'after'] as const)(
      'a voucher survives a death %s each of its steps: the retry is answered and charged once',
      async (when) => {
        const market = await openMarket(service(), { price: { per_row: '100' } })
        const buyer = await makeChannelBuyer(service())
        await buyer.list({ root: market.root, limit: 1 })
        let charged = 100n
        for (let step = 0; ; step++) {
          expect(step).toBeLessThan(stepsMax)
          const asked = list({ root: market.root, limit: 2 })
          const header = await buyer.sign(asked)
          const { again, steps } = await askDying(asked, header, { step, when })
          const at = `${step}: ${steps.join(', ')}`
          expect(again.status, `${at} ${again.text}`).toBe(200)
          charged += 200n
          const [channel] = await readChannels(service(), buyer.address)
          expect(BigInt(channel?.charged ?? 0), at).toBe(charged)
          // The client learns what the lost answers cost.
          const next = await buyer.list({ root: market.root, limit: 1 })
          expect(next.status, next.text).toBe(200)
          charged += 100n
          if (steps.length <= step) break
        }
        expect(await readEarnings(service(), market)).toBe((charged * 8n) / 10n)
        await expectBalanced(service())
      },
    )

    test('a first deposit survives a death after each of its steps, and is made once', async () => {
      const market = await openMarket(service(), { price: { per_row: '100' } })
      for (let step = 0; ; step++) {
        const buyer = await makeChannelBuyer(service())
        const asked = list({ root: market.root, limit: 2 })
        const header = await buyer.sign(asked)
        const { again, steps } = await askDying(asked, header, { step, when: 'after' })
        expect(again.status, `${step}: ${steps.join(', ')} ${again.text}`).toBe(200)
        const [channel] = await readChannels(service(), buyer.address)
        expect(channel).toMatchObject({ charged: '200', balance: '1000000' })
        if (steps.length <= step) break
      }
      await claimAll(service())
      await expectBalanced(service())
    })

    test('a write that a death has cut off goes on, although its payer takes the channel’s money back meanwhile', async () => {
      const market = await openMarket(service(), { records: [] })
      await setPrices(service(), market, [
        { operation: 'write', model: 'per_record', amount: '1000' },
      ])
      const { headers, root } = market
      const body = { root, data: [{ n: 1 }] }
      const asked: Asked = {
        ...{ method: 'POST', path: '/store', headers, raw: JSON.stringify(body) },
      }
      let cut = 0
      for (let step = 0; ; step++) {
        const buyer = await makeChannelBuyer(service())
        expect((await buyer.post('/store', body, headers)).status).toBe(202)
        const [{ id, config } = { id: '', config: '' }] = await readChannels(
          service(),
          buyer.address,
        )
        const header = await buyer.sign(asked)
        const { ports } = service().running.service.payments
        const dying = makeDyingPayments(ports, { step, when: 'after' })
        replacePayments(service(), dying.payments)
        await ask(service(), asked, header)
        replacePayments(service(), new Payments(ports))
        const open = await service().database.query(sql`SELECT id FROM operations.claim
          WHERE identity LIKE ${`%channel:${id}/1000.%`} AND state IN ('held', 'owed')`)
        if (open.length > 0) {
          cut += 1
          expect(await buyer.call('initiateWithdraw', [JSON.parse(config), 1_000_000n])).toBe(
            'success',
          )
          await claimAll(service())
          const again = await ask(service(), asked, header)
          expect(again.status, `${step}: ${dying.steps().join(', ')} ${again.text}`).toBe(202)
          expect(await readChannels(service(), buyer.address)).toMatchObject([{ charged: '2000' }])
        }
        if (dying.steps().length <= step) break
      }
      expect(cut).toBeGreaterThan(0)
      await expectBalanced(service())
    })

    test('audit finds everything equal after all of it', async () => {
      const report = await service().whileStopped((config) => audit(config, () => undefined))
      expect(report).toMatchObject({ equal: true })
    })
  },
  { devnet: true },
)
