import { limits } from '@tollbase/contract/limits'
import { createData, listIds } from '@tollbase/testing/data'
import { describePerEngine } from '@tollbase/testing/per-engine'
import { expect, test } from 'vitest'

describePerEngine('storeRecords', (service) => {
  test('a store is answered by a ticket, whose task is completed with the results', async () => {
    const app = await createData(service())
    const queued = await app.queue('notes', [{ id: 'a' }, { id: 'b' }])
    expect(queued.status).toBe(202)
    expect(queued.body).toMatchObject({
      ticket_id: expect.stringMatching(/^task_[0-9a-f]{32}$/),
      status: 'queued',
    })
    const task = async (prefix: string) =>
      (await service().request('GET', `/${prefix}/${queued.body.ticket_id}`)).body
    await expect.poll(async () => (await task('task')).status).toBe('Completed')
    const done = await task('tasks')
    expect(done.result.results).toMatchObject([
      { id: 'a', sequence: expect.any(Number), tx_hash: expect.stringMatching(/^0x[0-9a-f]{64}$/) },
      { id: 'b', namespace: `${app.appId}_notes` },
    ])
    expect(done.result.celestia_height).toBe(done.block_height)
    expect(listIds(await app.list('notes'))).toEqual(['a', 'b'])
  })

  test('a store with wait is answered by the result, and the tables show it', async () => {
    const app = await createData(service())
    const { status, body } = await app.store('notes', [{ id: 'a' }])
    expect(status).toBe(200)
    expect(body.results).toHaveLength(1)
    const read = await app.record('notes', 'a')
    expect(read.body).toMatchObject({
      record: { id: 'a' },
      block_height: body.results[0].block_height,
      sequence: body.results[0].sequence,
    })
  })

  test('an acknowledged record is in the log at once: the strict store after it finds it', async () => {
    const app = await createData(service())
    await app.create({ name: 'notes' })
    for (let round = 0; round < 20; round++) {
      expect((await app.queue('notes', [{ id: `r${round}` }])).status).toBe(202)
      const again = await app.queue('notes', [{ id: `r${round}` }], { strict: true })
      expect(again.status, `round ${round}`).toBe(409)
    }
  })

  test('a first store, and a first index, make the collection, and many of them at once make one', async () => {
    const app = await createData(service())
    const stores = await Promise.all(
      Array.from({ length: 10 }, (_, at) => app.store('fresh', [{ id: `r${at}` }])),
    )
    expect(stores.every(({ status }) => status === 200)).toBe(true)
    expect((await app.list('fresh')).body.total).toBe(10)
    await app.call('POST', '/indexes', { collection: 'indexed', field: 'a', type: 'string' })
    expect((await app.call('GET', '/collections')).body).toHaveLength(2)
  })

  test('one bad record refuses all of its call, and is named', async () => {
    const app = await createData(service())
    const { status, body } = await app.store('notes', [{ id: 'a' }, 7, { id: 'c' }])
    expect(status).toBe(400)
    expect(body.details.field).toBe('/data/1')
    expect((await app.list('notes')).status, 'not even the collection was made').toBe(404)
  })

  test('missing ids are made, and are not made twice', async () => {
    const app = await createData(service())
    const { body } = await app.store(
      'notes',
      Array.from({ length: 50 }, () => ({})),
    )
    const ids: string[] = body.results.map(({ id }: { id: string }) => id)
    for (const id of ids) expect(id).toMatch(/^[0-9A-HJKMNP-TV-Z]{26}$/)
    expect(new Set(ids).size).toBe(50)
    expect(listIds(await app.list('notes')).sort()).toEqual([...ids].sort())
  })

  test('a made id is appended behind the fields as sent', async () => {
    const app = await createData(service())
    await app.storeText('numbers', '{ "a": 1.50 }')
    expect((await app.list('numbers')).text).toMatch(/\{ "a": 1\.50,"id":"[0-9A-Z]{26}"\}/)
  })

  test('digits, order and spelling are kept as they were sent: in the entry and in what is read', async () => {
    const app = await createData(service())
    const text =
      '{"z":1.50,"id":"a","big":12345678901234567890,"tiny":1e-7,"exp":1E+2,"neg":-0.0,"u":"\\u00e9\\/","e":"é"}'
    expect((await app.storeText('numbers', ` ${text} `)).status).toBe(200)
    expect((await app.list('numbers')).text).toContain(text)
    expect((await app.record('numbers', 'a')).text).toContain(text)
    expect((await app.record('numbers', 'a', '/history')).text).toContain(text)
    const proof = await app.record('numbers', 'a', '/proof')
    expect(Buffer.from(proof.body.entry, 'base64').toString()).toContain(text)
    const found = await app.list('numbers', { find: { z: 1.5, exp: 100 } })
    expect(found.body.total).toBe(1)
  })

  test('the last record of a key in a call wins', async () => {
    const app = await createData(service())
    await app.store('notes', [
      { id: 'a', v: 1 },
      { id: 'b', v: 1 },
      { id: 'a', v: 2 },
    ])
    expect((await app.list('notes')).body.records).toEqual([
      { id: 'b', v: 1 },
      { id: 'a', v: 2 },
    ])
    // The number is so high that the tables need several statements.
    const many = Array.from({ length: 700 }, (_, at) => ({ id: `${at % 300}`, v: at }))
    await app.store('many', many)
    expect((await app.list('many')).body.records).toEqual(many.slice(-300))
    const counted = await app.call('GET', '/collections/many/stats')
    expect(counted.body).toMatchObject({ document_count: 300 })
  })

  test('odd data that can be kept are kept, and stop nothing behind them', async () => {
    const app = await createData(service())
    const odd = [
      '{"id":"a","":""}',
      '{"id":"b","__proto__":{"x":1},"constructor":null}',
      `{"id":"c","x":${'['.repeat(50)}${']'.repeat(50)}}`,
      '{"id":"d","x":1.7976931348623157e308,"y":5e-324}',
      `{"id":"e","x":"${'y'.repeat(100_000)}"}`,
      '{"id":"f","x":"\\u001e\\u0001\\t\\ud83e\\udd80"}',
      `{"id":"g","${'k'.repeat(5000)}":1}`,
    ]
    expect((await app.storeText('odd', odd.join(','))).status).toBe(200)
    const { body, text } = await app.list('odd')
    expect(body.total).toBe(odd.length)
    for (const record of odd) expect(text).toContain(record)
    await app.call('POST', '/indexes', { collection: 'odd', field_name: 'x' })
    expect((await app.store('odd', [{ id: 'z' }])).status).toBe(200)
  })

  test.each([
    ['', '""'],
    ['null', 'null'],
    ['true', 'true'],
    ['a list', '["a"]'],
    ['1.5', '1.5'],
    ['past 2^53', '9007199254740993'],
    ['a control character', '"a\\u0001"'],
    ['too long', `"${'x'.repeat(limits.recordKeyCharsMax + 1)}"`],
  ])('the id %s is refused, naming the field', async (_name, id) => {
    const app = await createData(service())
    const { status, body } = await app.storeText('notes', `{"id":${id}}`)
    expect(status).toBe(400)
    expect(body.details.field).toBe('/data/0/id')
  })

  test.each([
    ['a key twice', '{"id":"a","x":1,"x":2}'],
    ['a key twice, deep', '{"id":"a","x":[{"y":1,"y":1}]}'],
    ['a key twice by escapes', '{"id":"a","x":1,"\\u0078":2}'],
    ['NUL', '{"id":"a","x":"\\u0000"}'],
    ['NUL in a key', '{"id":"a","\\u0000":1}'],
    ['half a surrogate pair', '{"id":"a","x":"\\ud800"}'],
    ['half a surrogate pair in a key', '{"id":"a","\\udc00":1}'],
    ['1e400', '{"id":"a","x":1e400}'],
    ['-1e400', '{"id":"a","x":-1e400}'],
    ['1e-500', '{"id":"a","x":1e-500}'],
    ['too many digits', `{"id":"a","x":1${'0'.repeat(400)}}`],
    ['lists too deep in each other', `{"id":"a","x":${'['.repeat(100)}${']'.repeat(100)}}`],
  ])('a record with %s is refused, and named', async (_name, record) => {
    const app = await createData(service())
    const { status, body } = await app.storeText('notes', `{"id":"good"},${record}`)
    expect(status, JSON.stringify(body)).toBe(400)
    expect(body.details.field).toBe('/data/1')
  })

  test.each([
    ['no root', { data: [{}] }],
    ['a root without a collection', { root: 'app', data: [{}] }],
    ['an odd collection', { root: 'app-x::a b', data: [{}] }],
    ['no data', { root: 'ROOT' }],
    ['an empty list', { root: 'ROOT', data: [] }],
    ['data that is no list', { root: 'ROOT', data: {} }],
    ['strict that is no boolean', { root: 'ROOT', data: [{}], strict: 'yes' }],
  ])('a store with %s is refused with 400', async (_name, body) => {
    const app = await createData(service())
    const sent =
      'root' in body && body.root === 'ROOT' ? { ...body, root: `${app.appId}::notes` } : body
    const { status } = await service().request('POST', '/store', {
      body: sent,
      headers: app.headers,
    })
    expect(status).toBe(400)
  })

  test('a record of the largest size is stored, and one byte more refuses the call', async () => {
    const app = await createData(service())
    const record = (bytes: number) => {
      const head = '{"id":"a","x":"'
      return `${head}${'x'.repeat(bytes - head.length - 2)}"}`
    }
    expect((await app.storeText('large', record(limits.recordBytesMax))).status).toBe(200)
    expect(await app.storeText('large', record(limits.recordBytesMax + 1))).toMatchObject({
      status: 413,
      body: { code: 'PAYLOAD_TOO_LARGE', details: { record: 0 } },
    })
  })

  test.each([
    ['without', false, ['a', 'b', 'c', 'd', 'e']],
    ['with', true, ['a', 'd', 'e']],
  ])(
    'megabytes of records %s a unique field are what the later version says, within a store and over two',
    async (_name, unique, left) => {
      const app = await createData(service())
      await app.create({ name: 'long', schema_definition: { fields: { u: { unique } } } })
      const long = (id: string, u: number, letter: string) => ({ id, u, x: letter.repeat(200_000) })
      const first = ['a', 'b', 'c', 'd'].map((id, at) => long(id, at < 2 ? 1 : at, 'x'))
      const second = [long('a', 1, 'y'), long('e', 2, 'ö'), long('a', 1, 'z'), long('e', 2, '€')]
      for (const data of [first, second]) {
        const stored = await app.store('long', data)
        expect(stored.status, stored.text.slice(0, 300)).toBe(200)
      }
      const listed = await app.list('long', { sortBy: 'id' })
      expect(listIds(listed)).toEqual(left)
      expect(listed.body.records.map(({ x }: { x: string }) => x[0])).toEqual(
        left.map((id) => ({ a: 'z', e: '€' })[id] ?? 'x'),
      )
    },
  )

  test('a call stores the most records that the limit allows, and one more is refused', async () => {
    const app = await createData(service())
    const data = Array.from({ length: limits.recordsPerStoreMax }, (_, id) => ({ id }))
    const stored = await app.queue('many', data)
    expect(stored.status, stored.text.slice(0, 300)).toBe(202)
    expect((await app.queue('many', [...data, { id: 'x' }])).status).toBe(400)
    await expect
      .poll(async () => (await app.list('many', { limit: 0 })).body.total)
      .toBe(limits.recordsPerStoreMax)
  })

  test.each(['blob', 'api'])(
    'records cannot be stored in a collection of type %s',
    async (type) => {
      const app = await createData(service())
      await app.create({ name: 'other', collection_type: type })
      expect((await app.store('other', [{ id: 'a' }])).status).toBe(409)
    },
  )
})
