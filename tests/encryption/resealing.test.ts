import { verifyDocument } from '@tollbase/verify/verify'
import { expect, test, vi } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import {
  resealingLookMs,
  resealingRetryMs,
} from '../../packages/server/src/services/encryption/resealings.ts'
import { dayMs, keepFor, sweep } from '../retention/sweep.ts'
import { createData, type Data } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import type { Json, TestService } from '../support/service.ts'
import { change, check, countErased, readAll, settle } from './change.ts'

/** The time-out is for a slow day: most tests wait for several audits and rebuilds of all that is there. */
vi.setConfig({ testTimeout: 180_000 })

withService(
  (service) => {
    test('a collection with records is sealed and opened again, and reads the same all the time', async () => {
      const app = await createData(service())
      await fill(app, 'notes')
      const before = await readAll(app, 'notes', ['n1', 'n7', 'gone', 'none'])
      const proof = (await app.record('notes', 'n1', '/proof')).body
      const set = await change(app, 'add', ['notes'])
      expect(set.status, set.text).toBe(200)
      expect(set.body.message).toContain('cannot be taken back')
      await settle(app, set)
      expect((await app.call('GET', '/encryption')).body.encrypted_collections).toEqual(['notes'])
      expect(await readAll(app, 'notes', ['n1', 'n7', 'gone', 'none'])).toEqual(before)
      expect(await holdsText(service(), app, 'planted')).toBe(false)
      expect(await countErased(service(), app)).toBe(61)
      expect(await check(service())).toEqual([undefined, true])
      expect(await readAll(app, 'notes', ['n1', 'n7', 'gone', 'none'])).toEqual(before)

      // A proof from before holds.
      const { key } = (await app.call('GET', '/chain/checkpoint')).body
      expect(verifyDocument(JSON.stringify(proof), { trustedKey: key }).ok).toBe(true)
      const now = (await app.record('notes', 'n1', '/proof')).body
      expect(now).toMatchObject({ height: proof.height, sequence: proof.sequence })
      expect(now.entry).toBeUndefined()
      expect(verifyDocument(JSON.stringify(now), { trustedKey: key }).ok).toBe(true)

      await app.store('notes', [{ id: 'n1', text: 'after' }])
      expect((await app.record('notes', 'n1', '/history')).body.versions).toHaveLength(3)
      const opened = await change(app, 'remove', ['notes'])
      await settle(app, opened)
      expect((await app.call('GET', '/encryption')).body.encrypted_collections).toEqual([])
      expect((await app.record('notes', 'n1')).body.record).toEqual({ id: 'n1', text: 'after' })
      expect((await app.record('notes', 'n7')).text).toContain('"n":7.50')
      expect((await app.list('notes', { include_history: true })).body.total).toBe(62)
      const counted = await app.list('notes', { aggregate: { many: { $count: '*' } } })
      expect(counted.status, counted.text).toBe(200)
      expect(await holdsText(service(), app, 'planted')).toBe(true)
      expect(await check(service())).toEqual([undefined, true])

      await settle(app, await change(app, 'add', ['notes']))
      expect(await holdsText(service(), app, 'planted')).toBe(false)
      expect((await app.list('notes', { find: { text: 'planted7' } })).body.total).toBe(1)
      expect(await check(service())).toEqual([undefined, true])
    })

    test('writes go on while a collection is sealed, and none of them is lost, doubled or left open', async () => {
      const app = await createData(service())
      const count = 3_000
      for (let at = 0; at < count; at += 1_000)
        await app.queue(
          'c',
          Array.from({ length: 1_000 }, (_, n) => ({ id: `r${at + n}`, v: 0, text: 'planted' })),
        )
      const written = new Map<string, number>()
      let isOver = false
      const write = async (who: number) => {
        for (let n = 1; !isOver; n++) {
          // Each writes records of its own, among them some that are there already.
          const ids = [`r${2 * ((n * 37) % (count / 2)) + who}`, `w${who}-${n}`]
          const reply = await app.store(
            'c',
            ids.map((id) => ({ id, v: n, text: 'planted' })),
          )
          expect(reply.status, reply.text).toBe(200)
          for (const id of ids) written.set(id, n)
        }
      }
      const read = async () => {
        while (!isOver) {
          const { status, body, text } = await app.record('c', 'r5')
          expect(status === 200 || status === 503, text).toBe(true)
          if (status === 200) expect(body.record.text).toBe('planted')
        }
      }
      const writers = [0, 1].map(write)
      const reader = read()
      await settle(app, await change(app, 'add', ['c']))
      isOver = true
      await Promise.all([...writers, reader])
      expect(written.size).toBeGreaterThan(4)
      for (const [id, n] of [...written].slice(-200))
        expect((await app.record('c', id)).body.record.v, id).toBe(n)
      const { document_count } = (await app.call('GET', '/collections/c?include_stats=true')).body
        .metadata
      const others = [...written.keys()].filter((id) => !id.startsWith('r')).length
      expect(document_count).toBe(count + others)
      expect((await app.list('c', { limit: 1 })).body.total).toBe(count + others)
      expect(await holdsText(service(), app, 'planted')).toBe(false)
      expect(await check(service())).toEqual([undefined, true])
    })

    test('versions that expire while the encryption changes, and after it, leave no form of theirs in the log', async () => {
      const app = await createData(service())
      await app.store('c', [
        { id: 'a', text: 'planted' },
        { id: 'b', text: 'planted' },
      ])
      await settle(app, await change(app, 'add', ['c']))
      await settle(app, await change(app, 'remove', ['c']))
      expect(await holdsText(service(), app, 'planted')).toBe(true)
      service().world.advance(3 * dayMs)
      await app.store('c', [{ id: 'b', text: 'newer' }])
      await keepFor(service(), app, ['c', 2])
      await sweep(service(), app)
      expect((await app.record('c', 'a')).status).toBe(410)
      expect((await app.record('c', 'a', '/history')).body.versions).toHaveLength(1)
      expect(await holdsText(service(), app, 'planted')).toBe(false)
      expect(await holdsText(service(), app, 'newer')).toBe(true)
      expect(await check(service())).toEqual([undefined, true])
      await settle(app, await change(app, 'add', ['c']))
      expect((await app.record('c', 'b')).body.record.text).toBe('newer')
      expect((await app.record('c', 'a')).status).toBe(410)
      expect(await holdsText(service(), app, 'newer')).toBe(false)
      expect(await check(service())).toEqual([undefined, true])
    })

    test('a person who is erased while half of the records are sealed is in neither half', async () => {
      const app = await createData(service())
      const persons = (from: number) =>
        Array.from({ length: 600 }, (_, n) => ({
          id: `r${from + n}`,
          person: n % 3 === 0 ? 'ann' : 'ben',
          text: n % 3 === 0 ? 'planted' : 'kept',
        }))
      await app.store('c', persons(0))
      await app.store('c', persons(300))
      const broken = breakOff(service(), 'resealing.copied')
      await change(app, 'add', ['c'])
      expect(broken.count).toBe(1)
      const erased = await app.call('POST', '/collections/c/erase', {
        field: 'person',
        value: 'ann',
      })
      expect(erased.body.versions, erased.text).toBe(400)
      await settle(app, await change(app, 'add', ['c']))
      expect(await holdsText(service(), app, 'planted')).toBe(false)
      expect((await app.list('c', { limit: 1 })).body.total).toBe(600)
      expect((await app.list('c', { include_history: true, limit: 1 })).body.total).toBe(800)
      expect((await app.record('c', 'r3')).status).toBe(410)
      expect(await check(service())).toEqual([undefined, true])
      expect((await app.list('c', { limit: 1 })).body.total).toBe(600)
    })

    test('a change that another process began in an application that is closed here is found and ended', async () => {
      const app = await createData(service())
      await fill(app, 'notes')
      // It gets no further here, however often it is tried.
      service().world.atFailpoints((point) => {
        if (point === 'resealing.prepared') throw new Error('broken off')
      })
      expect((await change(app, 'add', ['notes'])).status).toBe(200)
      const { schema } = await service().running.service.tenants.load(app.appId)
      const definition = sql.id(schema, 'definition')
      const put = (body: string) =>
        service().database.execute(
          sql`UPDATE ${definition} SET body = ${body} WHERE kind = 'resealing'`,
        )
      let begun = ''
      // At its start this process sees nothing of the change.
      await service().whileStopped(async () => {
        service().world.atFailpoints(undefined)
        const [row] = await service().database.query<{ body: string }>(
          sql`SELECT body FROM ${definition} WHERE kind = 'resealing'`,
        )
        begun = row?.body ?? ''
        await put('{"state":"completed"}')
      })
      expect(begun).toContain('"copying"')
      const isOpen = () =>
        service()
          .running.service.tenants.listOpen()
          .some((one) => one.schema === schema)
      service().world.passInterval(resealingRetryMs)
      await new Promise((resolve) => setTimeout(resolve, 300))
      expect(isOpen()).toBe(false)
      await put(begun)
      const look = () => {
        service().world.passInterval(resealingLookMs)
        service().world.passInterval(resealingRetryMs)
        return isOpen()
      }
      await expect.poll(look, { timeout: 20_000 }).toBe(true)
      await expect.poll(() => holdsText(service(), app, 'planted'), { timeout: 20_000 }).toBe(false)
      await settle(app, await change(app, 'add', ['notes']))
      expect(await check(service())).toEqual([undefined, true])
    })

    test('while a collection is sealed nothing that reads plaintext is defined on it, and nobody deletes or opens it', async () => {
      const app = await createData(service())
      await fill(app, 'notes')
      const broken = breakOff(service(), 'resealing.prepared')
      const set = await change(app, 'add', ['notes'])
      expect(broken.count).toBe(1)
      expect(set.body.tasks).toEqual([
        { collection: 'notes', action: 'add', task_id: expect.stringMatching(/^task_/) },
      ])
      expect(set.body.encrypted_collections).toEqual([])
      const [{ task_id }] = set.body.tasks
      const task = (await service().request('GET', `/task/${task_id}`)).body
      expect(task).toMatchObject({ status: 'StoringData', operation_type: 'encrypt' })
      expect(task.progress_log.join()).toContain('something went wrong on our side')
      const refused: readonly [string, string, object | undefined, string][] = [
        [
          'POST',
          '/collections/notes/indexes',
          { field_name: 'n', index_type: 'number' },
          'NOT_ON_PRIVATE',
        ],
        [
          'POST',
          '/views',
          { name: 'v', source_collections: ['notes'], query: { find: {} } },
          'NOT_ON_PRIVATE',
        ],
        ['PUT', '/collections/notes', { access_policy: 'public' }, 'NOT_ON_PRIVATE'],
        ['DELETE', '/collections/notes', undefined, 'CONFLICT'],
        ['POST', '/encryption', { action: 'remove', collections: ['notes'] }, 'CONFLICT'],
        ['POST', '/collections/notes/migrate', { schema: { fields: {} } }, 'CONFLICT'],
      ]
      for (const [method, path, body, code] of refused) {
        const reply = await app.call(method, path, body)
        expect(reply, `${path} ${reply.text}`).toMatchObject({ status: 409, body: { code } })
      }
      const again = await change(app, 'add', ['notes'])
      await settle(app, again)
      expect((await service().request('GET', `/task/${task_id}`)).body).toMatchObject({
        status: 'Completed',
        progress: { percent: 100 },
      })
      const listed = (await app.call('GET', '/tasks?limit=1000')).body.tasks
      expect(listed.map(({ ticket_id }: Json) => ticket_id)).toContain(task_id)
      expect((await app.call('DELETE', '/collections/notes')).status).toBe(200)
      expect(await check(service())).toEqual([undefined, true])
    })

    test('the change of a collection that is to be queryable has a task as any other', async () => {
      const app = await createData(service())
      await fill(app, 'notes')
      const broken = breakOff(service(), 'resealing.prepared')
      const wish = { action: 'add', collections: ['notes'], queryable: true }
      const set = await app.call('POST', '/encryption', wish)
      expect(broken.count).toBe(1)
      const [{ task_id }] = set.body.tasks
      const task = await service().request('GET', `/task/${task_id}`)
      expect(task.body, task.text).toMatchObject({ operation_type: 'encrypt' })
      const listed = (await app.call('GET', '/tasks')).body.tasks
      expect(listed.map(({ ticket_id }: Json) => ticket_id)).toContain(task_id)
      await settle(app, await app.call('POST', '/encryption', wish))
      expect((await app.call('GET', '/encryption')).body.encrypted_collections).toEqual(['notes'])
      expect((await app.list('notes', { find: { text: 'planted7' } })).body.total).toBe(1)
    })

    test.each([
      'resealing.prepared',
      'resealing.copied',
      'block.erased',
      'resealing.erased',
    ] as const)(
      'a change that is broken off at %s is carried out by the next start',
      async (point) => {
        const app = await createData(service())
        await fill(app, 'notes')
        const before = await readAll(app, 'notes', ['n1', 'gone'])
        const broken = breakOff(service(), point)
        await change(app, 'add', ['notes'])
        expect(broken.count).toBe(1)
        const between = await service().whileStopped((config) => audit(config, () => undefined))
        expect(between.difference).toBeUndefined()
        await until(async () => (await holdsText(service(), app, 'planted')) === false)
        await settle(app, await change(app, 'add', ['notes']))
        expect(await readAll(app, 'notes', ['n1', 'gone'])).toEqual(before)
      },
    )
  },
  { config: { encryptionUpdatePrice: 0n } },
)

