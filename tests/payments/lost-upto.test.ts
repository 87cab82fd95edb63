import { expect, test } from 'vitest'
import { requirePresent } from '../../packages/server/src/base/assert.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import { findClaim } from '../../packages/server/src/services/payments/claims/claim-store.ts'
import type { PaymentMethod } from '../../packages/server/src/services/payments/payment-ports.ts'
import { Payments } from '../../packages/server/src/services/payments/payments.ts'
import type { Facilitator } from '../../packages/server/src/x402/facilitator.ts'
import { ask, list } from '../support/buyer.ts'
import { expectBalanced, openMarket, readChainBalance } from '../support/market.ts'
import { connectDevnet } from '../support/payer.ts'
import { withService } from '../support/per-engine.ts'
import { replacePayments } from './dying-payments.ts'
import { makeUptoBuyer } from './upto-buyer.ts'

/** Longer than the permit is good for, with the margins of clocks. */
const lateMs = 7_200_000

/** A method of which nobody knows what it sent. */
function makeSilent({ upto, ...method }: PaymentMethod): PaymentMethod {
  if (upto === undefined) return method
  const settle: Facilitator['settle'] = async () => ({ state: 'pending', reason: 'not_sent' })
  return { ...method, upto: { ...upto, settle } }
}

withService(
  (service) => {
    test('a permit whose transaction is signed and never gets into a block is over at its end, and waits no longer', async () => {
      const market = await openMarket(service(), { price: { per_row: '100' } })
      const buyer = await makeUptoBuyer(service())
      const funds = await readChainBalance(service(), buyer.address)
      const asked = list({ root: market.root, limit: 9 })
      const header = await buyer.sign(asked)
      const { ports } = service().running.service.payments
      replacePayments(service(), new Payments({ ...ports, methods: ports.methods.map(makeSilent) }))
      expect((await ask(service(), asked, header)).status).toBe(503)
      replacePayments(service(), new Payments(ports))
      const { database, world } = service()
      const { payments } = service().running.service
      const [row] = await database.query<{ id: string }>(
        sql`SELECT id FROM operations.claim WHERE split_part(identity, '/', 3) = ${buyer.address}`,
      )
      const claim = requirePresent(await findClaim(database, { id: row?.id ?? '' }), 'the claim')
      const [network] = claim.identity.split('/')
      const address = ports.methods.find((one) => one.network.id === network)?.upto?.address
      // Its key is out of gas, or a nonce before it is missing.
      await database.execute(sql`
        INSERT INTO operations.transaction_journal (id, network, signer, nonce, raw, hash, state, created_at_ms)
        VALUES (${claim.id}, ${network ?? ''}, ${address ?? ''}, 1000000, '\\x00', ${`0x${'ab'.repeat(32)}`}, 'signed',
          ${world.now() + lateMs}::int8)`)
      const readState = async () => (await findClaim(database, { id: claim.id }))?.state
      await payments.reconcile(claim)
      expect(await readState()).toBe('claimed')
      try {
        world.advance(lateMs)
        await payments.reconcile(claim)
        // The chain itself is not past its end: a block may still take what was signed.
        expect(await readState()).toBe('claimed')
        await connectDevnet(service()).increaseTime({ seconds: lateMs / 1_000 })
        await connectDevnet(service()).mine({ blocks: 1 })
        await payments.reconcile(claim)
        expect(await readState()).toBe('void')
      } finally {
        world.advance(-lateMs)
      }
      expect(await readChainBalance(service(), buyer.address)).toBe(funds)
      await expectBalanced(service())
    })
  },
  { devnet: true },
)
