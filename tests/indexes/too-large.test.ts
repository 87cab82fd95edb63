import { limits } from '@tollbase/contract/limits'
import { describe, expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { listTestEngines } from '../../packages/server/src/database/testing.ts'
import type { IndexDefinition } from '../../packages/server/src/model/definitions.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { rebuild } from '../../packages/server/src/operator/rebuild.ts'
import { define } from '../../packages/server/src/services/applications/define.ts'
import { createData, type Data, listIds } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'

/** PostgreSQL before 18 keeps all expressions of an index in one row of 8 KB, which many different characters fill. */
const drawName = (at: number) =>
  String.fromCodePoint(
    ...Array.from({ length: limits.fieldPathCharsMax }, (_, k) => {
      const drawn = Math.abs(Math.sin((at * 1_000 + k) ** 2 + 1))
      return 0x4e00 + Math.floor(drawn * 20_000)
    }),
  )
const fields = [1, 2, 3, 4].map(drawName)
const record = (id: string, value: number) => ({
  id,
  ...Object.fromEntries(fields.map((field) => [field, value])),
})
const manyTests = Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`f${at}`, at]))

describe.each(listTestEngines())('an index that an older PostgreSQL cannot keep (%s)', (engine) =>
  withService(
    (service) => {
      const isOld = engine === 'debian15'
      const readStatus = async (app: Data, name: string) =>
        (await app.call('GET', `/collections/c/indexes/${name}/status`)).body
      const expectEnd = (app: Data, name: string) =>
        expect
          .poll(() => readStatus(app, name))
          .toMatchObject(
            isOld
              ? { status: 'failed', error: expect.stringContaining('too large for this database') }
              : { status: 'active' },
          )
      const agree = () =>
        service().whileStopped(async (config) => {
          expect(await audit(config, () => undefined)).toMatchObject({ equal: true })
          expect(await rebuild(config, () => undefined)).toMatchObject({ equal: true })
          expect(await audit(config, () => undefined)).toMatchObject({ equal: true })
        })

      test('stops nothing: its application goes on without it, also after it was rebuilt', async () => {
        const app = await createData(service())
        await app.store('c', [record('a', 1)])
        const made = await app.call('POST', '/indexes', { collection: 'c', name: 'long', fields })
        expect(made.status, made.text).toBe(200)
        expect((await app.store('c', [record('b', 2)])).status).toBe(200)
        await expectEnd(app, 'long')
        await agree()
        await expectEnd(app, 'long')
        const find = { [fields[0] ?? '']: 2 }
        expect(listIds(await app.list('c', { find }))).toEqual(['b'])
        const rebuilt = await app.call('POST', '/collections/c/indexes/long/rebuild')
        expect(rebuilt.status, rebuilt.text).toBe(isOld ? 503 : 200)
        expect((await app.call('DELETE', '/collections/c/indexes/long')).status).toBe(200)
        await agree()
      })

      test('makes versions where its fields are unique, like any other', async () => {
        const app = await createData(service())
        await app.store('c', [record('a', 1), record('b', 1)])
        const wish = { collection: 'c', name: 'one', fields, unique: true }
        const made = await app.call('POST', '/indexes', wish)
        expect(made.status, made.text).toBe(200)
        expect(listIds(await app.list('c'))).toEqual(['b'])
        await app.store('c', [record('c', 1)])
        expect(listIds(await app.list('c'))).toEqual(['c'])
        await expectEnd(app, 'one')
        await agree()
      })

      test('may be in a log: one whose condition is longer than a new one may be', async () => {
        const app = await createData(service())
        await app.store('c', [{ id: 'a' }])
        const tenant = await service().running.service.tenants.load(app.appId)
        const { catalog } = tenant.data
        const body: IndexDefinition = {
          ...{ id: 'idx_old', number: catalog.nextNumber, name: 'old', fields: ['id'] },
          ...{ collection: catalog.byName.get('c')?.id ?? '', index_type: 'btree', unique: false },
          ...{ where: manyTests, created_at: new Date(0).toISOString() },
        }
        await define(tenant, [{ kind: 'index', id: body.id, body }])
        await expectEnd(app, 'old')
        await agree()
        await expectEnd(app, 'old')
        const schema = tenant.schema
        const rows = await service().database.query(
          sql`SELECT id FROM ${sql.id(schema, 'definition')} WHERE kind = 'index'`,
        )
        expect(rows).toEqual([{ id: 'idx_old' }])
      })
    },
    { engine },
  ),
)
