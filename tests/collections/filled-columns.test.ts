import { randomInt } from 'node:crypto'
import { limits } from '@tollbase/contract/limits'
import { afterEach, expect, vi } from 'vitest'
import type { Failpoint } from '../../packages/server/src/base/failpoints.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { rebuild } from '../../packages/server/src/operator/rebuild.ts'
import {
  markWhole,
  type WrittenColumn,
} from '../../packages/server/src/projections/column-filling.ts'
import {
  readFieldColumns,
  type StoredColumns,
} from '../../packages/server/src/projections/field-columns.ts'
import { createData, type Data } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import type { Json, TestService } from '../support/service.ts'
import { makeSharedTest } from '../support/shared-test.ts'

vi.setConfig({ testTimeout: 120_000 })
const test = makeSharedTest(3)

const city = { city: { type: 'string' } }
const schema = { properties: { ...city, price: { type: 'number' }, paid: { type: 'boolean' } } }
const long = 'x'.repeat(300)
/** Values of each field, first those of its type, then such as records have that were stored before their schema. */
const cities = [
  ['Graz', 'Wien', long, `${long}y`, undefined],
  [7, null, ['Graz'], { a: 1 }, true],
]
const prices = [
  [1.5, 2, 0.1, 1e-9, 1e20, undefined],
  ['7', null, true, {}],
]
const paids = [
  [true, false, undefined],
  ['true', 1, null],
]

const statements = [
  'SELECT city, count(*) AS n, sum(price) AS s, avg(price) AS a, min(price) AS l, max(price) AS m FROM app::c GROUP BY city ORDER BY n, city, s, a',
  'SELECT paid, price, count(*) AS n FROM app::c GROUP BY ROLLUP (paid, price) ORDER BY 3, 1, 2',
  'SELECT upper(city) AS u, bool_or(paid) AS b, count(*) AS n FROM app::c GROUP BY upper(city) ORDER BY 3, 1',
  'SELECT id, price * 2 AS d, length(city) AS l FROM app::c ORDER BY id LIMIT 500',
]

type Stored = { readonly name: string; readonly columns: StoredColumns }

function makeRecord(id: number, isConforming: boolean): string {
  const pick = (lists: readonly (readonly unknown[])[]) => {
    const list = isConforming ? (lists[0] ?? []) : lists.flat()
    return list[randomInt(list.length)]
  }
  const members = { city: pick(cities), price: pick(prices), paid: pick(paids) }
  return JSON.stringify({ id: `${id}`, ...members, pad: 'p'.repeat(400) })
}

type Fill = { readonly count: number; readonly from?: number; readonly isConforming?: boolean }

async function fill(
  app: Data,
  name: string,
  { count, from = 0, isConforming = false }: Fill,
): Promise<void> {
  for (let at = from; at < from + count; at += 1_000) {
    const size = Math.min(1_000, from + count - at)
    const texts = Array.from({ length: size }, (_, n) => makeRecord(at + n, isConforming))
    const reply = await app.storeText(name, texts.join(','))
    expect(reply.status, reply.text).toBe(200)
  }
}

async function answer(service: TestService, app: Data, name: string): Promise<readonly string[]> {
  const answers: string[] = []
  for (const statement of statements) {
    const body = { sql: statement.replace('app::c', `"${app.appId}"::"${name}"`) }
    const reply = await service.request('POST', '/query/sql', { body, headers: app.headers })
    // Declared types decide what may be asked: a text has no sum.
    expect([200, 400], reply.text).toContain(reply.status)
    answers.push(
      reply.status === 200 ? JSON.stringify(reply.body.data) : reply.body.details.problem,
    )
  }
  return answers
}

