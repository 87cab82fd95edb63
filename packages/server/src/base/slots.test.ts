import { describe, expect, it } from 'vitest'
import { Slots } from './slots.ts'
import { realWorld } from './world.ts'

/** Work that ends when it is told to. */
function heldWork() {
  const ends: (() => void)[] = []
  return { ends, work: () => new Promise<void>((resolve) => ends.push(resolve)) }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

describe('slots', () => {
  it('run so much at once, and the next in the order of arrival', async () => {
    const slots = new Slots({ world: realWorld, atOnceMax: 2, waitingMax: 5, waitMs: 60_000 })
    const { ends, work } = heldWork()
    const order: number[] = []
    const all = [0, 1, 2, 3].map((each) =>
      slots.run(() => {
        order.push(each)
        return work()
      }),
    )
    await turn()
    expect(order).toEqual([0, 1])
    ends[1]?.()
    await turn()
    expect(order).toEqual([0, 1, 2])
    ends[0]?.()
    ends[2]?.()
    await turn()
    ends[3]?.()
    await Promise.all(all)
    expect(order).toEqual([0, 1, 2, 3])
  })

  it('refuse with 503 and Retry-After what finds too many waiting, and go on after work that failed', async () => {
    const slots = new Slots({ world: realWorld, atOnceMax: 1, waitingMax: 1, waitMs: 60_000 })
    const { ends, work } = heldWork()
    const first = slots.run(async () => {
      await work()
      throw new Error('failed')
    })
    const second = slots.run(work)
    await expect(slots.run(work)).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      status: 503,
      retryAfterSeconds: 2,
    })
    ends[0]?.()
    await expect(first).rejects.toThrow('failed')
    await turn()
    ends[1]?.()
    await second
    const third = slots.run(work)
    await turn()
    ends[2]?.()
    await third
  })

  it('refuse what waited too long, and do not lose its slot', async () => {
    let ring = () => {}
    const world = {
      ...realWorld,
      every: (_ms: number, call: () => void) => {
        ring = call
        return () => undefined
      },
    }
    const slots = new Slots({ world, atOnceMax: 1, waitingMax: 1, waitMs: 1 })
    const { ends, work } = heldWork()
    const first = slots.run(work)
    const late = slots.run(work)
    const refused = expect(late).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    await turn()
    ring()
    await refused
    ends[0]?.()
    await first
    const next = slots.run(work)
    await turn()
    ends[1]?.()
    await next
  })
})
