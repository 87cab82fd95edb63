import { expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import type { PaymentMethod } from '../../packages/server/src/services/payments/payment-ports.ts'
import { Payments } from '../../packages/server/src/services/payments/payments.ts'
import type { Facilitator } from '../../packages/server/src/x402/facilitator.ts'
import { createSeller } from '../pricing/support.ts'
import { ask, list } from '../support/buyer.ts'
import { withService } from '../support/per-engine.ts'
import { perRow } from '../support/price-rules.ts'
import { replacePayments } from './dying-payments.ts'
import { makeUptoBuyer } from './upto-buyer.ts'

/** A method by which no permit is sent: its payer has others under way. */
function makeBusy({ upto, ...method }: PaymentMethod): PaymentMethod {
  if (upto === undefined) return method
  const reason = 'payer_has_others_under_way'
  const settle: Facilitator['settle'] = async () => ({ state: 'pending', reason, isUnsent: true })
  return { ...method, upto: { ...upto, settle } }
}

withService(
  (service) => {
    /** Makes so many more claims that wait for their money, like the one that is there, with answers of 8 MiB. */
    const addClaims = async (count: number) => {
      const { database } = service()
      await database.execute(sql`
        INSERT INTO operations.claim (identity, id, request_hash, app, operation, amount, cap, quote_id, terms, valid_before, payment, state, created_at_ms)
        SELECT identity || n, 'more' || n, request_hash, app, operation, 0, 0, quote_id, terms, valid_before, payment, state, created_at_ms
        FROM operations.claim, generate_series(1, ${count}::int4) AS n WHERE state = 'ready'`)
      await database.execute(sql`
        INSERT INTO operations.kept_reply (payment_id, status, body, sale, expires_at_ms)
        SELECT 'more' || n, 200, convert_to(repeat('x', 8 * 1024 * 1024), 'UTF8'), '', ${service().world.now()}::int8
        FROM generate_series(1, ${count}::int4) AS n`)
    }
    const dropClaims = async () => {
      const { database } = service()
      await database.execute(sql`DELETE FROM operations.kept_reply WHERE payment_id LIKE 'more%'`)
      await database.execute(sql`DELETE FROM operations.claim WHERE id LIKE 'more%'`)
    }

    test('answers that wait for their money take a bounded room for each payer, who is told what to do, and others still buy', async () => {
      const app = await createSeller(service(), {})
      const rules = [{ ...perRow('100'), tiers: [{ above: 4, amount: '10' }] }]
      expect((await app.call('PUT', '/pricing', { rules })).status).toBe(200)
      const root = `${app.appId}::sales`
      const asked = list({ root, limit: 3 })
      const buyer = await makeUptoBuyer(service())
      const { ports } = service().running.service.payments
      const [first, second] = [await buyer.sign(asked), await buyer.sign(asked)]
      replacePayments(service(), new Payments({ ...ports, methods: ports.methods.map(makeBusy) }))
      expect((await ask(service(), asked, first)).body.details).toHaveProperty('payment_id')
      replacePayments(service(), new Payments(ports))
      await addClaims(8)
      const refused = await ask(service(), asked, second)
      expect([refused.status, refused.body.code], refused.text).toEqual([503, 'PAYMENT_PENDING'])
      expect(refused.body.error).toContain('64 MiB')
      expect(refused.body.details.payment_id).toBeUndefined()
      const other = await makeUptoBuyer(service())
      expect((await other.list({ root, limit: 3 })).status).toBe(200)
      await dropClaims()
      expect((await ask(service(), asked, second)).status).toBe(200)
      expect((await ask(service(), asked, first)).status).toBe(200)
    })
  },
  { devnet: true },
)