/** The same without columns: of a collection of these records whose schema declares many other fields first. */
async function answerPlainly(
  service: TestService,
  app: Data,
  name: string,
): Promise<readonly string[]> {
  const { schema: place, data } = await load(service, app)
  const collection = data.catalog.byName.get(name)
  const rows = await service.database.query<{ body: string }>(
    sql`SELECT body FROM ${sql.id(place, collection?.table ?? '')} WHERE superseded_by IS NULL AND NOT deleted ORDER BY leaf`,
  )
  const copy = `copy-${randomInt(1e9)}`
  await app.create({ name: copy })
  const first = Object.fromEntries(
    Array.from({ length: limits.fieldColumnsMax }, (_, at) => [`x${at}`, { type: 'number' }]),
  )
  // They get their columns while there is no record to be filled.
  await declare(app, copy, first)
  for (let at = 0; at < rows.length; at += 1_000) {
    const page = rows.slice(at, at + 1_000).map(({ body }) => body)
    expect((await app.storeText(copy, page.join(','))).status).toBe(200)
  }
  const declared = (collection?.schema_definition as Json)?.properties
  if (declared !== undefined) await declare(app, copy, { ...first, ...declared })
  return answer(service, app, copy)
}

function load(service: TestService, app: Data) {
  return service.running.service.tenants.load(app.appId)
}

async function readColumns(service: TestService, app: Data, name: string): Promise<Stored> {
  const { schema: place, data } = await load(service, app)
  const table = data.catalog.byName.get(name)?.table ?? ''
  return {
    name: table,
    columns: (await readFieldColumns(service.database, place)).get(table) ?? new Map(),
  }
}

async function declare(app: Data, name: string, properties: object = schema.properties) {
  const reply = await app.call('PUT', `/collections/${name}`, { schema_definition: { properties } })
  expect(reply.status, reply.text).toBe(200)
}

async function awaitWhole(service: TestService, app: Data, name: string): Promise<void> {
  const read = async () => {
    const { data } = await load(service, app)
    const collection = data.catalog.byName.get(name)
    return collection && data.getFieldColumns(collection)?.size
  }
  await expect.poll(read, { timeout: 60_000, interval: 20 }).toBe(3)
}

async function findTask(app: Data): Promise<Json> {
  const { tasks } = (await app.call('GET', '/tasks?limit=1000')).body
  const isOne = (one: Json) =>
    one.operation_type === 'fill_columns' && one.progress_log.join().includes('city')
  return tasks.find(isOne)
}

function auditStopped(service: TestService) {
  return service.whileStopped((config) => audit(config, () => undefined))
}

