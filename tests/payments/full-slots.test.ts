import { limits } from '@tollbase/contract/limits'
import { expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { ask, createFundedBuyer, list, quote, readBalance } from '../support/buyer.ts'
import { expectBalanced, openMarket, readEarnings } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'

withService(
  (service) => {
    test('P1: a paid list that proves slow while no slot is free costs nothing yet, and the same payment gets it later', async () => {
      const market = await openMarket(service(), { price: { per_row: '100' } })
      const buyer = await createFundedBuyer(service())
      const asked = list({ root: market.root, limit: 3 })
      const header = await buyer.payV2(await quote(service(), asked))
      const { queryRunner, tenants } = service().running.service
      const { schema, data } = await tenants.load(market.appId)
      const table = data.catalog.byName.get(market.collection)?.table ?? ''
      let free: () => void = () => undefined
      const held = new Promise<void>((resolve) => {
        free = resolve
      })
      const most = limits.queriesAtOnceMax - 1 + limits.queriesWaitingOfApplicationMax
      const turn = { application: market.appId, rank: 'paid' } as const
      const others = Array.from({ length: most }, (_, at) =>
        queryRunner.semaphore.run({ ...turn, caller: `${at}` }, () => held).catch(() => undefined),
      )
      const refused = await service().database.transaction(async (tx) => {
        await tx.execute(sql`LOCK TABLE ${sql.id(schema, table)} IN ACCESS EXCLUSIVE MODE`)
        return ask(service(), asked, header)
      })
      free()
      await Promise.all(others)
      // 503 where, on a slow day, the others have waited too long before it came.
      expect([429, 503], refused.text).toContain(refused.status)
      expect(refused.headers.get('retry-after')).toBe('2')
      expect(refused.body.details).toMatchObject({ charged: '0' })
      expect(await readBalance(service(), buyer.address)).toBe(300n)

      const reply = await ask(service(), asked, header)
      expect(reply.status, reply.text).toBe(200)
      expect(reply.body.records).toHaveLength(3)
      expect(await readBalance(service(), buyer.address)).toBe(0n)
      expect(await readEarnings(service(), market)).toBe(240n)
      await expectBalanced(service())
    })
  },
  { devnet: true },
)
