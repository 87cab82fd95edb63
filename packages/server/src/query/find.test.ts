import { limits } from '@tollbase/contract/limits'
import { describe, expect, it } from 'vitest'
import { Fault } from '../base/fault.ts'
import { listConditionPaths } from './condition.ts'
import { parseFind } from './find.ts'

function catchFault(find: unknown): Fault {
  try {
    parseFind(find)
  } catch (error) {
    if (error instanceof Fault) return error
    throw error
  }
  throw new Error(`not refused: ${JSON.stringify(find)}`)
}

const nested = (depth: number): unknown =>
  depth === 0 ? { a: { is: 1 } } : { and: [nested(depth - 1)] }

describe('conditions of find', () => {
  it.each([
    [null],
    [undefined],
    [[]],
    [{}],
    [{ and: [] }],
    [{ and: [{}, { and: {} }] }],
    [{ not: [{ or: [] }] }],
  ])('a find that states nothing lets everything through: %j', (find) =>
    expect(parseFind(find)).toEqual({ kind: 'always' }),
  )

  it.each([[{ or: [] }], [{ a: { in: [] } }], [{ not: {} }], [{ b: { is: 1 }, a: { in: [] } }]])(
    'a find that nothing can satisfy is known as such: %j',
    (find) => expect(parseFind(find)).toEqual({ kind: 'never' }),
  )

  it.each([
    ['a dotted key', { 'a.b': { is: 5 } }],
    ['a nested object', { a: { b: { is: 5 } } }],
    ['a bare value', { 'a.b': 5 }],
    ['the other vocabulary', { a: { b: { eq: 5 } } }],
    ['a list of one', { a: { b: { in: [5] } } }],
    ['a double negation', { not: [{ 'a.b': { isNot: 5 } }] }],
    ['conditions inside a field', { a: { and: [{ b: { is: 5 } }] } }],
  ])('a find means the same spelled as %s', (_, find) => {
    expect(parseFind(find)).toEqual({ kind: 'one-of', path: ['a', 'b'], values: [5] })
  })

  it('a find joins the operators and fields of one object by AND', () => {
    const find = { a: { greaterThan: 1, lessThan: 9 }, b: null, or: [{ c: 1 }, { d: 2 }] }
    const condition = parseFind(find)
    expect(condition.kind === 'all' && condition.conditions.map((each) => each.kind)).toEqual([
      'range',
      'range',
      'null',
      'any',
    ])
    expect(listConditionPaths(condition)).toEqual(['a', 'b', 'c', 'd'])
  })

  it('a find makes a tree that nothing can change', () => {
    const condition = parseFind({
      or: [{ a: { in: [1, 2] } }, { b: { between: ['x', 'y'] } }, { c: 1, d: 2 }],
    })
    const frozen = (value: unknown): boolean =>
      typeof value !== 'object' ||
      value === null ||
      (Object.isFrozen(value) && Object.values(value).every(frozen))
    expect(frozen(condition)).toBe(true)
  })

  it.each([
    [5, '', 'an object of conditions'],
    [{ a: { greaterthen: 5 } }, '/a/greaterthen', 'did you mean "greaterThan"?'],
    [{ a: { is: 5, b: { is: 6 } } }, '/a/b', 'is not an operator'],
    [{ a: { $gte: 5 } }, '/a/$gte', 'did you mean "gte"?'],
    [{ a: { notin: [5] } }, '/a/notin', 'did you mean "notIn"?'],
    [{ a: [5] }, '/a', 'needs an operator'],
    [{ a: {} }, '/a', 'is empty'],
    [{ a: { is: { $gte: 5 } } }, '/a/is', 'must be a string, a number'],
    [{ a: { is: [5] } }, '/a/is', 'must be a string, a number'],
    [{ a: { is: Number.POSITIVE_INFINITY } }, '/a/is', 'double precision'],
    [{ a: { is: 'x\0' } }, '/a/is', 'U+0000'],
    [{ a: { is: '\ud800' } }, '/a/is', 'surrogate'],
    [{ 'a\0': 5 }, '/a\0', 'U+0000'],
    [{ a: { in: 5 } }, '/a/in', 'must be a list'],
    [{ a: { in: [5, [6]] } }, '/a/in/1', 'must be a string, a number'],
    [{ a: { isNull: 'yes' } }, '/a/isNull', 'true or false'],
    [{ a: { gt: null } }, '/a/gt', 'must be a string, a number'],
    [{ a: { lessThan: {} } }, '/a/lessThan', 'must be a string, a number'],
    [{ a: { between: [1] } }, '/a/between', 'a list of two values'],
    [{ a: { betweenOp: { from: 1 } } }, '/a/betweenOp', '"from"'],
    [{ a: { between: [1, 'x'] } }, '/a/between', 'two ends of the same type'],
    [{ a: { between: [1, null] } }, '/a/between/1', 'must be a string, a number'],
    [
      { a: { betweenOp: { from: null, to: 1 } } },
      '/a/betweenOp/from',
      'must be a string, a number',
    ],
    [{ a: { startsWith: 5 } }, '/a/startsWith', 'must be a string'],
    [{ a: { includes: null } }, '/a/includes', 'must be a string, a number'],
    [{ a: { regExpMatches: '(' } }, '/a/regExpMatches', 'not closed'],
    [{ a: { CIDR: '10.0.0.0/33' } }, '/a/CIDR', 'range of IP addresses'],
    [{ a: { cidr: '10.0.0/8' } }, '/a/cidr', 'range of IP addresses'],
    [{ a: { cidr: 'fe80::/129' } }, '/a/cidr', 'range of IP addresses'],
    [{ a: { b64: '%%%' } }, '/a/b64', 'base64'],
    [{ a: { b64: '/w==' } }, '/a/b64', 'base64'],
    [{ and: 5 }, '/and', 'an object of conditions'],
    [{ or: [{ a: 1 }, 5] }, '/or/1', 'an object of conditions'],
    [{ 'a..b': 5 }, '/a..b', 'empty field'],
    [{ '': 5 }, '/', 'empty field'],
    [{ a: { inCountry: 'Germany' } }, '/a/inCountry', 'two letters of a country'],
    [{ a: { inDataset: '' } }, '/a/inDataset', 'name of a data set'],
    [
      { owner: { resolve: { select: {} }, model: 'users' } },
      '/owner',
      'only the find of POST /list',
    ],
    [{ 'x/y~z': { is: [] } }, '/x~1y~0z/is', 'must be a string, a number'],
  ])('a find that is wrong is refused where it is wrong: %j', (find, pointer, problem) => {
    const fault = catchFault(find)
    expect(fault).toMatchObject({
      code: 'VALIDATION_FAILED',
      status: 400,
      details: { field: `/find${pointer}` },
    })
    expect(fault.message).toContain(problem)
  })

  const many = (count: number) => Array.from({ length: count }, (_, at) => at)
  it.each<[string, (size: number) => unknown, number]>([
    ['conditions', (size) => ({ or: many(size).map((at) => ({ a: at })) }), limits.conditionsMax],
    ['values of a list', (size) => ({ a: { in: many(size) } }), limits.inListMax],
    ['fields of a path', (size) => ({ [many(size).join('.')]: 1 }), limits.fieldPathDepthMax],
    ['characters of a path', (size) => ({ ['a'.repeat(size)]: 1 }), limits.fieldPathCharsMax],
    [
      'characters of a pattern',
      (size) => ({ a: { regExpMatches: 'a'.repeat(size) } }),
      limits.regexCharsMax,
    ],
    ['levels', (size) => nested(size - 2), limits.jsonDepthMax],
  ])('a find may have as many %s as the limit says, and not one more', (_, find, limit) => {
    expect(() => parseFind(find(limit))).not.toThrow()
    expect(catchFault(find(limit + 1)).code).toBe('VALIDATION_FAILED')
  })
})
