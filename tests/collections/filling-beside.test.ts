import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { createTestDatabase } from '../../packages/server/src/database/testing.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { createBackup } from '../../packages/server/src/operator/backup/create-backup.ts'
import { restoreBackup } from '../../packages/server/src/operator/backup/restore-backup.ts'
import { exportApplication } from '../../packages/server/src/operator/move/export-application.ts'
import { importApplication } from '../../packages/server/src/operator/move/import-application.ts'
import { createData, type Data } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import { startTestService, type TestService } from '../support/service.ts'

vi.setConfig({ testTimeout: 120_000 })

const silent = () => undefined
const count = 2_100
const schema_definition = {
  properties: { city: { type: 'string' }, price: { type: 'number' } },
}

/** Makes a collection of large enough a table, declares its fields, and stops when its first page is filled. */
async function beginFilling(service: TestService): Promise<Data> {
  const app = await createData(service)
  await app.create({ name: 'c' })
  const data = Array.from({ length: count }, (_, n) => ({
    id: `${n}`,
    person: `p${n}`,
    city: `city of p${n}.`,
    price: n,
  }))
  for (let at = 0; at < count; at += 1_000) await app.store('c', data.slice(at, at + 1_000))
  const reached = new Promise<void>((resolve) => {
    service.world.atFailpoints((point) => {
      if (point !== 'columns.filled') return
      resolve()
      throw new Error('broken off')
    })
  })
  const declared = await app.call('PUT', '/collections/c', { schema_definition })
  expect(declared.status, declared.text).toBe(200)
  await reached
  return app
}

async function find(service: TestService, app: Data) {
  const { schema, data } = await service.running.service.tenants.load(app.appId)
  const collection = data.catalog.byName.get('c')
  if (collection === undefined) throw new Error('c is missing')
  return { schema, table: collection.table, columns: data.getFieldColumns(collection)?.size ?? 0 }
}

async function goOn(service: TestService, app: Data): Promise<void> {
  service.world.atFailpoints(undefined)
  service.world.passInterval(10_000)
  const readColumns = async () => (await find(service, app)).columns
  await expect.poll(readColumns, { timeout: 60_000, interval: 20 }).toBe(2)
}

function sum(service: TestService, app: Data) {
  const body = {
    sql: `SELECT count(DISTINCT city) AS cities, sum(price) AS total FROM "${app.appId}"::c`,
  }
  return service.request('POST', '/query/sql', { body, headers: app.headers })
}

const all = { cities: count, total: (count * (count - 1)) / 2 }

withService((service) => {
  test('persons who are erased while columns are filled are in no column, whether their rows had values or not', async () => {
    const app = await beginFilling(service())
    const erase = async (n: number) => {
      const body = { field: 'person', value: `p${n}` }
      const erased = await app.call('POST', '/collections/c/erase', body)
      expect(erased.status, erased.text).toBe(200)
    }
    // The first of these rows is filled by now, the second is not, and the third is erased when all are.
    for (const n of [3, 2_000]) await erase(n)
    await goOn(service(), app)
    await erase(1_000)
    const { schema, table } = await find(service(), app)
    const left = sql`SELECT 1 AS found FROM ${sql.id(schema, table)} AS row WHERE row::text ~ 'p(3|1000|2000)[.]'`
    await expect.poll(() => service().database.query(left)).toEqual([])
    const answered = await sum(service(), app)
    const total = all.total - 3 - 2_000 - 1_000
    expect(answered.body.data).toEqual([{ cities: count - 3, total }])
    const report = await service().whileStopped((config) => audit(config, silent))
    expect(report).toMatchObject({ equal: true })
  })

  test('a backup and an export that are made while columns are filled are whole', async () => {
    const app = await beginFilling(service())
    const root = mkdtempSync(join(tmpdir(), 'tollbase-filling-'))
    const store = await createTestDatabase()
    const away = await startTestService()
    try {
      const [backup, keys] = [join(root, 'backup'), join(root, 'keys')]
      await createBackup(service().config, { to: backup, keysTo: keys }, silent)
      const { host, port, user, database } = store.connection
      const databaseUrl = `postgresql://${user}@/${database}?host=${encodeURIComponent(host)}&port=${port}`
      const config = { ...service().config, dataDir: join(root, 'restored'), databaseUrl }
      const restored = await restoreBackup(config, { from: backup, keys }, silent)
      expect(restored).toMatchObject({ equal: true })
      expect(await audit(config, silent)).toMatchObject({ equal: true })
      const to = { app: app.appId, to: join(root, 'exported') }
      const { key } = await exportApplication(service().config, to, silent)
      const imported = await away.whileStopped((each) =>
        importApplication(each, { from: to.to, key }, silent),
      )
      expect(imported).toMatchObject({ equal: true })
      service().world.atFailpoints(undefined)
    } finally {
      await away.close()
      await store.drop()
      rmSync(root, { recursive: true, force: true })
    }
  })
})