/** Records with newer versions, a deletion, and digits that a number would lose. */
async function fill(app: Data, name: string): Promise<void> {
  await app.create({ name })
  await app.storeText(
    name,
    Array.from({ length: 57 }, (_, n) => `{"id":"n${n}","n":${n}.50,"text":"planted${n}"}`).join(),
  )
  await app.store(name, [
    { id: 'gone', text: 'planted' },
    { id: 'n1', text: 'planted again' },
  ])
  await app.store(name, [
    { id: 'gone', deleted: true },
    { id: 7, text: 'planted' },
  ])
}

/** Looks into the log and every table of an application. */
async function holdsText({ database, running }: TestService, app: Data, text: string) {
  const { schema, chain } = await running.service.tenants.load(app.appId)
  for await (const block of chain.blocksFrom(1))
    if (block.entries.some((entry) => entry?.body.includes(text))) return true
  const tables = await database.query<{ name: string }>(
    sql`SELECT relname::text AS name FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace AS n ON n.oid = relnamespace WHERE nspname = ${schema} AND relkind = 'r' AND relname LIKE 'c\\_%'`,
  )
  for (const { name } of tables) {
    const found = await database.query(
      sql`SELECT leaf FROM ${sql.id(schema, name)} WHERE body LIKE ${`%${text}%`} LIMIT 1`,
    )
    if (found.length > 0) return true
  }
  return false
}

function breakOff({ world }: TestService, wanted: string) {
  const died = { count: 0 }
  world.atFailpoints((point) => {
    if (point !== wanted || died.count > 0) return
    died.count += 1
    throw new Error('broken off')
  })
  return died
}

async function until(isDone: () => Promise<boolean>): Promise<void> {
  await expect.poll(isDone, { timeout: 30_000, interval: 50 }).toBe(true)
}
