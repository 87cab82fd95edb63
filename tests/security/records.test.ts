import { limits } from '@tollbase/contract/limits'
import { describe, expect, test } from 'vitest'
import { createData, type Data } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'

/** The record's text must come back to the byte by every way there is to read it. */
async function expectKept(data: Data, key: string, text: string): Promise<void> {
  expect((await data.list('c', { find: { id: key } })).text).toContain(`"records":[${text}]`)
  expect((await data.list('c')).text).toContain(text)
  expect((await data.record('c', key)).text).toContain(`"record":${text},`)
  expect((await data.record('c', key, '/history')).text).toContain(`"record":${text},`)
  const { body } = await data.record('c', key, '/proof')
  const entry = Buffer.from(body.entry, 'base64').toString()
  expect(entry.slice(entry.indexOf('\n') + 1)).toBe(text)
}

describe('records that were made to confuse', () => {
  withService((service) => {
    test.each<[string, string]>([
      ['an integer past 2^53', '9007199254740993'],
      ['an integer of 40 digits', '1234567890123456789012345678901234567890'],
      ['a fraction of 30 digits', '0.123456789012345678901234567891'],
      ['zeros at the end', '1.500'],
      ['minus zero', '-0'],
      ['minus zero with a fraction', '-0.0'],
      ['an exponent', '1E+2'],
      ['the largest double', '1.7976931348623157e308'],
      ['what a double holds as zero', '1e-400'],
      ['a number of 400 digits', '1'.padEnd(308, '0')],
      ['a key __proto__', '{"__proto__":{"isAdmin":true}}'],
      ['keys of every object', '{"constructor":1,"toString":2,"hasOwnProperty":3,"valueOf":null}'],
      ['keys like fields of ours', '{"key":1,"leaf":2,"deleted":true,"superseded_by":3,"body":4}'],
      ['keys with dots and signs', '{"a.b":1,"$where":"x","":2,"::":3,"a/b~c":4}'],
      ['every escape', '"\\u0001\\b\\f\\n\\r\\t\\"\\\\\\/\\u2028\\ud83d\\ude00"'],
      ['text that looks like SQL', `"'; DROP TABLE c; -- $1 \\\\ %s"`],
      ['characters of every width', '"aä€💥\u0301\u200f\ufeff"'],
      ['blanks inside', '{ "b" : [ 1 ,\t2 ] ,\n"a":{ } }'],
    ])('%s comes back as it was sent, by list, key, history and proof', async (_, value) => {
      const data = await createData(service())
      await data.call('POST', '/indexes', { collection: 'c', field_name: 'v' })
      const text = `{"id":"k","v":${value}}`
      const stored = await data.storeText('c', text)
      expect(stored.status, stored.text).toBe(200)
      await expectKept(data, 'k', text)
    })

    test.each<[string, string]>([
      ['1e400', '1e400'],
      ['-1e400', '-1e400'],
      ['1e-500', '1e-500'],
      ['a number of 401 digits', '1'.repeat(401)],
      ['U+0000', '"a\\u0000b"'],
      ['U+0000 in a key', '{"\\u0000":1}'],
      ['half a surrogate pair', '"\\ud800"'],
      ['a reversed surrogate pair', '"\\udc00\\ud800"'],
      ['a key twice', '{"a":1,"a":2}'],
      ['a key twice in two spellings', '{"a":1,"\\u0061":2}'],
      ['__proto__ twice', '{"__proto__":1,"__proto__":2}'],
    ])('%s is refused, naming the record, and nothing of the call is stored', async (_, value) => {
      const data = await createData(service())
      const stored = await data.storeText('c', `{"id":"a"},{"id":"b","v":${value}}`)
      expect(stored.status, stored.text).toBe(400)
      expect(stored.body.details.field).toBe('/data/1')
      expect((await data.store('c', [{ id: 'z' }])).status).toBe(200)
      expect((await data.list('c')).body.total).toBe(1)
    })

    test.each([
      ['{"id":9007199254740993}', '/data/0/id'],
      ['{"id":1.5}', '/data/0/id'],
      ['{"id":""}', '/data/0/id'],
      ['{"id":null}', '/data/0/id'],
      ['{"id":[]}', '/data/0/id'],
      ['{"id":{"a":1}}', '/data/0/id'],
      ['{"id":true}', '/data/0/id'],
      ['{"id":"a\\nb"}', '/data/0/id'],
      ['{"id":"a\\u001eb"}', '/data/0/id'],
      ['[]', '/data/0'],
      ['7', '/data/0'],
      ['null', '/data/0'],
    ])('%s is no record, and the field is named', async (text, field) => {
      const data = await createData(service())
      const stored = await data.storeText('c', text)
      expect(stored, stored.text).toMatchObject({ status: 400, body: { details: { field } } })
    })

    test('a key of every strange kind finds its record again, and so does a key of the largest size', async () => {
      const data = await createData(service())
      const keys = [
        'a/b',
        'a//b/',
        '..',
        '.',
        '%2f',
        '?x=1#y',
        'ä ö',
        'history',
        '__proto__',
        "';--",
        '\u2028',
        'x'.repeat(limits.recordKeyCharsMax),
        'ä'.repeat(limits.recordKeyCharsMax),
        '💥'.repeat(limits.recordKeyCharsMax / 2),
        '€'.repeat(limits.recordKeyCharsMax),
      ]
      const stored = await data.store(
        'c',
        keys.map((id) => ({ id })),
      )
      expect(stored.status, stored.text).toBe(200)
      for (const key of keys) {
        // fetch tidies up dots in addresses, which is its own affair.
        if (key === '.' || key === '..') continue
        const found = await data.record('c', key)
        expect(found.body.record, `${key.slice(0, 20)} ${found.text}`).toEqual({ id: key })
        expect((await data.list('c', { find: { id: key } })).body.total).toBe(1)
      }
      const past = await data.store('c', [{ id: 'x'.repeat(limits.recordKeyCharsMax + 1) }])
      expect(past, past.text).toMatchObject({
        status: 400,
        body: { details: { field: '/data/0/id' } },
      })
    })

    test('an index never makes a write fail, and never changes an answer', async () => {
      const data = await createData(service())
      const fields = ['v', 'w', 'x.y', 'z']
      for (const field_name of fields)
        await data.call('POST', '/indexes', { collection: 'c', field_name })
      await data.call('POST', '/indexes', { collection: 'c', fields })
      await data.call('POST', '/indexes', { collection: 'c', field_name: 'h', index_type: 'hash' })
      await data.call('POST', '/indexes', {
        collection: 'c',
        field_name: 'u',
        unique_constraint: true,
      })
      const values = [
        'x'.repeat(900_000),
        '💥'.repeat(200_000),
        randomText(100_000),
        Array.from({ length: 50_000 }, (_, at) => at),
        Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`k${at}`, at])),
        1e308,
        -5e-324,
        '',
        null,
        {},
        [],
      ]
      for (const [at, value] of values.entries()) {
        const record = { id: `k${at}`, v: value, w: at, x: { y: at }, z: null, h: at, u: at }
        const stored = await data.store('c', [record])
        expect(stored.status, `${at} ${stored.text.slice(0, 300)}`).toBe(200)
      }
      const digits = '9'.repeat(308)
      const long = await data.storeText(
        'c',
        `{"id":"n","v":${digits},"w":${digits},"h":${digits},"u":${digits}}`,
      )
      expect(long.status, long.text).toBe(200)
      expect((await data.list('c', { select: { id: true } })).body.total).toBe(values.length + 1)
      // The first text is longer than a request may ask for.
      for (const find of [{ v: values[2] }, { v: '' }, { u: 3 }, { h: 3 }])
        expect((await data.list('c', { find, select: { id: true } })).body.total).toBe(1)
    })

    test('conditions on fields that every JavaScript object has mean those of the record', async () => {
      const data = await createData(service())
      await data.storeText('c', '{"id":"a","__proto__":{"x":1},"constructor":"y"},{"id":"b"}')
      for (const [find, count] of [
        ['{"constructor":"y"}', 1],
        ['{"__proto__":{"x":{"is":1}}}', 1],
        ['{"toString":{"exists":true}}', 0],
        ['{"hasOwnProperty":null}', 2],
      ] as const) {
        const raw = `{"root":"${data.appId}::c","find":${find}}`
        const found = await service().request('POST', '/list', { raw, headers: data.headers })
        expect(found.status, found.text).toBe(200)
        expect(found.body.total, find).toBe(count)
      }
      const raw = `{"root":"${data.appId}::c","select":{"__proto__":true,"constructor":true}}`
      const found = await service().request('POST', '/list', { raw, headers: data.headers })
      expect(found.text).toContain('{"__proto__":{"x":1},"constructor":"y"},{}')
    })

    test.each<[string, object, string]>([
      ['a limit of text', { limit: '10' }, '/limit'],
      ['a fraction', { limit: 1.5 }, '/limit'],
      ['a negative limit', { limit: -1 }, '/limit'],
      ['a limit past the largest', { limit: limits.rowsMax + 1 }, '/limit'],
      ['an offset past the largest', { offset: limits.offsetMax + 1 }, '/offset'],
      ['a negative offset', { offset: -1 }, '/offset'],
      ['a sort by an object', { sortBy: {} }, '/sortBy'],
      ['a sort by nothing', { sortBy: '' }, '/sortBy'],
      ['a sort by U+0000', { sortBy: 'a\u0000' }, '/sortBy'],
      ['history that is no truth', { include_history: 'yes' }, '/include_history'],
      ['conditions in a list', { find: [1] }, '/find'],
      ['a selection in a list', { select: ['a'] }, '/select'],
      ['a find that is text', { find: 'id' }, '/find'],
      ['an endless pattern', { find: { a: { regExpMatches: '(a*)*' } } }, '/find/a/regExpMatches'],
      [
        'a pattern too long',
        { find: { a: { regExpMatches: 'a'.repeat(513) } } },
        '/find/a/regExpMatches',
      ],
      ['an empty field', { find: { '': 1 } }, '/find/'],
      ['an operator of Mongo', { find: { a: { $gt: 1 } } }, '/find/a/$gt'],
    ])('%s is refused, and the field is named', async (_, query, field) => {
      const data = await createData(service())
      await data.store('c', [{ id: 'a' }])
      const found = await data.list('c', query)
      expect(found.status, found.text).toBe(400)
      expect(found.body.details.field).toContain(field)
    })

    test('pages at the edges are empty or whole', async () => {
      const data = await createData(service())
      await data.store('c', [{ id: 'a' }, { id: 'b' }])
      for (const [query, count] of [
        [{ limit: 0 }, 0],
        [{ limit: limits.rowsMax }, 2],
        [{ offset: limits.offsetMax }, 0],
        [{ limit: 1, offset: 1 }, 1],
      ] as const) {
        const { body } = await data.list('c', query)
        expect(body.records).toHaveLength(count)
        expect(body.total).toBe(2)
      }
    })

    test('a selection has the most fields that the limit allows, and one more is refused', async () => {
      const data = await createData(service())
      await data.store('c', [{ id: 'a', f1: { x: 1 } }])
      const select = (count: number) =>
        Object.fromEntries(Array.from({ length: count }, (_, at) => [`f${at}`, true]))
      const at = await data.list('c', { select: select(limits.selectedFieldsMax) })
      expect(at.body.records).toEqual([{ f1: { x: 1 } }])
      const past = await data.list('c', { select: select(limits.selectedFieldsMax + 1) })
      expect(past.status, past.text).toBe(400)
      expect(past.body.details.field).toContain('/select')
    })
  })
})

/** Makes text that no compression makes small. */
function randomText(length: number): string {
  let state = 7
  return Array.from({ length }, () => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0
    return String.fromCharCode(0x4e00 + ((state >>> 8) % 20_000))
  }).join('')
}
