import { describe, expect, it } from 'vitest'
import { parseFind } from './find.ts'
import { removeDollars } from './remove-dollars.ts'

describe('conditions with Mongo names', () => {
  it.each([
    [{ price: { $gte: 5, $lt: 9 } }, { price: { gte: 5, lt: 9 } }],
    [
      { a: { $eq: 'x' }, 'b.c': { $ne: null } },
      { a: 'x', 'b.c': { ne: null } },
    ],
    [
      { a: { $in: [1, 2] }, b: { $nin: [3] } },
      { a: { in: [1, 2] }, b: { notIn: [3] } },
    ],
    [
      { $or: [{ a: { $gt: 1 } }, { b: { $exists: true } }] },
      { or: [{ a: { gt: 1 } }, { b: { exists: true } }] },
    ],
    [{ $nor: [{ a: 1 }, { b: 2 }] }, { not: [{ or: [{ a: 1 }, { b: 2 }] }] }],
    [{ a: { $not: { $regex: '^x' } } }, { a: { not: { regExpMatches: '^x' } } }],
    [{ a: { gt: 1 } }, { a: { gt: 1 } }],
    [null, null],
  ])('a find with Mongo names means what the plain names do: %j', (find, plain) => {
    expect(parseFind(removeDollars(find))).toEqual(parseFind(plain))
  })

  it('a find with Mongo names is refused where it says one thing twice, or what does not exist', () => {
    expect(() => removeDollars({ a: { $eq: 1, is: 2 } })).toThrow(
      '/find/a/is says is a second time',
    )
    expect(() => parseFind(removeDollars({ a: { $where: 'true' } }))).toThrow('$where')
    expect(() => parseFind(removeDollars({ $expr: { $gt: 1 } }))).toThrow('$expr')
  })

  it('a find with Mongo names keeps names like __proto__ as names of fields', () => {
    const find: unknown = JSON.parse('{"__proto__": {"$gt": 1}}')
    expect(parseFind(removeDollars(find))).toEqual(parseFind(JSON.parse('{"__proto__":{"gt":1}}')))
  })
})
