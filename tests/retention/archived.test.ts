import { expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { resealingLookMs } from '../../packages/server/src/services/encryption/resealings.ts'
import { retentionSweepMs } from '../../packages/server/src/services/retention/sweep-retention.ts'
import { change } from '../encryption/change.ts'
import { createData, type Data } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import type { TestService } from '../support/service.ts'
import { auditStopped, dayMs, keepFor } from './sweep.ts'

withService(
  (service) => {
    const sweepOften = async (app: Data) => {
      service().world.passInterval(retentionSweepMs)
      return holdsText(service(), app)
    }

    test('a change of encryption that was under way ends though the application was archived and the service restarted', async () => {
      const app = await createData(service())
      await app.store('notes', makeRecords())
      breakOffAt(service(), 'resealing.copied')
      const asked = await change(app, 'add', ['notes'])
      expect(asked.body.tasks, asked.text).toHaveLength(1)
      const { schema } = await service().running.service.tenants.load(app.appId)
      await archive(app)
      await startAnew(service())
      // It is looked at from outside: to load the application would be to have the change carried out.
      const readStates = () =>
        service().database.query<{ state: string }>(sql`
          SELECT body::jsonb ->> 'state' AS state FROM ${sql.id(schema, 'definition')} WHERE kind = 'resealing'`)
      await expect.poll(readStates, { timeout: 30_000 }).toEqual([{ state: 'completed' }])
      expect(await holdsText(service(), app)).toBe(false)
      await bringBack(service(), app)
      expect((await app.call('GET', '/encryption')).body.encrypted_collections).toEqual(['notes'])
      expect((await app.list('notes', { limit: 1 })).body.total).toBe(40)
      expect(await auditStopped(service())).toMatchObject({ equal: true })
    })

    test.each([true, false])(
      'an erasure that was under way ends though the application was archived (and the service restarted: %s)',
      async (isRestarted) => {
        const app = await createData(service())
        await app.store('notes', makeRecords())
        const query = { select: { id: true, text: true } }
        const view = { name: 'v', source_collections: ['notes'], query, refresh_mode: 'lazy' }
        expect((await app.call('POST', '/views', view)).status).toBe(201)
        expect((await app.list('v')).body.records).toHaveLength(40)
        breakOffAt(service(), 'expiry.listed')
        await erase(app)
        await archive(app)
        if (isRestarted) await startAnew(service())
        else service().world.atFailpoints(undefined)
        await expect.poll(() => sweepOften(app), { timeout: 30_000 }).toBe(false)
        await bringBack(service(), app)
        const read = async () => (await app.list('v')).body.records
        await expect.poll(read, { timeout: 30_000 }).toEqual([{ id: 'kept', text: 'plain' }])
        expect(await auditStopped(service())).toMatchObject({ equal: true })
      },
    )

    test('a change of encryption that the tables had not heard of when the service died ends though nobody uses the application', async () => {
      const app = await createData(service())
      await app.store('notes', makeRecords())
      const { schema } = await service().running.service.tenants.load(app.appId)
      breakOffAt(service(), 'applier.beforeCommit')
      await change(app, 'add', ['notes'])
      await startAnew(service())
      const readStates = () => {
        service().world.passInterval(resealingLookMs)
        return service().database.query<{ state: string }>(sql`
          SELECT body::jsonb ->> 'state' AS state FROM ${sql.id(schema, 'definition')} WHERE kind = 'resealing'`)
      }
      await expect.poll(readStates, { timeout: 30_000 }).toEqual([{ state: 'completed' }])
      expect(await holdsText(service(), app)).toBe(false)
    })

    test('an erasure that the tables had not heard of when the service died is carried out though nobody uses the application', async () => {
      const app = await createData(service())
      await app.store('notes', makeRecords())
      const { schema } = await service().running.service.tenants.load(app.appId)
      breakOffAt(service(), 'applier.beforeCommit')
      await erase(app)
      await startAnew(service())
      // It is looked at from outside: to load the application would be to have the erasure carried out.
      const sweepOutside = async () => {
        service().world.passInterval(retentionSweepMs)
        const found = await service().database.query(sql`
          SELECT height FROM ${sql.id(schema, 'block')}
          WHERE position(convert_to(${secretText}, 'UTF8') IN body) > 0 LIMIT 1`)
        return found.length > 0
      }
      await expect.poll(sweepOutside, { timeout: 30_000 }).toBe(false)
      expect((await app.list('notes')).body.records).toHaveLength(1)
      expect(await auditStopped(service())).toMatchObject({ equal: true })
    })

    test('views of an archived application lose what its source erases, and are whole when it comes back', async () => {
      const [app, other] = [await createData(service()), await createData(service())]
      await app.store('notes', makeRecords())
      await app.call('POST', '/grants', { grantee: other.appId, collection: 'notes' })
      const view = {
        name: 'v',
        source_collections: [`${app.appId}::notes`],
        query: { select: { id: true, text: true } },
        refresh_mode: 'lazy',
      }
      expect((await other.call('POST', '/views', view)).status).toBe(201)
      const read = async () => (await other.list('v')).body.records
      const count = async () => (await read())?.length
      await expect.poll(count, { timeout: 30_000 }).toBe(40)
      await archive(other)
      const erased = await erase(app)
      expect(erased.status, erased.text).toBe(200)
      expect(await holdsText(service(), app)).toBe(false)
      expect(await holdsText(service(), other)).toBe(false)
      await bringBack(service(), other)
      await expect.poll(read, { timeout: 30_000 }).toEqual([{ id: 'kept', text: 'plain' }])
      expect(await auditStopped(service())).toMatchObject({ equal: true })
    })

    test('in an archived application nothing more expires', async () => {
      const app = await createData(service())
      await app.store('notes', makeRecords())
      await keepFor(service(), app, ['notes', 1])
      await archive(app)
      service().world.advance(2 * dayMs)
      const swept = await createData(service())
      await swept.store('notes', makeRecords())
      await keepFor(service(), swept, ['notes', 1])
      service().world.advance(2 * dayMs)
      // The sweep comes to the later application after the archived one.
      await expect.poll(() => sweepOften(swept), { timeout: 30_000 }).toBe(false)
      expect(await holdsText(service(), app)).toBe(true)
      await bringBack(service(), app)
      await expect.poll(() => sweepOften(app), { timeout: 30_000 }).toBe(false)
    })
  },
  { config: { encryptionUpdatePrice: 0n } },
)

function makeRecords() {
  const planted = Array.from({ length: 39 }, (_, n) => ({
    id: `n${n}`,
    person: 'p',
    text: secretText,
  }))
  return [...planted, { id: 'kept', text: 'plain' }]
}

const secretText = 'Wq7planted3Zk'

function erase(app: Data) {
  return app.call('POST', '/collections/notes/erase', { field: 'person', value: 'p' })
}

async function archive(app: Data): Promise<void> {
  const { status, text } = await app.call('DELETE', '')
  expect(status, text).toBe(200)
}

async function bringBack({ request, operator }: TestService, { appId }: Data): Promise<void> {
  const body = { status: 'active' }
  const back = await request('PATCH', `/api/apps/${appId}`, { headers: operator, body })
  expect(back.status, back.text).toBe(200)
}

/** Breaks off the work at each passing of this point. */
function breakOffAt({ world }: TestService, wanted: string): void {
  world.atFailpoints((point) => {
    if (point === wanted) throw new Error('broken off')
  })
}

/** Starts the service anew, and lets it pass all points. */
function startAnew({ whileStopped, world }: TestService): Promise<void> {
  return whileStopped(async () => world.atFailpoints(undefined))
}

/** Looks for the planted text in the log and all tables of an application, archived or not. */
async function holdsText({ database, running }: TestService, app: Data): Promise<boolean> {
  const { schema, chain } = await running.service.tenants.loadEvenArchived(app.appId)
  for await (const block of chain.blocksFrom(1))
    if (block.entries.some((entry) => entry?.body.includes(secretText))) return true
  const tables = await database.query<{ name: string }>(sql`
    SELECT relname::text AS name FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace AS n ON n.oid = relnamespace
    WHERE nspname = ${schema} AND relkind = 'r' AND relname ~ '^[a-z]_[0-9]'`)
  for (const { name } of tables) {
    const found = await database.query(
      sql`SELECT 1 AS one FROM ${sql.id(schema, name)} AS row WHERE position(${secretText} IN row::text) > 0 LIMIT 1`,
    )
    if (found.length > 0) return true
  }
  return false
}
