import { expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { scrubMarked } from '../../packages/server/src/services/retention/scrub-files.ts'
import { createData, type Data } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import type { TestService } from '../support/service.ts'
import { holdTable } from '../views/support.ts'
import { dayMs } from './sweep.ts'

withService((service) => {
  test('a table that cannot be written anew keeps no other one from it, and is tried again a day later', async () => {
    const app = await createData(service())
    await app.store('notes', [{ id: 'a', person: 'p' }])
    await app.call('POST', '/collections/notes/erase', { field: 'person', value: 'p' })
    const scrub = () => scrubMarked(service().running.service, () => false)
    const read = () => readFiles(service(), app)
    const before = await read()
    service().world.advance(dayMs + 1)
    // The log comes first, and is what grows too large to be written anew in time.
    const held = await holdTable(service(), app, 'block')
    try {
      await scrub()
      const meanwhile = await read()
      expect(meanwhile.block).toBe(before.block)
      expect(meanwhile.c_1).not.toBe(before.c_1)
      await scrub()
      expect((await read()).c_1).toBe(meanwhile.c_1)
    } finally {
      await held.release()
    }
    await scrub()
    expect((await read()).block).toBe(before.block)
    service().world.advance(dayMs + 1)
    await scrub()
    expect((await read()).block).not.toBe(before.block)
    expect(await service().database.query(sql`SELECT chain FROM operations.scrub`)).toEqual([])
  })
})

/** The files that tables of the application have now. */
async function readFiles(
  { database, running }: TestService,
  app: Data,
): Promise<Readonly<Record<string, number>>> {
  const { schema } = await running.service.tenants.load(app.appId)
  const rows = await database.query<{ name: string; file: number }>(sql`
    SELECT relname::text AS name, pg_relation_filenode(class.oid)::int8::int4 AS file
    FROM pg_catalog.pg_class AS class JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = relnamespace
    WHERE nspname = ${schema} AND relname IN ('block', 'c_1')`)
  return Object.fromEntries(rows.map(({ name, file }) => [name, file]))
}
