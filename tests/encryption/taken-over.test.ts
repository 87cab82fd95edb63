import { join } from 'node:path'
import { DatabaseError } from 'pg'
import { expect, test } from 'vitest'
import {
  DataKeys,
  dataKeyDaysMax,
} from '../../packages/server/src/services/encryption/data-keys.ts'
import { Sealer } from '../../packages/server/src/services/encryption/sealer.ts'
import { dayMs } from '../retention/sweep.ts'
import { createData, type Data } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import type { TestService } from '../support/service.ts'
import { change } from './change.ts'

withService(
  (service) => {
    test('what another process sealed by a newer key, while it had the application, is read by the one that has it again', async () => {
      const app = await createData(service())
      await app.create({ name: 'notes' })
      expect((await change(app, 'add', ['notes'])).status).toBe(200)
      await app.store('notes', [{ id: 'a', text: 'first' }])
      const { tenants } = service().running.service
      const { chain } = await tenants.load(app.appId)
      const [sealed] = await sealElsewhere(service(), app, ['b'])
      expect(sealed?.body).toContain('"epoch":2')
      const { height } = await chain.append(sealed === undefined ? [] : [sealed])
      await chain.whenApplied(height)
      // A process that stood still for too long, or whose database failed, opens its applications anew.
      tenants.reopenAll()
      expect((await app.list('notes')).body.records).toHaveLength(2)
      expect((await app.record('notes', 'b')).body.record).toEqual({ id: 'b', text: 'second' })
      expect((await app.store('notes', [{ id: 'c', text: 'third' }])).status).toBe(200)
      expect((await app.call('GET', '/encryption')).body.key_epoch).toBe(2)
    })

    test('so it is where its last blocks are applied by the one that has it again, and copied for queries meanwhile', async () => {
      const app = await createData(service())
      await app.create({ name: 'notes' })
      const set = { action: 'add', collections: ['notes'], queryable: true }
      expect((await app.call('POST', '/encryption', set)).status).toBe(200)
      await app.store('notes', [{ id: 'a', text: 'first' }])
      const { world, running } = service()
      const { tenants } = running.service
      const { chain } = await tenants.load(app.appId)
      // More blocks than are applied at once.
      const keys = Array.from({ length: 300 }, (_, at) => `b${at}`)
      const sealed = await sealElsewhere(service(), app, keys)
      world.atFailpoints((point) => {
        if (point !== 'applier.beforeCommit') return
        throw Object.assign(new DatabaseError('later', 5, 'error'), { code: '40001' })
      })
      for (const entry of sealed) await chain.append([entry])
      tenants.reopenAll()
      await chain.close()
      world.atFailpoints(undefined)
      const count = async () => {
        const body = { sql: `SELECT count(*) AS notes FROM "${app.appId}"::notes` }
        return (await service().request('POST', '/query/sql', { body, headers: app.headers })).text
      }
      await expect.poll(count, { timeout: 20_000 }).toContain('"notes":301')
    })
  },
  { config: { encryptionUpdatePrice: 0n } },
)

/** Seals records as another process does, by the next key. */
async function sealElsewhere(
  { config, database, running, world }: TestService,
  { appId }: Data,
  keys: readonly string[],
) {
  world.advance((dataKeyDaysMax + 1) * dayMs)
  const keyFile = join(config.dataDir, 'master-keys')
  const dataKeys = new DataKeys({ database, world, keyFile, masterKeys: undefined })
  const { data } = await running.service.tenants.load(appId)
  const collection = data.catalog.byName.get('notes')
  if (collection === undefined) throw new Error('the collection is not there')
  const body = (key: string) => JSON.stringify({ id: key, text: 'second' })
  const records = keys.map((key) => ({ key, deleted: false, body: body(key) }))
  const sealed = await new Sealer(appId, { world, dataKeys }).seal(collection, records)
  return sealed.map((one) => ({
    header: { type: 'record', collection: collection.id, key: one.key, sealed: true },
    body: one.body,
  }))
}
