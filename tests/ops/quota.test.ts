import { describe, expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { definitionReserve } from '../../packages/server/src/model/quota.ts'
import { ask, createFundedBuyer, readBalance } from '../support/buyer.ts'
import { createData, type Data } from '../support/data.ts'
import { openMarket, setPrices } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import type { TestReply, TestService } from '../support/service.ts'

const setQuota = (service: TestService, { appId }: Pick<Data, 'appId'>, quota: object | null) =>
  service.request('PATCH', `/api/apps/${appId}`, { body: { quota }, headers: service.operator })

const used = async (data: Data): Promise<{ bytes: number; records: number }> =>
  (await data.call('GET', '')).body.quota.used

/** Reads the size of the application's log from its tables. */
async function inLog(service: TestService, { appId }: Data) {
  const { schema } = await service.running.service.tenants.load(appId)
  const [row] = await service.database.query<{ bytes: bigint; records: bigint }>(sql`
    SELECT sum(octet_length(body))::int8 AS bytes, sum(entry_count)::int8 AS records
    FROM ${sql.id(schema, 'block')}`)
  return { bytes: Number(row?.bytes), records: Number(row?.records) }
}

function expectFull(reply: TestReply, quota: 'bytes' | 'records'): void {
  expect(reply.status, reply.text).toBe(409)
  expect(reply.body).toMatchObject({ code: 'QUOTA_EXCEEDED', details: { quota } })
  const { limit, used: before, needed } = reply.body.details
  expect(before + needed).toBeGreaterThan(limit)
  expect(reply.body.error).toMatch(/may keep \d+ (bytes|records), has \d+.*operator/)
}

const records = (count: number, from = 0) =>
  Array.from({ length: count }, (_, at) => ({ id: `r${from + at}`, text: 'x'.repeat(100) }))

describe('the quota of an application', () =>
  withService(
    (service) => {
      test('the quota is exact: the last record that fits is taken, the next is refused, with all that comes with it', async () => {
        const data = await createData(service())
        await data.store('notes', records(3))
        const { records: before } = await used(data)
        await setQuota(service(), data, { records: before + 10 })
        expectFull(await data.store('notes', records(11, 100)), 'records')
        expect((await data.store('notes', records(9, 100))).status).toBe(200)
        expect((await data.store('notes', records(1, 200))).status).toBe(200)
        expectFull(await data.store('notes', records(1, 300)), 'records')
        expect(await used(data)).toEqual(await inLog(service(), data))
        expect((await used(data)).records).toBe(before + 10)

        const { bytes } = await used(data)
        await setQuota(service(), data, { records: null, bytes })
        expectFull(await data.store('notes', records(1, 400)), 'bytes')
        await setQuota(service(), data, { records: null, bytes: bytes + 400 })
        expect((await data.store('notes', records(1, 400))).status).toBe(200)
        expectFull(await data.store('notes', records(2, 500)), 'bytes')
        expect((await data.list('notes', { limit: 100 })).body.records).toHaveLength(14)
      })

      test('the quota holds for however many writers at once, by what is taken in and not by what is shown', async () => {
        const data = await createData(service())
        await data.store('notes', records(1))
        const { records: before } = await used(data)
        await setQuota(service(), data, { records: before + 50 })
        const replies = await Promise.all(
          Array.from({ length: 30 }, (_, at) => data.queue('notes', records(5, 10 * at))),
        )
        const taken = replies.filter(({ status }) => status === 202)
        expect(taken).toHaveLength(10)
        for (const reply of replies) if (reply.status !== 202) expectFull(reply, 'records')
        expect((await used(data)).records).toBe(before + 50)
      })

      test('the quota counts what every path writes: batches, deletions, migrations, data sets', async () => {
        const data = await createData(service())
        await data.store('notes', records(5))
        await setQuota(service(), data, { records: (await used(data)).records })
        const create = { operation: 'create', collection: 'notes', data: { id: 'new' } }
        expectFull(await data.call('POST', '/batch', { operations: [create] }), 'records')
        expectFull(await data.store('notes', [{ id: 'r1', deleted: true }]), 'records')
        const set = { name: 'words', kind: 'values', entries: ['a', 'b'] }
        expectFull(await data.call('POST', '/datasets', set), 'records')
        const schema = { fields: { more: { type: 'number', default: 1 } } }
        const migrated = await data.call('POST', '/collections/notes/migrate', { schema })
        expect(migrated.text).toContain('may keep')
        expect(await data.list('notes', { find: { more: 1 } })).toMatchObject({
          body: { records: [] },
        })
      })

      test('the quota leaves room to define, and that room has an end too', async () => {
        const data = await createData(service())
        await data.store('notes', records(5))
        await setQuota(service(), data, { bytes: 0, records: 0 })
        expectFull(await data.store('notes', records(1, 10)), 'bytes')
        expect((await data.create({ name: 'another' })).status).toBe(201)
        expect((await data.call('DELETE', '/collections/notes')).status).toBe(200)
        const { records: most } = await used(data)
        // All of the space beyond the quota but one entry is gone.
        await setQuota(service(), data, { bytes: null, records: 0 })
        const { tenants } = service().running.service
        const { chain } = await tenants.load(data.appId)
        const fill = definitionReserve.records - most - 1
        await chain.append(
          Array.from({ length: fill }, () => ({ header: { type: 'heads' }, body: '' })),
        )
        expect((await data.create({ name: 'last' })).status).toBe(201)
        expectFull(await data.create({ name: 'none' }), 'records')
      })

      test('the quota outlives a restart, a crash and a takeover, to the byte', async () => {
        const data = await createData(service())
        for (let at = 0; at < 5; at++) await data.store('notes', records(7, 10 * at))
        const before = await used(data)
        expect(before).toEqual(await inLog(service(), data))
        await setQuota(service(), data, before)
        await service().restart()
        expect(await used(data)).toEqual(before)
        expectFull(await data.store('notes', records(1, 500)), 'bytes')
        await service().whileStopped(async () => {
          // The state is that of a process that died before it could note anything.
          await service().database.execute(
            sql`UPDATE operations.chain_lease SET height = 0, body_bytes = 0`,
          )
        })
        expect(await used(data)).toEqual(before)
        await setQuota(service(), data, null)
        expect((await data.store('notes', records(1, 500))).status).toBe(200)
        expect(await used(data)).toEqual(await inLog(service(), data))
      })

      test.each(['lazy', 'live'])(
        'the quota bounds what %s views take on disk: one that would take more is not filled, and says what to do',
        async (refresh_mode) => {
          const data = await createData(service())
          const table = async (name: string) => {
            const { schema, data: projection } = await service().running.service.tenants.load(
              data.appId,
            )
            return sql.id(schema, projection.catalog.viewsByName.get(name)?.table ?? '')
          }
          const rows = async (name: string) => (await data.list(name, { limit: 1 })).body.total
          await data.store('notes', records(500))
          const at = `"${data.appId}"::`
          const create = (name: string, bound: string) =>
            data.call('POST', '/views/sql', {
              sql: `CREATE MATERIALIZED VIEW ${at}${name} AS SELECT a.text AS one, b.text AS other FROM ${at}notes AS a JOIN ${at}notes AS b ON a.text = b.text WHERE a.id >= '${bound}'`,
              refresh_mode,
            })
          await setQuota(service(), data, { bytes: 1 })
          const small = await create('small', 'r99')
          expect(small.status, small.text).toBe(201)
          expect(await rows('small')).toBe(500)
          const large = await create('large', 'r')
          expect(large.status, large.text).toBe(201)
          const state = (name: string) => data.call('GET', `/views/${name}`)
          await expect
            .poll(async () => (await state('large')).body.status, { timeout: 30_000 })
            .toBe('stale')
          expect((await state('large')).body.stale_reason).toMatch(/take \d+ bytes.*fewer rows/)
          const task = await service().request('GET', `/task/${large.body.ticket_id}`)
          expect(task.body.status.Failed.error).toMatch(/take \d+ bytes.*fewer rows/)
          expect((await state('small')).body.status).not.toBe('stale')
          const { body: writer } = await data.call('POST', '/keys', { permissions: ['Write'] })
          const refused = await service().request(
            'POST',
            `/api/apps/${data.appId}/views/large/refresh`,
            { headers: { 'x-app-key': String(writer.key) } },
          )
          expect(refused).toMatchObject({ status: 409, body: { code: 'CONFLICT' } })
          expect(refused.text, 'a key without Read is told no size').not.toMatch(/bytes|quota/)
          // The write was taken back.
          const [left] = await service().database.query<{ rows: bigint }>(
            sql`SELECT count(*) AS rows FROM ${await table('large')}`,
          )
          expect(left?.rows).toBe(0n)
        },
      )

      test('a view over what another application sells is not filled, and nothing tells its size', async () => {
        const [data, seller] = [await createData(service()), await createData(service())]
        await seller.create({ name: 'notes', access_policy: { price: { per_row: '10' } } })
        await seller.store('notes', records(500))
        const grant = { grantee: data.appId, collection: 'notes', per_access: '5' }
        expect((await seller.call('POST', '/grants', grant)).status).toBe(201)
        await setQuota(service(), data, { bytes: 1 })
        const from = `"${seller.appId}"::notes`
        const made = await data.call('POST', '/views/sql', {
          sql: `CREATE MATERIALIZED VIEW "${data.appId}"::large AS SELECT a.text AS one, b.text AS other FROM ${from} AS a JOIN ${from} AS b ON a.text = b.text`,
        })
        expect(made.status, made.text).toBe(201)
        const state = async () => (await data.call('GET', '/views/large')).body
        await expect.poll(async () => (await state()).status, { timeout: 30_000 }).toBe('stale')
        const task = await service().request('GET', `/task/${made.body.ticket_id}`)
        for (const reason of [(await state()).stale_reason, task.body.status.Failed.error]) {
          expect(reason).toMatch(/more than the application's quota.*fewer rows/)
          expect(reason).not.toMatch(/\d/)
        }
      })

      test('the quota holds for live views that grow: the largest stands still, and writes go on', async () => {
        const data = await createData(service())
        await data.store('notes', records(400))
        const at = `"${data.appId}"::`
        const create = (name: string, where: string) =>
          data.call('POST', '/views/sql', {
            sql: `CREATE MATERIALIZED VIEW ${at}${name} AS SELECT a.text AS one, b.text AS other FROM ${at}notes AS a JOIN ${at}notes AS b ON a.text = b.text WHERE a.id >= '${where}'`,
            refresh_mode: 'live',
          })
        for (const [name, where] of [
          ['small', 'r99'],
          ['large', 'r'],
        ] as const)
          expect((await create(name, where)).status).toBe(201)
        const state = async (name: string) => (await data.call('GET', `/views/${name}`)).body
        await expect
          .poll(async () => (await state('large')).status, { timeout: 30_000 })
          .toBe('live')
        const { bytes } = await used(data)
        await setQuota(service(), data, { bytes: bytes + 10_000 })
        const stored = await data.store('notes', [{ id: 'other', text: 'y' }])
        expect(stored.status, stored.text).toBe(200)
        await expect
          .poll(async () => (await state('large')).status, { timeout: 10_000 })
          .toBe('stale')
        expect((await state('large')).stale_reason).toMatch(/take \d+ bytes.*fewer rows/)
        expect((await state('small')).status).toBe('live')
        expect((await data.store('notes', [{ id: 'more', text: 'z' }])).status).toBe(200)
      })

      test('the quota is the operator`s to set; keys of the application see it, strangers do not', async () => {
        const data = await createData(service())
        const { bytes, records: most } = service().config.quota
        expect((await data.call('GET', '')).body.quota).toMatchObject({ bytes, records: most })
        expect((await data.call('PATCH', '', { quota: { bytes: null } })).status).toBe(403)
        expect((await setQuota(service(), data, { bytes: -1 })).status).toBe(400)
        const set = await setQuota(service(), data, { bytes: null })
        expect(set.body.quota).toMatchObject({ bytes: null, records: most })
        const open = await service().request('GET', `/api/apps/${data.appId}`)
        expect(open.body.quota).toBeUndefined()
        const metrics = await service().request('GET', '/metrics')
        expect(metrics.text).toMatch(/^tollbase_quota_used_ratio [\d.e-]+$/m)
        expect(metrics.text).toMatch(/^tollbase_quota_refused_total \d+$/m)
      })

      test('the quota refuses a write that has a price before anybody is asked to pay, and after a quote before money moves', async () => {
        const market = await openMarket(service())
        await setPrices(service(), market, [
          { operation: 'write', model: 'per_record', amount: '1000' },
        ])
        const buyer = await createFundedBuyer(service())
        const asked = {
          method: 'POST',
          path: '/store?wait=true',
          raw: JSON.stringify({ root: market.root, data: records(2) }),
          headers: market.headers,
        }
        const quoted = await ask(service(), asked)
        expect(quoted.status, quoted.text).toBe(402)
        await setQuota(service(), market, { records: 0 })
        expectFull(await ask(service(), asked), 'records')
        const paying = await buyer.payV2(quoted)
        expectFull(await ask(service(), asked, paying), 'records')
        expect(await readBalance(service(), buyer.address)).toBe(0n)
        await setQuota(service(), market, null)
        const bought = await ask(service(), asked, paying)
        expect(bought.status, bought.text).toBe(200)
      })
    },
    { devnet: true },
  ))
