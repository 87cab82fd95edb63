import { expect, test } from 'vitest'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { createData, type Data } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'

/** Checks that an application works on, whatever it was told to define: its next records are in its tables. */
async function expectWorking(data: Data): Promise<void> {
  const stored = await data.store('after', [{ id: 'a', name: 'x' }])
  expect(stored.status, stored.text).toBe(200)
  expect((await data.list('after')).body.total).toBe(1)
}

withService((service) => {
  test.each<[string, unknown, string]>([
    ['an empty name', { '': { index: true } }, '/schema_definition/fields/'],
    ['an empty part', { 'a..b': { index: true } }, '/schema_definition/fields/a..b'],
    ['U+0000 in a name', { 'a\u0000': { index: true } }, '/schema_definition/fields/a\u0000'],
    [
      'half a surrogate pair in a name',
      { '\ud800': { unique: true } },
      '/schema_definition/fields/\ud800',
    ],
    [
      'a name too long',
      { ['x'.repeat(257)]: { index: true } },
      `/schema_definition/fields/${'x'.repeat(257)}`,
    ],
    [
      'a name too deep',
      { [Array(17).fill('a').join('.')]: { index: true } },
      `/schema_definition/fields/${Array(17).fill('a').join('.')}`,
    ],
    ['a default with U+0000', { a: { default: 'x\u0000' } }, '/schema_definition/fields/a/default'],
    [
      'a default with half a pair',
      { a: { default: { b: ['\ud800'] } } },
      '/schema_definition/fields/a/default',
    ],
    [
      'a default for a name with U+0000',
      { 'a\u0000': { default: 1 } },
      '/schema_definition/fields/a\u0000',
    ],
    [
      'a pattern that is no text',
      { a: { validation: { pattern: 5 } } },
      '/schema_definition/fields/a/validation/pattern',
    ],
    [
      'an enum that is no list',
      { a: { validation: { enum: 5 } } },
      '/schema_definition/fields/a/validation/enum',
    ],
    [
      'a bound that is no number',
      { a: { validation: { min: 'x' } } },
      '/schema_definition/fields/a/validation/min',
    ],
    [
      'a validation that is no object',
      { a: { validation: 'x' } },
      '/schema_definition/fields/a/validation',
    ],
  ])('a schema of fields with %s is refused with its place', async (_, fields, pointer) => {
    const data = await createData(service())
    const created = await data.create({ name: 'c', schema_definition: { fields } })
    expect(created.status, created.text).toBe(400)
    expect(created.body.details.field).toBe(pointer)
    await expectWorking(data)
  })

  test.each<[string, object]>([
    ['U+0000', { primary_column: 'a\u0000' }],
    ['half a surrogate pair', { primary_column: '\ud800' }],
  ])('a primary column with %s is refused', async (_, settings) => {
    const data = await createData(service())
    const created = await data.create({ name: 'c', ...settings })
    expect(created.status, created.text).toBe(400)
    expect(created.body.details.field).toBe('/primary_column')
    await expectWorking(data)
  })

  test.each(['toString', '__proto__', 'constructor', 'a.b', 'ä', 'deleted', 'with "quotes"'])(
    'a primary column called %s is a column like any other: made where absent, found where given',
    async (column) => {
      const data = await createData(service())
      expect((await data.create({ name: 'c', primary_column: column })).status).toBe(201)
      const given = `{${JSON.stringify(column)}:"k1","n":1}`
      const stored = await data.storeText('c', `${given},{"n":2}`)
      expect(stored.status, stored.text).toBe(200)
      expect(stored.body.results[0].id).toBe('k1')
      const made = stored.body.results[1].id
      const { text } = await data.record('c', made)
      expect(text).toContain(`{"n":2,${JSON.stringify(column)}:"${made}"}`)
      expect((await data.record('c', 'k1')).text).toContain(given)
    },
  )

  test.each(['toString', '__proto__', 'constructor', 'hasOwnProperty'])(
    'a rule for a field called %s judges that field and nothing inherited',
    async (name) => {
      const data = await createData(service())
      const rule = JSON.parse(`{${JSON.stringify(name)}:{"type":"string","required":true}}`)
      const created = await data.create({ name: 'c', schema_definition: { fields: rule } })
      expect(created.status, created.text).toBe(201)
      const optional = JSON.parse(`{${JSON.stringify(name)}:{"type":"string"}}`)
      await data.create({ name: 'free', schema_definition: { fields: optional } })
      expect((await data.store('free', [{ id: 'a' }])).status).toBe(200)
      expect((await data.store('c', [{ id: 'a' }])).status).toBe(422)
      const text = `{"id":"b",${JSON.stringify(name)}:"x"}`
      expect((await data.storeText('c', text)).status).toBe(200)
    },
  )

  test('a default of the primary column is not added beside the key that is made', async () => {
    const data = await createData(service())
    const fields = { id: { default: 'x' }, n: { default: 1 } }
    await data.create({ name: 'c', schema_definition: { fields } })
    const stored = await data.storeText('c', '{}')
    expect(stored.status, stored.text).toBe(200)
    const { id } = stored.body.results[0]
    expect((await data.record('c', id)).text).toContain(`"record":{"id":"${id}","n":1}`)
  })

  test('defaults cannot make a call larger than a block', async () => {
    const data = await createData(service())
    const fields = { pad: { default: 'x'.repeat(200_000) } }
    expect((await data.create({ name: 'c', schema_definition: { fields } })).status).toBe(201)
    const refused = await data.store(
      'c',
      Array.from({ length: 1000 }, () => ({})),
    )
    expect(refused).toMatchObject({ status: 413, body: { code: 'PAYLOAD_TOO_LARGE' } })
    await expectWorking(data)
  })

  test('a schema cannot ask for more indexes than a collection may have, or for one index twice', async () => {
    const data = await createData(service())
    const fields = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`f${at}`, { index: true }]))
    const past = await data.create({ name: 'past', schema_definition: { fields: fields(33) } })
    expect(past, past.text).toMatchObject({ status: 409, body: { code: 'CONFLICT' } })
    const at = await data.create({ name: 'at', schema_definition: { fields: fields(32) } })
    expect(at.body.indexes).toHaveLength(32)
    const more = await data.call('PUT', '/collections/at', {
      schema_definition: { fields: { f99: { index: true } } },
    })
    expect(more, more.text).toMatchObject({ status: 409, body: { code: 'CONFLICT' } })
  })

  test('a schema cannot give an index the name of another one', async () => {
    const data = await createData(service())
    await data.create({ name: 'c' })
    await data.call('POST', '/indexes', { collection: 'c', field_name: 'a', name: 'c_b_idx' })
    const changed = await data.call('PUT', '/collections/c', {
      schema_definition: { fields: { b: { index: true } } },
    })
    const names = changed.body.indexes.map(({ name }: { name: string }) => name)
    expect([changed.status, new Set(names).size], changed.text).toEqual([200, 2])
  })

  test.each([
    ['a bracket that closes nothing', ']', ']'],
    ['an escaped sign', '\\-\\ \\!', '- !'],
    ['a brace', '\\{a\\}', '{a}'],
    ['case set aside', '(?i)^wien$', 'WIEN'],
  ])('a pattern with %s judges records as it filters them', async (_, pattern, value) => {
    const data = await createData(service())
    const fields = { a: { validation: { pattern } } }
    const created = await data.create({ name: 'c', schema_definition: { fields } })
    expect(created.status, created.text).toBe(201)
    expect((await data.store('c', [{ id: 'no', a: 'Graz' }])).status).toBe(422)
    expect((await data.store('c', [{ id: 'yes', a: value }])).status).toBe(200)
    const found = await data.list('c', { find: { a: { regExpMatches: pattern } } })
    expect(found.body.total).toBe(1)
  })

  test.each(['^(a|a)*$', '^(a|aa)*$', '^a*a*a*a*a*a*a*a*a*a*a*a*$', '^(a?){30}a{30}$'])(
    'a record that the pattern %s could be tried on for ages holds up nobody',
    async (pattern) => {
      const data = await createData(service())
      const rules = [
        { fields: { a: { validation: { pattern } } } },
        { properties: { a: { type: 'string', pattern } } },
      ]
      for (const [at, schema_definition] of rules.entries()) {
        const created = await data.create({ name: `c${at}`, schema_definition })
        expect(created.status, created.text).toBe(201)
        const begin = performance.now()
        const stored = await data.store(`c${at}`, [{ id: 'x', a: `${'a'.repeat(5_000)}!` }])
        expect([413, 422], stored.text).toContain(stored.status)
        expect(performance.now() - begin).toBeLessThan(20_000)
      }
    },
    // A pattern that backtracks would hold the whole process, and with it this test.
    60_000,
  )

  test('recordSchemaStepsMax: a record whose texts hold up all others is 413, and many records that do not are stored', async () => {
    const data = await createData(service())
    const fields = {
      a: { validation: { pattern: '^[a-z]+$' } },
      b: { validation: { pattern: '[a-z]{50}Z' } },
    }
    await data.create({ name: 'c', schema_definition: { fields } })
    const begin = performance.now()
    const held = await data.store('c', [{ id: 'x', b: 'a'.repeat(20_000) }])
    expect(held, held.text).toMatchObject({ status: 413, body: { code: 'PAYLOAD_TOO_LARGE' } })
    expect(performance.now() - begin).toBeLessThan(5_000)
    const many = Array.from({ length: 1_000 }, (_, at) => ({ id: `k${at}`, a: 'a'.repeat(1_000) }))
    const stored = await data.store('c', many)
    expect(stored.status, stored.text).toBe(200)
  })

  test('schemaStepsMax: a call with more text than its patterns can be tried on is 413', async () => {
    const data = await createData(service())
    const fields = { a: { validation: { pattern: '^([a-z]+|[a-z]+x|[a-z]+y)$' } } }
    await data.create({ name: 'c', schema_definition: { fields } })
    const begin = performance.now()
    const many = Array.from({ length: 1_500 }, (_, at) => ({ id: `k${at}`, a: 'a'.repeat(3_000) }))
    const stored = await data.store('c', many)
    expect(stored, stored.text).toMatchObject({ status: 413, body: { code: 'PAYLOAD_TOO_LARGE' } })
    expect(performance.now() - begin).toBeLessThan(30_000)
    await expectWorking(data)
  })

  test.each<[string, unknown]>([
    ['a reference to nothing', { $ref: '#/$defs/none' }],
    ['a reference to itself', { $ref: '#' }],
    ['a keyword of the wrong type', { required: 5 }],
    ['an enum that is no list', { properties: { a: { enum: 5 } } }],
    ['alternatives that are no list', { anyOf: 7 }],
    ['a multiple of nothing', { properties: { a: { multipleOf: 0 } } }],
    ['a type that is none', { type: 'nope' }],
    ['properties that are no object', { properties: [1, 2] }],
    ['a negative length', { properties: { a: { minLength: -1 } } }],
    ['a property called __proto__', JSON.parse('{"properties":{"__proto__":{"type":"string"}}}')],
  ])(
    'a JSON Schema with %s is refused, or judges records, and breaks nothing',
    async (_, schema_definition) => {
      const data = await createData(service())
      const created = await data.create({ name: 'c', schema_definition })
      expect([201, 400], created.text).toContain(created.status)
      if (created.status === 201) {
        const stored = await data.store('c', [{ id: 'x', a: 7 }])
        expect([200, 422], stored.text).toContain(stored.status)
      }
      await expectWorking(data)
    },
  )

  test('names, descriptions and settings keep any text, and a restart reads them as they were', async () => {
    const odd = 'a\u0000b \ud800 💥 "\\ \u2028'
    const data = await createData(service())
    const changed = await data.call('PATCH', '', { name: odd, description: odd })
    expect(changed.body).toMatchObject({ name: odd, description: odd })
    const created = await data.create({ name: 'c', namespace: odd, access_policy: { odd } })
    expect(created.body).toMatchObject({ namespace: odd, access_policy: { odd } })
    expect(created.body._warning).toContain('private')
    const key = await data.call('POST', '/keys', { name: odd })
    expect(key.body.name).toBe(odd)
    await service().restart()
    expect((await data.call('GET', '')).body.name).toBe(odd)
    expect((await data.call('GET', '/collections/c')).body.namespace).toBe(odd)
    await expectWorking(data)
  })

  test.each(['2999-01-01T23:59:60Z', '2999-02-30T00:00:00Z', 'tomorrow', ''])(
    'a key that expires at %o is refused, or lives as other keys do',
    async (expires_at) => {
      const data = await createData(service())
      const made = await data.call('POST', '/keys', { permissions: ['Read'], expires_at })
      if (made.status === 400) return
      expect(made.status, made.text).toBe(201)
      const headers = { 'x-app-key': made.body.key }
      const used = await service().request('GET', `/api/apps/${data.appId}/stats`, { headers })
      expect(used.status).toBe(200)
      const rotated = await data.call('POST', `/keys/${made.body.key_hash}/rotate`, {})
      expect(rotated.status, rotated.text).toBe(200)
    },
  )

  test('the audit finds every table as the entries make it after all of these definitions', async () => {
    const report = await service().whileStopped((config) => audit(config, () => undefined))
    expect(report).toMatchObject({ equal: true })
  })
})
