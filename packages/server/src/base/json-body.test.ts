import { limits } from '@tollbase/contract/limits'
import { describe, expect, test } from 'vitest'
import { Fault } from './fault.ts'
import { parseJsonBytes, parseLongJson } from './json-body.ts'
import { listItemTexts } from './json-text.ts'

const refusal = (work: () => unknown): Fault => {
  try {
    work()
  } catch (error) {
    if (error instanceof Fault) return error
    throw error
  }
  throw new Error('nothing was refused')
}

describe('bodies of requests', () => {
  test.each([
    ['bytes that are not UTF-8', Buffer.from([0x7b, 0xff, 0x7d])],
    ['text that is not JSON', Buffer.from('{"a":')],
    ['a byte order mark', Buffer.from('\ufeff{}')],
  ])('a body with %s is refused with 400', (_, bytes) => {
    expect(refusal(() => parseJsonBytes(bytes)).status).toBe(400)
  })

  test('a body that is empty is no value', () => {
    expect(parseJsonBytes(Buffer.alloc(0)).value).toBeUndefined()
  })
})

test.each([
  ['nesting', limits.bodyDepthMax, (count: number) => '['.repeat(count) + ']'.repeat(count)],
  [
    'members of one object',
    limits.objectMembersMax,
    (count: number) => `{${Array.from({ length: count }, (_, at) => `"${at}":[1,{}]`).join(',')}}`,
  ],
  [
    'items of one list',
    limits.bodyListItemsMax,
    (count: number) => `[${Array.from({ length: count }, (_, at) => at % 10).join(',')}]`,
  ],
  [
    'values',
    Math.floor((limits.bodyValuesMax - 2) / 8),
    (count: number) => `[${Array.from({ length: count }, () => '[[],[],[]]').join(',')}]`,
  ],
  [
    'blanks before a value',
    limits.bodyBlanksMax - 1,
    (count: number) => `[0,${' '.repeat(count)}1]`,
  ],
  [
    'characters of one text',
    limits.bodyTextCharsMax - 2,
    (count: number) => `["${'a'.repeat(count)}"]`,
  ],
])(
  'a body with the most %s is read at once and in turns, and one more is refused in both',
  async (_what, most, make) => {
    const [good, bad] = [Buffer.from(make(most)), Buffer.from(make(most + 1))]
    expect((await parseLongJson(good)).value).toEqual(parseJsonBytes(good).value)
    const { status, code } = refusal(() => parseJsonBytes(bad))
    expect([400, 413]).toContain(status)
    await expect(parseLongJson(bad)).rejects.toMatchObject({ code })
  },
)

test.each([
  ['more blanks than are read at once', `[1${`,${' '.repeat(60_000)}"a"`.repeat(50)}]`],
  ['a long text behind blanks', `[1,${' '.repeat(60_000)}"${'a'.repeat(1_000_000)}"]`],
  ['texts that end where a part does', JSON.stringify(Array(5).fill('\\"'.repeat(200_000)))],
])('a long body with %s is read', async (_what, text) => {
  expect((await parseLongJson(Buffer.from(text))).value).toEqual(JSON.parse(text))
  await expect(parseLongJson(Buffer.from(`${text}]`))).rejects.toMatchObject({
    code: 'VALIDATION_FAILED',
  })
})

test('a long body is the same whether it is read at once or in turns, and broken UTF-8 is refused in both', async () => {
  const data = Array.from({ length: 3 }, (_, at) => ({
    'ä€': at,
    x: 'aä€😀\n\u00e9'.repeat(60_000),
  }))
  const text = JSON.stringify({ root: 'a::b', data })
  const bytes = Buffer.from(text)
  const [long, short] = [await parseLongJson(bytes), parseJsonBytes(bytes)]
  expect(long.value).toEqual(short.value)
  const texts = data.map((one) => JSON.stringify(one))
  for (const { source } of [long, short]) {
    expect(source.cut(0, source.length)).toBe(text)
    expect(listItemTexts(source, 'data')).toEqual(texts)
  }
  bytes[1_000_000] = 0xff
  await expect(parseLongJson(bytes)).rejects.toMatchObject({
    message: 'The body is not valid UTF-8',
  })
  expect(() => parseJsonBytes(bytes)).toThrow('The body is not valid UTF-8')
})

test.each([
  ['a key twice, once as an escape', '{"é":1,"\\u00e9":2}', 'has the key "é" twice'],
  ['half of a surrogate pair', '{"a":"€\\ud83d"}', 'contains half of a surrogate pair'],
  ['NUL', '{"€":"€\\u0000"}', 'U+0000'],
])(
  'a long body beyond ASCII with a record that has %s is refused as a short one is',
  async (_what, record, problem) => {
    const rest = Array.from({ length: 100_000 }, () => '{"a":"€"}').join(',')
    const { source } = await parseLongJson(Buffer.from(`{"data":[{},${record},${rest}]}`))
    const { details, message } = refusal(() => listItemTexts(source, 'data'))
    expect(details).toMatchObject({ field: '/data/1' })
    expect(message).toContain(problem)
  },
)

test('the place where a long body beyond ASCII breaks is told in lines and columns as editors count', async () => {
  const text = `{"a":"€€",\n"ä": 1 2, "x":"${'é'.repeat(100_000)}"}`
  await expect(parseLongJson(Buffer.from(text))).rejects.toMatchObject({
    message: 'The body is not valid JSON: it breaks at line 2, column 8',
  })
})
