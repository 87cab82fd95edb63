import { describe, expect, test } from 'vitest'
import { SharedRoom } from './shared-room.ts'

const make = () => new SharedRoom({ max: 100, ofHolderMax: 40, forNew: 20, forPaid: 16 })

describe('SharedRoom', () => {
  test('a holder has its share at most, and the last part is for those that hold nothing', () => {
    const room = make()
    const take = (holder: string, size: number) => room.open(holder).set(size)
    expect([take('a', 20), take('a', 20), take('a', 1)]).toEqual([true, true, false])
    expect([take('b', 20), take('b', 4), take('b', 1)]).toEqual([true, true, false])
    expect([take('c', 21), take('c', 20)]).toEqual([false, true])
    expect(take('d', 1)).toBe(false)
  })

  test('one place alone may be larger than a share', () => {
    const room = make()
    const large = room.open('a')
    expect([large.set(85), large.set(84), room.open('a').set(1)]).toEqual([false, true, false])
  })

  test('a place that grows counts as one, keeps what it had where it may not grow, and is free once it is 0', () => {
    const room = make()
    const [growing, other] = [room.open('a'), room.open('b')]
    expect([other.set(24), growing.set(10), growing.set(60)]).toEqual([true, true, true])
    expect([growing.set(61), growing.set(60), growing.set(30)]).toEqual([false, true, true])
    for (const place of [growing, other]) expect([place.set(0), place.set(0)]).toEqual([true, true])
    expect(room.open('c').set(84)).toBe(true)
  })

  test('those who pay have room though others have all that is free, and shares of their own', () => {
    const room = make()
    const take = (holder: string, size: number) => room.open(holder, { isPaid: true }).set(size)
    expect([room.open('a').set(84), room.open('b').set(1)]).toEqual([true, false])
    expect([take('a', 17), take('a', 16)]).toEqual([false, true])
  })

  test('of what is kept for those who pay, one has several places, as far as its share goes', () => {
    const room = make()
    const take = (holder: string, size: number) => room.open(holder, { isPaid: true }).set(size)
    expect(room.open('a').set(84)).toBe(true)
    expect([take('a', 8), take('a', 8), take('a', 1), take('b', 1)]).toEqual([
      true,
      true,
      false,
      false,
    ])
  })
})
