import { createData } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { expect, test } from 'vitest'

const dayMs = 24 * 3600 * 1000

withService(
  (service) => {
    test('the cost is that of the versions between the free days and the retention, rounded up', async () => {
      const app = await createData(service())
      const record = (id: string) => ({ id, pad: 'x'.repeat(1_000) })
      const size = JSON.stringify(record('a')).length
      await app.store('c', [record('a'), record('b')])
      service().world.advance(20 * dayMs)
      await app.store('c', [record('c')])
      service().world.advance(31 * dayMs)
      await app.store('c', [record('d')])
      const ask = async (days?: string) => {
        const query = days === undefined ? '' : `?retention_days=${days}`
        const reply = await app.call('GET', `/collections/c/retention/cost${query}`)
        expect(reply.status, reply.text).toBe(200)
        return reply.body
      }
      const cost = (bytes: number) => Math.ceil((bytes * 5_000_000_000) / 2 ** 30)
      for (const [days, records, tier] of [
        [undefined, 3, 'permanent'],
        ['forever', 3, 'permanent'],
        ['60', 3, 'extended'],
        ['40', 1, 'extended'],
        ['30', 0, 'free'],
        ['0', 0, 'free'],
      ] as const) {
        const told = await ask(days)
        expect(told, days).toMatchObject({
          tier,
          stored_bytes: 4 * size,
          billable_bytes: records * size,
          price_per_gb_month: '5000000000',
          monthly_cost: String(cost(records * size)),
          monthly_cost_usd: cost(records * size) / 1e6,
        })
      }
      await app.call('POST', '/collections/c/retention', { retention_days: 40 })
      expect(await ask()).toMatchObject({ retention_days: 40, billable_bytes: size })
      for (const days of ['36501', '-1', 'never', '1.5'])
        expect(
          (await app.call('GET', `/collections/c/retention/cost?retention_days=${days}`)).status,
        ).toBe(400)
    })
  },
  { config: { retentionPrice: 5_000_000_000n } },
)
