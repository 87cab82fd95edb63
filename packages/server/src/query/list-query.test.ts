import { limits } from '@tollbase/contract/limits'
import { describe, expect, it } from 'vitest'
import {
  findSortedRange,
  type ListRequest,
  listUsedFields,
  parseJoinedList,
  parseList,
} from './list-query.ts'

const findFaultField = (request: ListRequest): unknown => {
  try {
    return parseList(request)
  } catch (error) {
    return (error as { details?: { field?: unknown } }).details?.field
  }
}

describe('list requests', () => {
  it('a list request without anything asks for all whole records in the order of storing', () => {
    expect(parseList({})).toEqual({
      where: { kind: 'always' },
      joins: [],
      offset: 0,
      history: false,
    })
    const empty = {
      find: null,
      select: [],
      limit: null,
      offset: null,
      sortBy: null,
      orderBy: null,
      sortDirection: null,
      include_history: null,
    }
    expect(parseList(empty)).toEqual(parseList({}))
  })

  it.each<[ListRequest, string]>([
    [{ limit: -1 }, '/limit'],
    [{ limit: 1.5 }, '/limit'],
    [{ limit: '5' }, '/limit'],
    [{ limit: limits.rowsMax + 1 }, '/limit'],
    [{ offset: limits.offsetMax + 1 }, '/offset'],
    [{ sortBy: 5 }, '/sortBy'],
    [{ sortBy: '' }, '/sortBy'],
    [{ orderBy: 'a.' }, '/orderBy'],
    [{ sortBy: 'a', orderBy: 'b' }, '/orderBy'],
    [{ sortBy: 'a', sortDirection: 'up' }, '/sortDirection'],
    [{ include_history: 'yes' }, '/include_history'],
    [{ select: 5 }, '/select'],
    [{ select: ['a'] }, '/select'],
    [{ select: { a: 1 } }, '/select/a'],
    [{ select: { a: true, 'a.b': true } }, '/select/a.b'],
    [{ select: { 'a.b': true, a: { b: false } } }, '/select/a/b'],
  ])('a list request that is wrong is refused where it is wrong: %j', (request, field) => {
    expect(findFaultField(request)).toBe(field)
  })

  it('a list request may ask for as many rows, and from as far, as the limits say', () => {
    expect(parseList({ limit: limits.rowsMax, offset: limits.offsetMax })).toMatchObject({
      limit: limits.rowsMax,
      offset: limits.offsetMax,
    })
  })

  it.each([
    ['ascending', false],
    ['ASC', false],
    [undefined, false],
    ['descending', true],
    ['desc', true],
  ])('a list request takes every spelling of a direction: %s', (sortDirection, descending) => {
    for (const name of ['sortBy', 'orderBy']) {
      expect(parseList({ [name]: 'n.x', sortDirection }).sort).toEqual({
        path: ['n', 'x'],
        descending,
      })
    }
  })

  it.each([
    [{ a: true }, ['a']],
    [{ a: true, b: { c: true, d: { e: true } } }, ['a', 'b.c', 'b.d.e']],
    [{ a: { b: false }, c: true }, ['a', 'c']],
    [{ a: {}, 'b.c': true, x: false }, ['a', 'b.c']],
    [{ a: false }, 'all'],
    [{ a: { b: false } }, 'all'],
    [{}, 'all'],
  ])('a list request names the fields that it gives: %j', (select, expected) => {
    expect(listUsedFields(parseList({ select })).select).toEqual(expected)
  })

  it('a list request names the fields that it filters and sorts by', () => {
    const query = parseList({
      find: { a: 1, or: [{ 'b.c': 2 }, { not: { d: { exists: true } } }] },
      sortBy: 'e',
    })
    expect(listUsedFields(query)).toEqual({ filter: ['a', 'b.c', 'd'], sort: ['e'], select: 'all' })
  })
})

describe('a range in the order of its field', () => {
  const between = { price: { between: { from: 1, to: 5 } } }
  const joined = { ...between, items: { resolve: { find: { a: 1 } }, model: 'items' } }

  it.each<ListRequest>([
    { find: between, sortBy: 'price' },
    { find: between, sortBy: 'price', sortDirection: 'desc', limit: 5, offset: 9 },
    { find: { 'a.b': { gte: 'x', lessThan: 'y' } }, sortBy: 'a.b' },
  ])('is found in %j', (request) => {
    expect(findSortedRange(parseJoinedList(request))?.join('.')).toBe(request.sortBy)
  })

  it.each<ListRequest>([
    { find: between },
    { find: between, sortBy: 'title' },
    { find: { price: { gte: 1 } }, sortBy: 'price' },
    { find: { price: 1 }, sortBy: 'price' },
    { find: { ...between, title: 'a' }, sortBy: 'price' },
    { find: { or: [between, { price: { gte: 7, lessThan: 9 } }] }, sortBy: 'price' },
    { find: { not: between }, sortBy: 'price' },
    { find: between, sortBy: 'price', include_history: true },
    { find: joined, sortBy: 'price' },
    {},
  ])('is not found in %j', (request) => {
    expect(findSortedRange(parseJoinedList(request))).toBeUndefined()
  })
})
