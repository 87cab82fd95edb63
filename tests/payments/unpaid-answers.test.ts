import { limits } from '@tollbase/contract/limits'
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
    /** Makes so many more claims that wait for their money, like the newest one that is there, with answers of 8 MiB. */
    const addClaims = async (count: number, payer?: string) => {
      const { database } = service()
      await database.execute(sql`
        INSERT INTO operations.claim (identity, id, request_hash, app, operation, amount, cap, quote_id, terms, valid_before, payment, state, created_at_ms)
        SELECT coalesce(regexp_replace(identity, '0x[0-9a-f]+/0x', ${payer ?? null} || '/0x'), identity) || n, 'more' || n, request_hash, app, operation, 0, 0, quote_id, terms, valid_before, payment, state, created_at_ms
        FROM (SELECT * FROM operations.claim WHERE state = 'ready' ORDER BY created_at_ms DESC LIMIT 1) AS claim,
          generate_series(1, ${count}::int4) AS n`)
      await database.execute(sql`
        INSERT INTO operations.kept_reply (payment_id, status, body, sale, expires_at_ms)
        SELECT 'more1', 200, convert_to(repeat('x', 8 * 1024 * 1024), 'UTF8'), '', ${service().world.now()}::int8`)
      // The compressed bytes are copied as they are.
      await database.execute(sql`
        INSERT INTO operations.kept_reply (payment_id, status, body, sale, expires_at_ms)
        SELECT 'more' || n, status, body, sale, expires_at_ms
        FROM operations.kept_reply, generate_series(2, ${count}::int4) AS n WHERE payment_id = 'more1'`)
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

    test('answers that wait for the money of a seller shut out neither other sellers, nor a buyer whose quota covers its answer', async () => {
      const open = async () => {
        const app = await createSeller(service(), {})
        const { target, operation } = perRow('100')
        const free = { target, operation, model: 'free_quota', unit: 'row', quantity: 100 }
        const rules = [perRow('100'), { ...free, period: 'month' }]
        expect((await app.call('PUT', '/pricing', { rules })).status).toBe(200)
        return list({ root: `${app.appId}::sales`, limit: 3 })
      }
      const [full, other] = [await open(), await open()]
      const [known, stranger] = [await makeUptoBuyer(service()), await makeUptoBuyer(service())]
      expect((await ask(service(), full, await known.sign(full))).status).toBe(200)
      const { ports } = service().running.service.payments
      replacePayments(service(), new Payments({ ...ports, methods: ports.methods.map(makeBusy) }))
      const waiting = await makeUptoBuyer(service())
      expect((await ask(service(), full, await waiting.sign(full))).status).toBe(503)
      replacePayments(service(), new Payments(ports))
      await addClaims(64, `0x${'7'.repeat(40)}`)
      const refused = await ask(service(), full, await stranger.sign(full))
      expect([refused.status, refused.body.code], refused.text).toEqual([503, 'UNAVAILABLE'])
      const covered = await ask(service(), full, await known.sign(full))
      expect(covered.status, covered.text).toBe(200)
      expect((await ask(service(), other, await stranger.sign(other))).status).toBe(200)
      await dropClaims()
    })

    test('a buyer who has bought before has no answer made for which there is no room, unless a quota covers all of it', async () => {
      const app = await createSeller(service(), {})
      const { target, operation } = perRow('100')
      const free = { target, operation, model: 'free_quota', unit: 'row', quantity: 2 }
      const rules = [perRow('100'), { ...free, period: 'month' }]
      expect((await app.call('PUT', '/pricing', { rules })).status).toBe(200)
      const read = (limit: number) => list({ root: `${app.appId}::sales`, limit })
      const [known, waiting] = [await makeUptoBuyer(service()), await makeUptoBuyer(service())]
      // The first one pays, and the next ones have a quota of two rows.
      expect((await ask(service(), read(1), await known.sign(read(1)))).status).toBe(200)
      const { payments, tenants } = service().running.service
      const { ports } = payments
      replacePayments(service(), new Payments({ ...ports, methods: ports.methods.map(makeBusy) }))
      expect((await ask(service(), read(3), await waiting.sign(read(3)))).status).toBe(503)
      replacePayments(service(), new Payments(ports))
      await addClaims(64, `0x${'8'.repeat(40)}`)
      const permit = await known.sign(read(3))
      const { schema, data } = await tenants.load(app.appId)
      const { table = '' } = data.catalog.byName.get('sales') ?? {}
      await service().database.transaction(async (tx) => {
        // No answer can be made.
        await tx.execute(sql`LOCK TABLE ${sql.id(schema, table)} IN ACCESS EXCLUSIVE MODE`)
        const refused = await ask(service(), read(3), permit)
        expect([refused.status, refused.body.code], refused.text).toEqual([503, 'UNAVAILABLE'])
      })
      const covered = await ask(service(), read(1), await known.sign(read(1)))
      expect(covered.status, covered.text).toBe(200)
      await dropClaims()
    })

    test('a permit that would keep the room of its answer for longer than ten minutes is refused at prices by use', async () => {
      const app = await createSeller(service(), {})
      const rules = [{ ...perRow('100'), tiers: [{ above: 4, amount: '10' }] }]
      expect((await app.call('PUT', '/pricing', { rules })).status).toBe(200)
      const asked = list({ root: `${app.appId}::sales`, limit: 3 })
      const buyer = await makeUptoBuyer(service())
      const most = limits.directAuthorizationSecondsMax
      const late = await ask(service(), asked, await buyer.sign(asked, most + 60))
      expect(late.status, late.text).toBe(402)
      expect(late.body.error).toContain('valid_too_long (payload.permit2Authorization.deadline')
      expect((await ask(service(), asked, await buyer.sign(asked, most - 60))).status).toBe(200)
    })
  },
  { devnet: true },
)
