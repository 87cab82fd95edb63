import { describe, expect, test } from 'vitest'
import { ConcurrencyLimit } from './concurrency-limit.ts'

describe('ConcurrencyLimit', () => {
  test('a few holders never have all places: the last quarter is for those that hold none', () => {
    const places = new ConcurrencyLimit({ max: 64, ofHolderMax: 16, forNew: 16 })
    const occupy = (holder: string, count: number) =>
      Array.from({ length: count }, () => places.occupy(holder))
    for (const holder of ['a', 'b', 'c']) occupy(holder, 16)
    expect(() => places.occupy('a')).toThrow('Too many transfers')
    const [leave] = occupy('d', 1)
    expect(() => places.occupy('d')).toThrow('Too many transfers')
    for (let n = 0; n < 15; n++) occupy(`other ${n}`, 1)
    expect(() => places.occupy('one too many')).toThrow('Too many transfers')
    leave?.()
    leave?.()
    occupy('one more', 1)
    expect(() => places.occupy('one too many')).toThrow('Too many transfers')
  })
})
