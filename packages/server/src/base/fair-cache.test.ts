import { expect, test } from 'vitest'
import { FairCache } from './fair-cache.ts'

function fill(cache: FairCache<number>, holder: string, count: number): void {
  for (let at = 0; at < count; at++) cache.set(holder, `${at}`, { value: at, bytes: 10 })
}

function listKept(cache: FairCache<number>, holder: string, count: number): readonly number[] {
  return Array.from({ length: count }, (_, at) => cache.get(holder, `${at}`)).filter(
    (value) => value !== undefined,
  )
}

test('a holder that keeps more than its share loses what it used the longest ago, and others lose nothing', () => {
  const cache = new FairCache<number>({ bytesMax: 100, shareBytesMax: 50 })
  fill(cache, 'shop', 3)
  fill(cache, 'flood', 5)
  cache.get('flood', '0')
  cache.set('flood', '5', { value: 5, bytes: 10 })
  expect(listKept(cache, 'flood', 9)).toEqual([0, 2, 3, 4, 5])
  expect(listKept(cache, 'shop', 3)).toEqual([0, 1, 2])
  expect(cache.bytes).toBe(80)
})

test('past the bound of all, the holders lose what was used the longest ago, whosever it is', () => {
  const cache = new FairCache<number>({ bytesMax: 100, shareBytesMax: 50 })
  for (const holder of ['one', 'two', 'three']) fill(cache, holder, 4)
  expect(listKept(cache, 'one', 4)).toEqual([2, 3])
  expect(listKept(cache, 'two', 4)).toEqual([0, 1, 2, 3])
  expect(cache.bytes).toBe(100)
})

test('a value that has grown counts anew, and one that is larger than a share goes', () => {
  const cache = new FairCache<number>({ bytesMax: 100, shareBytesMax: 50 })
  fill(cache, 'shop', 2)
  cache.set('shop', '0', { value: 7, bytes: 40 })
  expect([cache.get('shop', '0'), cache.bytes]).toEqual([7, 50])
  cache.set('shop', '2', { value: 2, bytes: 5 })
  expect([cache.get('shop', '1'), cache.bytes]).toEqual([undefined, 45])
  cache.set('shop', '0', { value: 8, bytes: 51 })
  expect([cache.get('shop', '0'), cache.get('shop', '1'), cache.bytes]).toEqual([
    undefined,
    undefined,
    5,
  ])
})
