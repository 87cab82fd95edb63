import { limits } from '@tollbase/contract/limits'
import { describe, expect, test } from 'vitest'
import { Fault } from './fault.ts'
import { parseJsonBytes, parseLongJson } from './json-body.ts'

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

test('a long body is the same whether it is read at once or in turns, and broken UTF-8 is refused in both', async () => {
  const value = { root: 'a::b', data: Array.from({ length: 3 }, () => 'aä€😀'.repeat(100_000)) }
  const bytes = Buffer.from(JSON.stringify(value))
  expect(await parseLongJson(bytes)).toEqual(parseJsonBytes(bytes))
  expect((await parseLongJson(bytes)).value).toEqual(value)
  bytes[1_000_000] = 0xff
  await expect(parseLongJson(bytes)).rejects.toMatchObject({
    message: 'The body is not valid UTF-8',
  })
  expect(() => parseJsonBytes(bytes)).toThrow('The body is not valid UTF-8')
})
