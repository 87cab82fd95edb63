import { describe, expect, test } from 'vitest'
import { ask, createFundedBuyer, list, makeBuyer, quote } from '../support/buyer.ts'
import { openMarket, store } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import type { TestService } from '../support/service.ts'

/** Reads the values by series, as `name{labels}`. */
async function readMetrics(service: TestService): Promise<Map<string, number>> {
  const { text } = await service.request('GET', '/metrics')
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(
    lines.map((line) => {
      const cut = line.lastIndexOf(' ')
      return [line.slice(0, cut), Number(line.slice(cut + 1))]
    }),
  )
}

describe('metrics', () =>
  withService(
    (service) => {
      test('metrics count what was asked, committed, paid and refused', async () => {
        const before = await readMetrics(service())
        const market = await openMarket(service(), { price: { per_row: '100' } })
        await store(service(), market, [{ id: 'more', n: 1 }])
        const buyer = await createFundedBuyer(service())
        const asked = list({ root: market.root, limit: 2 })
        expect((await buyer.buy(service(), asked)).status).toBe(200)
        const broke = await makeBuyer().payV2(await quote(service(), asked))
        expect((await ask(service(), asked, broke)).status).toBe(402)
        const after = await readMetrics(service())
        const grown = (series: string) => (after.get(series) ?? 0) - (before.get(series) ?? 0)
        expect(grown('tollbase_requests_total{operation="listRecords",status="200"}')).toBe(1)
        expect(grown('tollbase_requests_total{operation="listRecords",status="402"}')).toBe(3)
        expect(grown('tollbase_request_seconds_count{operation="storeRecords"}')).toBe(2)
        expect(grown('tollbase_payments_total{state="claimed"}')).toBe(1)
        expect(grown('tollbase_payments_total{state="delivered"}')).toBe(1)
        expect(grown('tollbase_blocks_total')).toBeGreaterThanOrEqual(4)
        // The metrics count five cities and one more, their collection, the application and its key, a deposit and
        // a sale.
        expect(grown('tollbase_entries_total')).toBeGreaterThanOrEqual(11)
      })

      test('metrics show every part of the service', async () => {
        const market = await openMarket(service())
        await store(service(), market, [{ id: 'x' }])
        const metrics = await readMetrics(service())
        expect(metrics.get('tollbase_applier_lag_entries')).toBe(0)
        expect(metrics.get('tollbase_applier_lag_seconds')).toBe(0)
        expect(metrics.get('tollbase_chains{state="open"}')).toBeGreaterThanOrEqual(2)
        expect(metrics.get('tollbase_chains{state="stopped"}')).toBe(0)
        expect(metrics.get('tollbase_database_up')).toBe(1)
        expect(metrics.get('tollbase_kept_replies_bytes')).toBeGreaterThan(0)
        for (const name of [
          'database_connections{pool="queries",state="busy"}',
          'database_connections{pool="queries",state="idle"}',
          'database_connections{pool="queries",state="waiting"}',
          'database_connections{pool="other",state="busy"}',
          'database_connections{pool="other",state="idle"}',
          'database_connections{pool="other",state="waiting"}',
          'query_answers_bytes',
          'payments_in_flight',
          'payments_open',
          'payments_open_oldest_seconds',
          'transactions_undecided',
          'transactions_undecided_oldest_seconds',
        ])
          expect(metrics.get(`tollbase_${name}`), name).toBeGreaterThanOrEqual(0)
        const gas = [...metrics].find(([name]) => name.startsWith('tollbase_gas_balance{'))
        expect(gas?.[0]).toMatch(/network="eip155:84532"/)
        expect(gas?.[1]).toBeGreaterThan(0)
        expect(metrics.get('nodejs_eventloop_lag_p99_seconds')).toBeDefined()
        expect(metrics.get('process_resident_memory_bytes')).toBeGreaterThan(0)
      })

      test('metrics have no more series for more callers, applications, paths and keys', async () => {
        const size = async () => {
          await service().request('GET', '/nowhere')
          await service().createApp()
          return (await readMetrics(service())).size
        }
        await size()
        const few = await size()
        for (let n = 0; n < 5; n++) {
          const app = await service().createApp()
          await service().request('GET', `/nowhere/${n}`)
          await service().request('GET', `/api/apps/${app.appId}`, { headers: app.headers })
        }
        await service().request('GET', '/api/apps/not-there')
        const many = await readMetrics(service())
        // getApplication with 200 and 404 came: two counters, and its histogram of 12 bounds, infinity, sum and count.
        expect(many.size - few).toBeLessThanOrEqual(17)
        expect([...many.keys()].join('\n')).not.toMatch(/app-\d|nowhere|not-there/)
      })
    },
    { devnet: true },
  ))