withService(
  (service) => {
    afterEach(() => {
      service().world.atFailpoints(undefined)
    })

    test('a large collection gets columns beside its writes, with the same answers before, meanwhile and after', async () => {
      const app = await createData(service())
      await app.create({ name: 'c' })
      await fill(app, 'c', { count: 3_000 })
      await declare(app, 'c')
      // New versions, deletions and new records while the rows from before are filled.
      for (let round = 0; round < 2; round++) {
        await fill(app, 'c', { count: 100, from: round * 700, isConforming: true })
        const gone = { operation: 'delete', collection: 'c', data: { id: `${round * 700 + 5}` } }
        const { status, text } = await app.call('POST', '/batch', { operations: [gone] })
        expect(status, text).toBeLessThan(300)
        await app.storeText('c', makeRecord(10_000 + round, true))
        expect(await answer(service(), app, 'c')).toEqual(await answerPlainly(service(), app, 'c'))
      }
      await awaitWhole(service(), app, 'c')
      await fill(app, 'c', { count: 100, from: 2_950, isConforming: true })
      expect(await answer(service(), app, 'c')).toEqual(await answerPlainly(service(), app, 'c'))
      const { columns } = await readColumns(service(), app, 'c')
      expect(
        [...columns.values()].map(({ isWhole, written }) => isWhole && written !== undefined),
      ).toEqual([true, true, true])
      expect(await findTask(app)).toMatchObject({ status: 'Completed', progress: { percent: 100 } })
      expect(await auditStopped(service())).toMatchObject({ equal: true })
      await service().whileStopped((config) => rebuild(config, () => undefined))
      const rebuilt = await readColumns(service(), app, 'c')
      expect([...rebuilt.columns.values()].map(({ written }) => written)).toEqual([
        undefined,
        undefined,
        undefined,
      ])
      expect(await answer(service(), app, 'c')).toEqual(await answerPlainly(service(), app, 'c'))
      expect(await findTask(app)).toBeUndefined()
      expect(await auditStopped(service())).toMatchObject({ equal: true })
    })

    test.each(['columns.added', 'columns.filled', 'columns.whole'] as const)(
      'columns are whole after a restart though their filling was broken off at %s, and their contents are audited all the time',
      async (point) => {
        const app = await createData(service())
        await app.create({ name: 'c' })
        await fill(app, 'c', { count: 2_100 })
        const reached = breakOff(service(), point)
        await declare(app, 'c')
        await reached
        // The applier writes the columns from here on.
        await fill(app, 'c', { count: 100, from: 2_050, isConforming: true })
        // Nothing is whole yet, so these are the answers without columns.
        const answers = await answer(service(), app, 'c')
        const { name: table, columns } = await readColumns(service(), app, 'c')
        const [price = ''] = [...columns.keys()].filter((key) => key.startsWith('f_number'))
        expect(columns.size).toBe(3)
        const { schema: place } = await load(service(), app)
        const column = { place, table, price }
        const meanwhile = await auditHarmed(service(), column)
        // Where the applier was not told of a column yet, no row has a value to be wrong.
        const wrong = { equal: false, difference: { what: `table ${table}` } }
        expect(meanwhile).toMatchObject([
          { equal: true },
          point === 'columns.added' ? { equal: true } : wrong,
        ])
        service().world.atFailpoints(undefined)
        await service().restart()
        await awaitWhole(service(), app, 'c')
        expect(await answer(service(), app, 'c')).toEqual(answers)
        expect(await auditHarmed(service(), column)).toMatchObject([{ equal: true }, wrong])
      },
    )

    test('pages that a crash of the database lost are filled again by the process that outlived it', async () => {
      const app = await createData(service())
      await app.create({ name: 'c' })
      const data = Array.from({ length: 2_100 }, (_, n) => ({
        id: `${n}`,
        city: `c-${n}`,
        price: n,
        paid: true,
      }))
      for (let at = 0; at < data.length; at += 1_000)
        await app.store('c', data.slice(at, at + 1_000))
      const reached = breakOff(service(), 'columns.filled', 3)
      await declare(app, 'c')
      await reached
      const { schema: place } = await load(service(), app)
      const { name: table, columns } = await readColumns(service(), app, 'c')
      const written = [...columns.values()].flatMap((column) => column.written ?? [])
      expect(written).toHaveLength(3)
      await loseAfter(service(), { place, table, rows: 40 }, written)
      // Whoever remembers more than the database has may not call the columns whole.
      const marked = await service().database.transaction((tx) =>
        markWhole(tx, { schema: place, table }, written),
      )
      expect(marked.map(({ isWhole }) => isWhole)).toEqual([false, false, false])
      expect(marked.every(({ filled }, at) => filled < (written[at]?.filled ?? 0))).toBe(true)
      service().world.atFailpoints(undefined)
      service().world.passInterval(10_000)
      await awaitWhole(service(), app, 'c')
      const names = written.map(({ name }) => sql.id(name))
      expect(
        await service().database.query(
          sql`SELECT count(*) AS lacking FROM ${sql.id(place, table)} WHERE num_nulls(${sql.join(names)}) > 0`,
        ),
      ).toEqual([{ lacking: 0n }])
      expect(await auditStopped(service())).toMatchObject({ equal: true })
    })

    test('a rebuild makes the columns that were being filled, with the table', async () => {
      const app = await createData(service())
      await app.create({ name: 'c' })
      await fill(app, 'c', { count: 2_100 })
      const reached = breakOff(service(), 'columns.filled')
      await declare(app, 'c')
      await reached
      const answers = await answer(service(), app, 'c')
      await service().whileStopped((config) => rebuild(config, () => undefined))
      const { columns } = await readColumns(service(), app, 'c')
      expect([...columns.values()].map(({ written }) => written)).toEqual(Array(3).fill(undefined))
      expect(await answer(service(), app, 'c')).toEqual(answers)
      expect(await auditStopped(service())).toMatchObject({ equal: true })
    })

    test('the schema may change again while columns are filled: other types, fewer fields, and the first ones again', async () => {
      const app = await createData(service())
      await app.create({ name: 'c' })
      await fill(app, 'c', { count: 2_100 })
      const reached = breakOff(service(), 'columns.filled')
      await declare(app, 'c')
      await reached
      const others = {
        price: { type: 'string' },
        city: { type: 'number' },
        deep: { type: 'object', properties: { n: { type: 'number' } } },
      }
      await declare(app, 'c', others)
      await app.store('c', [
        { id: 'n1', price: 'dear', city: 7 },
        { id: 'n2', deep: { n: 4 } },
      ])
      expect(await answer(service(), app, 'c')).toEqual(await answerPlainly(service(), app, 'c'))
      await declare(app, 'c', { paid: { type: 'boolean' } })
      await app.store('c', [{ id: 'n3', price: 3, city: 'Linz', paid: true }])
      await declare(app, 'c')
      service().world.atFailpoints(undefined)
      service().world.passInterval(10_000)
      await awaitWhole(service(), app, 'c')
      await app.store('c', [{ id: 'n4', price: 4, city: 'Linz', paid: false }])
      expect(await answer(service(), app, 'c')).toEqual(await answerPlainly(service(), app, 'c'))
      expect(await auditStopped(service())).toMatchObject({ equal: true })
      await declare(app, 'c', others)
      await awaitWhole(service(), app, 'c')
      expect(await answer(service(), app, 'c')).toEqual(await answerPlainly(service(), app, 'c'))
      expect(await auditStopped(service())).toMatchObject({ equal: true })
    })

    test('a collection that is encrypted while its columns are filled leaves no plaintext in columns, and one that is opened again has them', async () => {
      const app = await createData(service())
      await app.create({ name: 'c' })
      const data = Array.from({ length: 2_100 }, (_, n) => ({
        id: `${n}`,
        city: `planted-${n}`,
        price: n,
      }))
      await app.store('c', data.slice(0, 1_000))
      await app.store('c', data.slice(1_000, 2_000))
      await app.store('c', data.slice(2_000))
      const reached = breakOff(service(), 'columns.filled')
      await declare(app, 'c')
      await reached
      const { schema: place, chain } = await load(service(), app)
      const change = async (action: 'add' | 'remove') => {
        const reply = await app.call('POST', '/encryption', { action, collections: ['c'] })
        expect(reply.status, reply.text).toBeLessThan(300)
        const isEncrypted = async () =>
          (await app.call('GET', '/collections/c')).body.encrypted === true
        await expect.poll(isEncrypted, { timeout: 60_000, interval: 50 }).toBe(action === 'add')
        await chain.whenApplied(chain.head().height)
      }
      await change('add')
      service().world.atFailpoints(undefined)
      service().world.passInterval(10_000)
      expect((await readColumns(service(), app, 'c')).columns.size).toBe(0)
      const tables = await service().database.query<{ name: string }>(
        sql`SELECT relname::text AS name FROM pg_class JOIN pg_namespace AS n ON n.oid = relnamespace WHERE nspname = ${place} AND relkind = 'r' AND relname LIKE 'c\\_%'`,
      )
      for (const { name } of tables)
        expect(
          await service().database.query(
            sql`SELECT 1 AS found FROM ${sql.id(place, name)} AS row WHERE row::text LIKE '%planted%' LIMIT 1`,
          ),
          name,
        ).toEqual([])
      await app.store('c', [{ id: 'later', city: 'planted-later', price: 1 }])
      expect(await auditStopped(service())).toMatchObject({ equal: true })
      await change('remove')
      await awaitWhole(service(), app, 'c')
      expect(await answer(service(), app, 'c')).toEqual(await answerPlainly(service(), app, 'c'))
      expect(await auditStopped(service())).toMatchObject({ equal: true })
    })

    test('an application whose columns wait for the statistics of their table holds up no columns of others', async () => {
      const [slow, quick] = [await createData(service()), await createData(service())]
      for (const app of [slow, quick]) {
        await app.create({ name: 'c' })
        await fill(app, 'c', { count: 2_100 })
      }
      const { schema: place } = await load(service(), slow)
      const { name: table } = await readColumns(service(), slow, 'c')
      const number = randomInt(1e9)
      await service().database.execute(sql`
        CREATE FUNCTION public.await_lock(data jsonb) RETURNS bool IMMUTABLE LANGUAGE plpgsql
        AS 'BEGIN WHILE NOT pg_try_advisory_xact_lock_shared(${sql.compiled(String(number), [])}) LOOP PERFORM pg_sleep(0.02); END LOOP; RETURN true; END'`)
      await service().database.execute(
        sql`CREATE STATISTICS ${sql.id(place, 'waiting')} ON (public.await_lock(data)) FROM ${sql.id(place, table)}`,
      )
      const isWaiting = async () => {
        const rows = await service().database.query(
          sql`SELECT 1 AS found FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query LIKE 'ANALYZE%'`,
        )
        return rows.length
      }
      await service().database.transaction(async (tx) => {
        await tx.query(sql`SELECT pg_advisory_xact_lock(${number}::int8)::text`)
        await declare(slow, 'c')
        await expect.poll(isWaiting, { timeout: 60_000, interval: 20 }).toBe(1)
        await declare(quick, 'c')
        await awaitWhole(service(), quick, 'c')
        expect(await isWaiting()).toBe(1)
      })
      await awaitWhole(service(), slow, 'c')
      await service().database.execute(sql`DROP FUNCTION public.await_lock CASCADE`)
      expect(await auditStopped(service())).toMatchObject({ equal: true })
    })

    test('a collection that is deleted while its columns are filled holds up nothing, and an index is built beside them', async () => {
      const app = await createData(service())
      for (const name of ['gone', 'stays']) {
        await app.create({ name })
        await fill(app, name, { count: 2_100 })
      }
      const reached = breakOff(service(), 'columns.filled')
      await declare(app, 'gone')
      await reached
      expect((await app.call('DELETE', '/collections/gone')).status).toBeLessThan(300)
      service().world.atFailpoints(undefined)
      await declare(app, 'stays')
      await app.call('POST', '/indexes', { collection: 'stays', field_name: 'price' })
      await awaitWhole(service(), app, 'stays')
      const isBuilt = async () =>
        (await app.call('GET', '/collections/stays/indexes/stays_price_idx/status')).body.status
      await expect.poll(isBuilt, { timeout: 60_000, interval: 50 }).toBe('active')
      expect(await answer(service(), app, 'stays')).toEqual(
        await answerPlainly(service(), app, 'stays'),
      )
      expect(await auditStopped(service())).toMatchObject({ equal: true })
    })
  },
  { config: { encryptionUpdatePrice: 0n } },
)

