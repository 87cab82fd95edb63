import { expect, test } from 'vitest'
import { requirePresent } from '../../packages/server/src/base/assert.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import {
  listOpenClaims,
  readBacklog,
} from '../../packages/server/src/services/payments/claims/claim-lists.ts'
import { findClaim } from '../../packages/server/src/services/payments/claims/claim-store.ts'
import { takeRareLooks } from '../../packages/server/src/services/payments/claims/rare-looks.ts'
import { Payments } from '../../packages/server/src/services/payments/payments.ts'
import { ask, createFundedBuyer, list, quote, readBalance } from '../support/buyer.ts'
import { openMarket } from '../support/market.ts'
import { handIn } from '../support/payer.ts'
import { withService } from '../support/per-engine.ts'
import { replacePayments } from './dying-payments.ts'
import { replaceFacilitators } from './false-facilitators.ts'
import { expectAuditEqual } from './reorganize.ts'

withService(
  (service) => {
    /** Has the network say that each payment was used where nobody can look at it, until it is seen. */
    const hide = () => {
      const { ports } = service().running.service.payments
      const counted = { isSeen: false, looks: 0 }
      const transaction = `0x${'8'.repeat(64)}`
      const hidden = {
        state: 'pending',
        reason: 'hidden',
        transaction,
        usedIn: transaction,
      } as const
      const blind = replaceFacilitators(ports, (real) => ({
        settle: async (...given) => (counted.isSeen ? real.settle(...given) : hidden),
        lookup: async (...given) => {
          counted.looks += 1
          return counted.isSeen ? real.lookup(...given) : hidden
        },
      }))
      const payments = new Payments(blind)
      replacePayments(service(), payments)
      return { ports, payments, counted }
    }

    /** The open claims that a round looks at, those of rare looks apart. */
    const listOpen = () => {
      const { database, world } = service().running.service.payments.ports
      const page = { olderThanMs: world.now(), after: { at: -1n, id: '' }, limit: 100 }
      return listOpenClaims(database, page)
    }

    const readNextLook = async (id: string) => {
      const [row] = await service().database.query<{ next_look_ms: bigint | null }>(
        sql`SELECT next_look_ms FROM operations.claim WHERE id = ${id}`,
      )
      return row?.next_look_ms
    }

    test('before its end, too, it leaves the round of all others; who brings it is looked at at once, and a clock that was ahead puts it away for no longer', async () => {
      const market = await openMarket(service(), { price: { per_row: '100' } })
      let { ports, payments, counted } = hide()
      const buyer = await createFundedBuyer(service(), 500n)
      const wanted = list({ root: market.root, limit: 3 })
      const paid = { ...(await buyer.payV2(await quote(service(), wanted))), 'x-balance': 'off' }
      const { body } = await ask(service(), wanted, paid)
      expect(body.code).toBe('PAYMENT_PENDING')
      const id = body.details.payment_id
      const { database } = ports
      const { now, advance } = service().world
      advance(1)
      const open = (await readBacklog(database)).open
      const [claim] = (await listOpen()).filter((one) => one.id === id)
      await payments.reconcile(requirePresent(claim, 'the claim'))
      expect((await listOpen()).map((one) => one.id)).not.toContain(id)
      expect((await readBacklog(database)).open).toBe(open - 1)
      const next = Number(await readNextLook(id))
      expect(next).toBeGreaterThan(now())
      expect(next).toBeLessThanOrEqual(now() + 60_000)
      expect(await takeRareLooks(database, next - 1)).toEqual([])
      await expectAuditEqual(service())
      const taken = await takeRareLooks(service().database, next)
      expect(taken.map((one) => one.id)).toEqual([id])
      expect(taken[0]?.state).toBe('claimed')
      ;({ ports, payments, counted } = hide())
      expect((await ask(service(), wanted, paid)).body.code).toBe('PAYMENT_PENDING')
      expect(await readNextLook(id)).toBeNull()
      const day = 24 * 3_600_000
      const takeAhead = (ms: number) =>
        ports.database.transaction(async (tx) => {
          const nowMs = now()
          await tx.execute(
            sql`UPDATE operations.claim SET next_look_ms = ${nowMs + ms}::int8 WHERE id = ${id}`,
          )
          return (await takeRareLooks(tx, nowMs)).map((one) => one.id)
        })
      expect(await takeAhead(2 * day)).toEqual([])
      expect(await takeAhead(2 * day + 1)).toEqual([id])
      counted.isSeen = true
      const bought = await ask(service(), wanted, paid)
      expect(bought.status, bought.text).toBe(200)
      expect(await readNextLook(id)).toBeNull()
      await expectAuditEqual(service())
    })

    test('money that somebody brought to us where nobody can look at it is never over, is looked at ever more rarely, and counts once it is seen', async () => {
      const market = await openMarket(service(), { price: { per_row: '100' } })
      const { ports, payments, counted } = hide()
      const buyer = await createFundedBuyer(service(), 500n)
      const wanted = list({ root: market.root, limit: 3 })
      const paid = { ...(await buyer.payV2(await quote(service(), wanted))), 'x-balance': 'off' }
      const { body } = await ask(service(), wanted, paid)
      expect(body.code).toBe('PAYMENT_PENDING')
      const id = body.details.payment_id
      const reconcileFor = async (ms: number) => {
        counted.looks = 0
        for (let n = 0; n < 100; n++) {
          service().world.advance(ms / 100)
          const rare = await takeRareLooks(ports.database, service().world.now())
          for (const claim of (await listOpen()).concat(rare)) await payments.reconcile(claim)
        }
        return counted.looks
      }
      await service().database.execute(sql`
        UPDATE operations.claim SET valid_before = ${Math.floor(service().world.now() / 1000)} WHERE id = ${id}`)
      const hour = 3_600_000
      expect(await reconcileFor(hour)).toBeGreaterThan(20)
      const day = await reconcileFor(24 * hour)
      expect(day).toBeGreaterThan(20)
      expect(await reconcileFor(24 * hour)).toBeLessThan(day / 2)
      expect((await findClaim(ports.database, { id }))?.state).toBe('claimed')
      await handIn(service(), paid)
      counted.isSeen = true
      await reconcileFor(10 * hour)
      expect((await findClaim(ports.database, { id }))?.state).toBe('deposited')
      expect(await readBalance(service(), buyer.address)).toBe(300n)
      service().world.advance(-59 * hour)
    })
  },
  { devnet: true },
)
