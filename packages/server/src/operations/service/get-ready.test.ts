import { limits } from '@tollbase/contract/limits'
import { withService } from '@tollbase/testing/per-engine'
import type { TestApp, TestService } from '@tollbase/testing/service'
import { describe, expect, test } from 'vitest'
import { type Database, openDatabase } from '../../database/database.ts'
import { sql } from '../../database/sql.ts'

const ready = { database: 'ok', system_chain: 'ok', appliers: 'ok', storage: 'ok', draining: 'no' }

async function expectNotReady(service: TestService, checks: object): Promise<void> {
  const { status, body, headers } = await service.request('GET', '/ready')
  expect(status).toBe(503)
  expect(body).toEqual({ ready: false, checks: { ...ready, ...checks } })
  expect(headers.get('retry-after')).toBe('1')
}

/** Holds the tables of an application while the work runs, so that nothing gets into them. */
async function whileHeld(
  service: TestService,
  app: TestApp,
  work: () => Promise<void>,
): Promise<void> {
  const { schema } = await service.running.service.tenants.load(app.appId)
  await service.database.transaction(async (tx) => {
    await tx.execute(sql`LOCK TABLE ${sql.id(schema, 'watermark')} IN ACCESS EXCLUSIVE MODE`)
    await work()
  })
}

describe('getReady', () =>
  withService((service) => {
    test('the service is ready when all is well', async () => {
      const { status, body } = await service().request('GET', '/ready')
      expect(status).toBe(200)
      expect(body).toEqual({ ready: true, checks: ready })
    })

    test('the service is not ready while an applier is more seconds behind than the limit, and is again when it caught up', async () => {
      const app = await service().createApp()
      const store = () =>
        service().request('POST', '/store', {
          headers: app.headers,
          body: { root: `${app.appId}::notes`, data: [{ id: '1' }] },
        })
      expect((await store()).status).toBe(202)
      const { chain } = await service().running.service.tenants.load(app.appId)
      await chain.whenApplied(chain.head().height)
      await whileHeld(service(), app, async () => {
        expect((await store()).status).toBe(202)
        expect(chain.lag()).toBe(1)
        expect((await service().request('GET', '/ready')).status).toBe(200)
        service().world.advance(limits.readyLagMsMax + 1)
        await expectNotReady(service(), { appliers: 'behind' })
        const metrics = await service().request('GET', '/metrics')
        const seconds = /^tollbase_applier_lag_seconds (\S+)$/m.exec(metrics.text)?.[1]
        expect(Number(seconds) * 1000).toBeGreaterThan(limits.readyLagMsMax)
      })
      await chain.whenApplied(chain.head().height)
      expect((await service().request('GET', '/ready')).body).toEqual({
        ready: true,
        checks: ready,
      })
    })

    test('readiness says nothing of whose applier it is', async () => {
      const { text } = await service().request('GET', '/ready')
      expect(text).not.toMatch(/app-\d/)
    })
  }))

describe('getReady without a part of the service', () => {
  withService((service) => {
    test('readiness goes with the chain of the service itself', async () => {
      // Another process takes over the chain, as after a pause that outlasted the lease.
      await service().database.execute(sql`
        UPDATE operations.chain_lease SET holder = 'another/1/x', epoch = epoch + 1,
          expires_at_ms = ${service().world.now() + 3_600_000} WHERE chain = 'system'`)
      service().world.advance(11_000)
      const { chain } = service().running.service.tenants.system
      for (let tries = 0; chain.failure === undefined && tries < 500; tries++)
        await new Promise((resolve) => setTimeout(resolve, 20))
      await expectNotReady(service(), { system_chain: 'stopped' })
    })
  })

  withService((service) => {
    test('readiness goes with the database, and the answer comes in bounded time', async () => {
      const { database } = service()
      // All connections of the service are ended, and none can be made.
      const [row] = await database.query<{ name: string }>(sql`SELECT current_database() AS name`)
      const other = await openAdmin(service())
      try {
        await other.execute(sql`ALTER DATABASE ${sql.id(row?.name ?? '')} ALLOW_CONNECTIONS false`)
        await other.execute(sql`
          SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = ${row?.name ?? ''}`)
        const { status, body } = await service().request('GET', '/ready')
        expect(status).toBe(503)
        expect(body.checks).toMatchObject({ database: 'unreachable', draining: 'no' })
        const { text } = await service().request('GET', '/metrics')
        expect(text).toMatch(/^tollbase_database_up 0$/m)
        expect(text).not.toMatch(/^tollbase_payments_open /m)
        expect((await service().request('GET', '/health')).status).toBe(200)
      } finally {
        await other.execute(sql`ALTER DATABASE ${sql.id(row?.name ?? '')} ALLOW_CONNECTIONS true`)
        await other.close()
      }
    })
  })
})

/** Opens a connection to the same server, on its maintenance database. */
async function openAdmin(service: TestService): Promise<Database> {
  const url = (service.config.databaseUrl ?? '').replace(/@\/[^?]+/, '@/postgres')
  return openDatabase({ connection: { url } })
}