/** Audits the stopped service as it is, and with a wrong value in a column, where it has any. */
async function auditHarmed(
  service: TestService,
  { place, table, price }: Readonly<Record<'place' | 'table' | 'price', string>>,
) {
  const rows = sql.id(place, table)
  const column = sql.id(price)
  return service.whileStopped(async (config) => {
    const clean = await audit(config, () => undefined)
    const [row] = await service.database.query<{ leaf: bigint; was: string }>(sql`
      SELECT leaf, ${column}::text AS was FROM ${rows} WHERE ${column} IS NOT NULL ORDER BY leaf DESC LIMIT 1`)
    const set = (value: string) =>
      row &&
      service.database.execute(
        sql`UPDATE ${rows} SET ${column} = ${value}::numeric WHERE leaf = ${row.leaf}`,
      )
    await set('4711')
    const harmed = await audit(config, () => undefined)
    if (row !== undefined) await set(row.was)
    return [clean, harmed]
  })
}

/** Sets columns back to what a crash of the database leaves that lost all pages after the first rows. */
async function loseAfter(
  { database }: TestService,
  { place, table, rows }: { readonly place: string; readonly table: string; readonly rows: number },
  written: readonly WrittenColumn[],
): Promise<void> {
  const [first] = await database.query<{ leaf: bigint }>(
    sql`SELECT leaf FROM ${sql.id(place, table)} ORDER BY leaf OFFSET ${rows} LIMIT 1`,
  )
  const filled = Number(first?.leaf)
  for (const { name, path, target } of written) {
    await database.execute(
      sql`UPDATE ${sql.id(place, table)} SET ${sql.id(name)} = NULL WHERE leaf >= ${filled}`,
    )
    const note = JSON.stringify({ path, filled, target, whole: false })
    await database.execute(
      sql`COMMENT ON COLUMN ${sql.id(place, table, name)} IS ${sql.literal(note)}`,
    )
  }
}

/** Breaks the filling off each time it comes to a point, from the given time on; resolves when it did so first. */
function breakOff(service: TestService, point: Failpoint, times = 1): Promise<void> {
  return new Promise((resolve) => {
    let count = 0
    service.world.atFailpoints((reached) => {
      if (reached !== point || ++count < times) return
      resolve()
      throw new Error(`broken off at ${point}`)
    })
  })
}
