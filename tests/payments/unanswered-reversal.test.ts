import { expect, test, vi } from 'vitest'
import { requirePresent } from '../../packages/server/src/base/assert.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import { readTransactionTime } from '../../packages/server/src/x402/evm-chain.ts'
import { openRpc } from '../../packages/server/src/x402/rpc.ts'
import { ask, list, makeBuyer, quote, readBalance } from '../support/buyer.ts'
import { expectBalanced, openMarket } from '../support/market.ts'
import { connectDevnet, createFundedPayer } from '../support/payer.ts'
import { withService } from '../support/per-engine.ts'
import type { TestService } from '../support/service.ts'
import {
  awaitReversal,
  expectAuditEqual,
  passEnd,
  readReversal,
  readTakenBack,
  takeBack,
  watchUntil,
} from './reorganize.ts'

/** The time-out is for a slow day: the test waits for an audit and many blocks. */
vi.setConfig({ testTimeout: 240_000 })

const guarantee =
  'P12: a purchase that was not answered is not sold any more once its chain took its money back, and nothing of it is lost'

// Each has a service of its own: its chain is far ahead of the time in the end.
for (const isRestored of [false, true])
  withService(
    (service) => {
      test(
        isRestored ? `${guarantee}; also where the database was restored meanwhile` : guarantee,
        async () => {
          const { database, world } = service()
          const { root } = await openMarket(service(), { price: { per_row: '1000' } })
          const buyer = makeBuyer()
          const payer = await createFundedPayer(service(), 5_000n, buyer.account)
          const other = await payer.sign({ to: `0x${'9'.repeat(40)}`, value: 5_000n })
          const chain = connectDevnet(service())
          const since = await chain.getBlockNumber({ cacheTime: 0 })
          const asked = list({ root, limit: 5 })
          const paying = await buyer.payV2(await quote(service(), asked))
          world.atFailpoints((point) => {
            if (point === 'payment.settled') throw new Error(`died at ${point}`)
          })
          expect((await ask(service(), asked, paying)).status).toBe(500)
          world.atFailpoints(undefined)
          // Reconciliation finds what the request left.
          world.advance(11_000)
          const held = await watchUntil(service(), async () => {
            world.passInterval(5_000)
            const [claim] = await database.query<{ id: string; state: string }>(
              sql`SELECT id, state FROM operations.claim WHERE settled_by IS NOT NULL ORDER BY created_at_ms DESC LIMIT 1`,
            )
            return claim?.state === 'held' && claim
          })
          if (isRestored) rememberRestore(service())
          await takeBack(service(), since)
          await other.send()
          await chain.mine({ blocks: 1 })
          // Long before the payment ends.
          await watchUntil(
            service(),
            async () => (await readTakenBack(service(), held.id)) === null,
            40,
          )
          const again = await ask(service(), asked, paying)
          expect(again.status, again.text).toBe(402)
          expect(await readBalance(service(), buyer.address)).toBe(0n)
          await chain.setAutomine(true)
          await passEnd(service())
          await awaitReversal(service(), held.id)
          expect(await readReversal(service(), held.id)).toMatchObject({ moved: '5000', lost: '0' })
          expect(await readBalance(service(), buyer.address)).toBe(0n)
          await expectBalanced(service())
          await expectAuditEqual(service())
        },
      )
    },
    { devnet: true },
  )

/**
 * Makes the service one whose database was restored after all that has happened; a restart would do so too, but a devnet
 * takes no blocks back from before its own.
 */
function rememberRestore({ running, world }: TestService): void {
  const { devnet, service } = running
  const rpc = openRpc({ url: requirePresent(devnet, 'a devnet').rpcUrl, world })
  const readTime = (transaction: string) => readTransactionTime(rpc, transaction)
  const restoredAt = BigInt(Math.ceil(world.now() / 1000)) + 1_000n
  Object.assign(requirePresent(service.payments.ports.methods[0], 'a network'), {
    ...{ restoredAt, readTime },
  })
}
