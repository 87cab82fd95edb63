import type { OperationId } from '@tollbase/contract/contract'
import { tollbase } from '@tollbase/contract/contract'
import { beforeAll, describe, expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { expectBalanced } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import { examples } from './examples.ts'
import { openScene, type Scene, send } from './scene.ts'

/** Withdrawals, payouts, refunds, deposits without a payment of the request's own, migrations and erasures. */
const resumed = [
  'withdrawFromWallet',
  'withdrawFromApplication',
  'withdrawFromPlatform',
  'requestPayout',
  'cancelPayout',
  'refundSale',
  'settlePayment',
  'migrateCollection',
  'eraseSubject',
] as const satisfies readonly OperationId[]

describe('a request with an Idempotency-Key that was cut off after it wrote', () =>
  withService(
    (service) => {
      let scene: Scene
      beforeAll(async () => {
        scene = await openScene(service())
      })

      const countMoves = async () => {
        const [row] = await service().database.query<{ transfers: number; postings: number }>(sql`
          SELECT (SELECT count(*)::int4 FROM operations.outgoing_transfer) AS transfers,
            (SELECT count(*)::int4 FROM system.posting WHERE kind IN ('withdrawal', 'payout', 'refund', 'deposit')) AS postings`)
        return row
      }

      test.each(resumed)('%s continues, and moves nothing twice', async (operation) => {
        const example = await examples[operation]?.(scene)
        if (example === undefined) throw new Error(operation)
        service().world.advance(1)
        const key = { 'idempotency-key': `resumed-${operation}` }
        const first = await send(scene, example, key)
        expect(first.status, first.text).toBeLessThan(300)
        const moved = await countMoves()
        await service().database.execute(sql`
          UPDATE operations.named_request SET answer = NULL, holder = 'a process that is gone'
          WHERE expires_at_ms = (SELECT max(expires_at_ms) FROM operations.named_request)`)
        const again = await send(scene, example, key)
        expect([again.status, again.body.code]).toEqual([first.status, undefined])
        expect(again.headers.get('idempotent-replayed')).toBeNull()
        for (const id of ['withdrawal_id', 'payout_id', 'refund_id', 'payment_id', 'amount'])
          expect(again.body[id], id).toEqual(first.body[id])
        expect(await countMoves()).toEqual(moved)
        await expectBalanced(service())
      })

      test('every withdrawal of the contract is among them', () => {
        const withdrawals = Object.keys(tollbase).filter((name) => name.startsWith('withdraw'))
        expect(resumed).toEqual(expect.arrayContaining(withdrawals))
        expect(withdrawals).toHaveLength(3)
      })
    },
    { devnet: true },
  ))
