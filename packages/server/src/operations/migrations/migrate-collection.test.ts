import { limits } from '@tollbase/contract/limits'
import { createData, type Data, listIds, makeData } from '@tollbase/testing/data'
import { describePerEngine } from '@tollbase/testing/per-engine'
import type { Json } from '@tollbase/testing/service'
import { expect, test } from 'vitest'
import { sql } from '../../database/sql.ts'

const migrate = (app: Data, schema: unknown, more: object = {}) =>
  app.call('POST', '/collections/c/migrate', { schema, ...more })

const withDefault = {
  fields: { name: { type: 'string', required: true }, kind: { type: 'string', default: 'plain' } },
}

const pollMs = 20
const patienceMs = 30_000

async function ended(app: Data, task: string): Promise<Json> {
  const deadline = Date.now() + patienceMs
  for (;;) {
    const { body } = await app.call('GET', `/../../../task/${task}`)
    if (body.status !== 'StoringData' || Date.now() > deadline) return body
    await new Promise((resolve) => setTimeout(resolve, pollMs))
  }
}

describePerEngine('migrateCollection', (service) => {
  test('a migration gives records the defaults they lack, as new versions, and then puts the schema in force', async () => {
    const app = await createData(service())
    await app.storeText('c', '{"id":"a","name":"x","n":1.50},{"id":"b","name":"y","kind":"own"}')
    await app.store('c', [{ id: 'gone', deleted: true }])
    const { status, body } = await migrate(app, withDefault)
    expect(status).toBe(200)
    expect(body).toMatchObject({
      success: true,
      status: 'completed',
      migrated: 1,
      checked: 2,
      failed: 0,
      errors: [],
    })
    const { text } = await app.record('c', 'a')
    expect(text).toContain('{"id":"a","name":"x","n":1.50,"kind":"plain"}')
    expect((await app.record('c', 'a', '/history')).body.versions).toHaveLength(2)
    expect((await app.record('c', 'b', '/history')).body.versions).toHaveLength(1)
    expect((await app.call('GET', '/collections/c')).body.schema_definition).toEqual(withDefault)
    expect((await app.store('c', [{ id: 'd' }])).status).toBe(422)
    const task = await service().request('GET', `/task/${body.task_id}`)
    expect(task.body).toMatchObject({ status: 'Completed', operation_type: 'migrate' })
    const listed = (await app.call('GET', '/tasks')).body.tasks
    expect(listed.map(({ ticket_id }: Json) => ticket_id)).toContain(body.task_id)
    const again = await migrate(app, withDefault)
    expect(again.body, 'the same again changes nothing').toMatchObject({ migrated: 0 })
  })

  test('a dry migration tells what it would do and writes nothing', async () => {
    const app = await createData(service())
    await app.store('c', [{ id: 'a', name: 'x' }, { id: 'b' }, { id: 'd', name: 5 }])
    const before = (await app.call('GET', '/chain/checkpoint')).body
    const { body } = await migrate(app, withDefault, { dryRun: true, batchSize: 1 })
    expect(body).toEqual({
      success: false,
      status: 'dry run',
      migrated: 1,
      checked: 3,
      failed: 2,
      errors: ['b: /name is required', 'd: /name must be of type string'],
    })
    expect((await app.call('GET', '/chain/checkpoint')).body).toEqual(before)
  })

  test('a record that breaks the new schema stops the migration: the old schema stays, and nothing is written', async () => {
    const app = await createData(service())
    await app.store('c', [{ id: 'a', name: 'x' }, { id: 'b' }])
    const { body } = await migrate(app, withDefault)
    expect(body).toMatchObject({ success: false, status: 'failed', migrated: 0, failed: 1 })
    expect(body.errors).toEqual(['b: /name is required'])
    expect((await app.call('GET', '/collections/c')).body.schema_definition).toBeNull()
    expect((await app.record('c', 'a', '/history')).body.versions).toHaveLength(1)
    const task = (await service().request('GET', `/task/${body.task_id}`)).body
    expect(task.status).toEqual({ Failed: { error: 'b: /name is required' } })
    await app.call('POST', '/batch', {
      operations: [{ operation: 'delete', collection: 'c', data: { id: 'b' } }],
    })
    expect((await migrate(app, withDefault)).body).toMatchObject({ success: true, migrated: 1 })
  })

  test('a migration makes no record of more members than one that is sent may have', async () => {
    const app = await createData(service())
    const { objectMembersMax: most } = limits
    const members = Array.from({ length: most - 2 }, (_, at) => [`m${at}`, at])
    await app.store('c', [{ id: 'a', ...Object.fromEntries(members) }])
    const field = { type: 'string', default: 'x' }
    const { body } = await migrate(app, { fields: { one: field, two: field } })
    expect(body).toMatchObject({ success: false, status: 'failed', migrated: 0, failed: 1 })
    expect(body.errors).toEqual([`a: would have more than ${most} members`])
    const one = await migrate(app, { fields: { one: field } })
    expect(one.body).toMatchObject({ success: true, migrated: 1 })
    const again = await migrate(app, { fields: { one: field, m0: { type: 'integer' } } })
    expect(again.body, 'a schema that adds nothing is none of it').toMatchObject({ success: true })
  })

  test('what a failed migration tells of a record names it no more once it is erased, and the log never does', async () => {
    const app = await createData(service())
    await app.store('c', [{ id: 'ann@example.com' }, { id: 'ben@example.com' }])
    const { body } = await migrate(app, withDefault)
    const problem = '/name is required'
    expect(body.errors).toEqual([`ann@example.com: ${problem}`, `ben@example.com: ${problem}`])
    const erased = await app.call('POST', '/collections/c/erase', {
      ...{ field: 'id', value: 'ann@example.com' },
    })
    expect(erased.body.versions, erased.text).toBe(1)
    const task = await service().request('GET', `/task/${body.task_id}`)
    expect(task.body.progress_log).toContain(`ben@example.com: ${problem}`)
    expect(task.body.progress_log.join()).toMatch(/the record of leaf \d+: \/name is required/)
    expect(task.text).not.toContain('ann@')
    const { chain, schema } = await service().running.service.tenants.load(app.appId)
    for await (const block of chain.blocksFrom(1))
      for (const entry of block.entries) expect(entry?.body ?? '').not.toContain('ann@')
    const rows = await service().database.query<{ body: string }>(
      sql`SELECT body FROM ${sql.id(schema, 'definition')}`,
    )
    expect(JSON.stringify(rows)).not.toContain('ann@')
  })

  test('nor does the log get names of a record that the schema does not have', async () => {
    const app = await createData(service())
    await app.store('c', [{ id: 'x', ages: { 'ann@example.com': 'old' } }])
    const ages = { type: 'object', additionalProperties: { type: 'number' } }
    const schema = { type: 'object', required: ['name'], properties: { ages } }
    const { body } = await migrate(app, schema)
    expect(body.errors).toEqual([
      'x: /name is required',
      'x: /ages/ann@example.com must be of type number',
    ])
    const task = await service().request('GET', `/task/${body.task_id}`)
    expect(task.body.progress_log).toEqual(
      expect.arrayContaining(['x: /name is required', 'x: /ages/* must be of type number']),
    )
    const { chain } = await service().running.service.tenants.load(app.appId)
    for await (const block of chain.blocksFrom(1))
      for (const { header, body: text } of block.entries.flatMap((entry) => entry ?? []))
        if (header.type === 'definition') expect(text).not.toContain('ann@')
  })

  test('a migration reports the stated number of problems, and counts all', async () => {
    const app = await createData(service())
    const most = limits.migrationErrorsMax
    await app.store(
      'c',
      Array.from({ length: most + 1 }, () => ({})),
    )
    const { body } = await migrate(app, withDefault, { dryRun: true })
    expect(body.failed).toBe(most + 1)
    expect(body.errors).toHaveLength(most)
  })

  test('a record that is written while a migration runs follows the new schema too, or stops the migration; none slips through', async () => {
    const app = await createData(service())
    await app.store(
      'c',
      Array.from({ length: 300 }, (_, n) => ({ id: `old${n}`, name: 'x' })),
    )
    let running = true
    const statuses: number[] = []
    const write = async (who: number) => {
      for (let n = 0; running; n++) {
        const { status } = await app.store('c', [{ id: `new${who}-${n}`, name: 'y', n }])
        statuses.push(status)
      }
    }
    const writers = [0, 1, 2].map(write)
    const { body } = await migrate(app, withDefault, { batchSize: 20 })
    running = false
    await Promise.all(writers)
    expect(body).toMatchObject({ success: true, status: 'completed' })
    expect(new Set(statuses)).toEqual(new Set([200]))
    const { records } = (await app.list('c')).body
    expect(records.length).toBe(300 + statuses.length)
    expect(records.filter(({ kind }: Json) => kind !== 'plain')).toEqual([])
  })

  test('a store that was checked by the old schema is checked again where the new schema came first', async () => {
    const app = await createData(service())
    await app.create({ name: 'c' })
    const writes = Array.from({ length: 40 }, (_, n) => app.store('c', [{ id: `${n}`, odd: n }]))
    const schema_definition = { fields: { odd: { type: 'string' } } }
    const put = app.call('PUT', '/collections/c', { schema_definition })
    const more = Array.from({ length: 40 }, (_, n) => app.store('c', [{ id: `m${n}`, odd: n }]))
    expect((await put).status).toBe(200)
    const replies = await Promise.all([...writes, ...more])
    const { body } = await app.call('GET', '/collections/c?include_stats=true')
    const taken = replies.filter(({ status }) => status === 200)
    expect(body.metadata.document_count).toBe(taken.length)
    expect(replies.every(({ status }) => status === 200 || status === 422)).toBe(true)
    const { chain } = await service().running.service.tenants.load(app.appId)
    let isForbidden = false
    for await (const block of chain.blocksFrom(1)) {
      for (const entry of block.entries) {
        if (entry?.header.type === 'record') expect(isForbidden, 'a number came after').toBe(false)
        else isForbidden = JSON.parse(entry?.body ?? '').schema_definition !== null
      }
    }
    expect(isForbidden).toBe(true)
  })

  test('a collection has one migration at a time, and no other schema is put in force meanwhile', async () => {
    const app = await createData(service())
    await app.store(
      'c',
      Array.from({ length: 400 }, () => ({ name: 'x' })),
    )
    const first = migrate(app, withDefault, { batchSize: 1 })
    const second = await until(
      () => migrate(app, withDefault),
      ({ status }) => status === 409,
    )
    expect(second.body.code).toBe('CONFLICT')
    const put = await app.call('PUT', '/collections/c', { schema_definition: { fields: {} } })
    expect(put.status).toBe(409)
    const { body } = await first
    const end = await ended(app, body.task_id)
    expect(end.status).toBe('Completed')
    expect(end.progress_log.join()).toContain('400 records')
  })

  test('a migration that a restart broke off says so, and the same call completes it', async () => {
    const app = await createData(service())
    await app.store(
      'c',
      Array.from({ length: 1500 }, (_, n) => ({ id: `${n}`, name: 'x' })),
    )
    const first = migrate(app, withDefault, { batchSize: 1 }).catch(() => undefined)
    const tasks = await until(
      () => app.call('GET', '/tasks?limit=1000'),
      ({ body }) => body.tasks.some(({ operation_type }: Json) => operation_type === 'migrate'),
    )
    const task = tasks.body.tasks.find((one: Json) => one.operation_type === 'migrate').ticket_id
    // A drain would let the task end in its own time; a lost chain does not.
    const { chain } = await service().running.service.tenants.load(app.appId)
    await chain.close()
    await service().restart()
    await first
    const later = makeData(service(), app)
    const { status } = (await service().request('GET', `/task/${task}`)).body
    expect(status).toMatchObject({ Failed: { error: expect.any(String) } })
    expect((await later.call('GET', '/collections/c')).body.schema_definition).toBeNull()
    expect((await migrate(later, withDefault)).body).toMatchObject({ status: 'completed' })
    const { records } = (await later.list('c')).body
    expect(records.every(({ kind }: Json) => kind === 'plain')).toBe(true)
    expect(records).toHaveLength(1500)
  })

  test('a schema that could not be enforced, or not be indexed, is refused at once', async () => {
    const app = await createData(service())
    await app.create({ name: 'c' })
    const bad = await migrate(app, { fields: { n: { type: 'money' } } })
    expect(bad).toMatchObject({
      status: 400,
      body: { details: { field: '/schema/fields/n/type' } },
    })
    const fields = Object.fromEntries(
      Array.from({ length: limits.indexesPerCollectionMax + 1 }, (_, n) => [
        `f${n}`,
        { index: true },
      ]),
    )
    expect((await migrate(app, { fields })).status).toBe(409)
    const size = { batchSize: limits.migrationBatchMax + 1 }
    expect((await migrate(app, withDefault, size)).status).toBe(400)
    expect((await migrate(app, withDefault, { batchSize: limits.migrationBatchMax })).status).toBe(
      200,
    )
  })

  test('a migration makes the indexes of the new schema, and judges a JSON Schema as well', async () => {
    const app = await createData(service())
    await app.store('c', [{ id: 'a', n: 1 }])
    await migrate(app, { fields: { n: { type: 'number', index: true } } })
    expect((await app.call('GET', '/collections/c/indexes')).body.indexes).toMatchObject([
      { field_name: 'n' },
    ])
    const schema = { type: 'object', required: ['n'], properties: { n: { type: 'string' } } }
    expect((await migrate(app, schema)).body).toMatchObject({ success: false, failed: 1 })
    expect((await migrate(app, { ...schema, properties: {} })).body.success).toBe(true)
    expect((await app.store('c', [{ id: 'b' }])).status).toBe(422)
    expect(listIds(await app.list('c'))).toEqual(['a'])
  })

  test('events are never changed: they must be as the new schema wants them', async () => {
    const app = await createData(service())
    await app.create({ name: 'c', collection_type: 'event' })
    await app.store('c', [{ id: 'a', name: 'x' }])
    expect((await migrate(app, withDefault)).body).toMatchObject({ success: true, migrated: 0 })
    expect((await app.record('c', 'a')).body.record).toEqual({ id: 'a', name: 'x' })
  })
})

async function until<T>(ask: () => Promise<T>, isDone: (answer: T) => boolean): Promise<T> {
  const deadline = Date.now() + patienceMs
  for (;;) {
    const answer = await ask()
    if (isDone(answer) || Date.now() > deadline) return answer
    await new Promise((resolve) => setTimeout(resolve, pollMs))
  }
}
