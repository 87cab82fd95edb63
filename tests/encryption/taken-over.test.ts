import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  DataKeys,
  dataKeyDaysMax,
} from '../../packages/server/src/services/encryption/data-keys.ts'
import { Sealer } from '../../packages/server/src/services/encryption/sealer.ts'
import { dayMs } from '../retention/sweep.ts'
import { createData } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import { change } from './change.ts'

withService(
  (service) => {
    test('what another process sealed by a newer key, while it had the application, is read by the one that has it again', async () => {
      const app = await createData(service())
      await app.create({ name: 'notes' })
      expect((await change(app, 'add', ['notes'])).status).toBe(200)
      await app.store('notes', [{ id: 'a', text: 'first' }])
      const { database, world, config, running } = service()
      world.advance((dataKeyDaysMax + 1) * dayMs)
      const keyFile = join(config.dataDir, 'master-keys')
      const dataKeys = new DataKeys({ database, world, keyFile, masterKeys: undefined })
      const other = new Sealer(app.appId, { world, dataKeys })
      const { tenants } = running.service
      const { chain, data } = await tenants.load(app.appId)
      const collection = data.catalog.byName.get('notes')
      if (collection === undefined) throw new Error('the collection is not there')
      const record = { key: 'b', deleted: false, body: '{"id":"b","text":"second"}' }
      const entries = (await other.seal(collection, [record])).map(({ key, body }) => ({
        header: { type: 'record', collection: collection.id, key, sealed: true },
        body,
      }))
      expect(entries[0]?.body).toContain('"epoch":2')
      const { height } = await chain.append(entries)
      await chain.whenApplied(height)
      // A process that stood still for too long, or whose database failed, opens its applications anew.
      tenants.reopenAll()
      expect((await app.list('notes')).body.records).toHaveLength(2)
      expect((await app.record('notes', 'b')).body.record).toEqual({ id: 'b', text: 'second' })
      expect((await app.store('notes', [{ id: 'c', text: 'third' }])).status).toBe(200)
      expect((await app.call('GET', '/encryption')).body.key_epoch).toBe(2)
    })
  },
  { config: { encryptionUpdatePrice: 0n } },
)
