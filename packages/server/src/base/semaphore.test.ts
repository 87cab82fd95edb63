import { describe, expect, it } from 'vitest'
import { Semaphore, type SemaphoreOptions, type Turn } from './semaphore.ts'
import { realWorld } from './world.ts'

const usual: SemaphoreOptions = {
  world: realWorld,
  atOnceMax: 4,
  waitingMax: 40,
  waitingOfApplicationMax: 20,
  waitingOfCallerMax: 10,
  waitMs: 60_000,
}

const keyed = (application: string, caller = 'key'): Turn => ({ application, caller, rank: 'key' })
const visitor = (application: string, caller = 'address'): Turn => ({
  application,
  caller,
  rank: 'visitor',
})
const paid = (application: string): Turn => ({ application, caller: 'address', rank: 'paid' })

const settle = () => new Promise((resolve) => setImmediate(resolve))

/** A semaphore, and tasks by name that run until they are told to end. */
function scene(options: Partial<SemaphoreOptions> = {}) {
  const slots = new Semaphore({ ...usual, ...options })
  const ends = new Map<string, () => void>()
  const started: string[] = []
  const run = (name: string, turn: Turn) =>
    slots.run(turn, () => {
      started.push(name)
      return new Promise<void>((resolve) => ends.set(name, resolve))
    })
  return {
    slots,
    started,
    run,
    ask: async (name: string, turn: Turn) => {
      run(name, turn).catch(() => undefined)
      await settle()
    },
    end: async (name: string) => {
      ends.get(name)?.()
      await settle()
    },
  }
}

describe('slots of a semaphore', () => {
  it('the slots leave one for paying callers, one for callers who do not pay, and one for other applications', async () => {
    const { ask, started } = scene()
    for (const n of [1, 2, 3]) await ask(`evil ${n}`, keyed('evil'))
    expect(started).toEqual(['evil 1', 'evil 2'])
    await ask('other', keyed('other'))
    await ask('third', keyed('third'))
    expect(started).toEqual(['evil 1', 'evil 2', 'other'])
    await ask('buyer', paid('evil'))
    expect(started.at(-1)).toBe('buyer')

    const bought = scene()
    for (const n of [1, 2, 3, 4]) await bought.ask(`sale ${n}`, paid(`shop ${n}`))
    expect(bought.started).toEqual(['sale 1', 'sale 2', 'sale 3'])
    await bought.ask('free', visitor('shop'))
    expect(bought.started.at(-1)).toBe('free')
  })

  it('the slots of one application alone are all its own, with one for each of paying and other callers', async () => {
    const { ask, started } = scene({ ofApplicationMax: 4 })
    for (const n of [1, 2, 3, 4]) await ask(`sale ${n}`, paid('shop'))
    await ask('free', keyed('shop'))
    await ask('more', keyed('shop'))
    expect(started).toEqual(['sale 1', 'sale 2', 'sale 3', 'free'])
  })

  it('callers without a key do not get all slots, and leave one of an application to its keys', async () => {
    const { ask, started } = scene()
    for (const n of [1, 2, 3, 4, 5]) await ask(`visit ${n}`, visitor(`app ${n % 3}`, `${n}`))
    expect(started).toEqual(['visit 1', 'visit 2'])
    await ask('key', keyed('app 1'))
    expect(started.at(-1)).toBe('key')
  })

  it('the slots go in turn to applications, and within one to its callers, whatever the order of arrival', async () => {
    const { ask, end, started } = scene({ atOnceMax: 1 })
    await ask('first', keyed('evil'))
    for (const n of [1, 2, 3]) await ask(`evil ${n}`, keyed('evil', 'one'))
    await ask('evil other', keyed('evil', 'other'))
    for (const n of [1, 2]) await ask(`good ${n}`, keyed('good'))
    for (let at = 0; at < 6; at++) await end(started.at(-1) ?? '')
    expect(started.slice(1)).toEqual([
      'good 1',
      'evil 1',
      'good 2',
      'evil other',
      'evil 2',
      'evil 3',
    ])
  })

  it('the semaphore refuses a caller with too much waiting, with Retry-After, and no other caller for that', async () => {
    const { slots, ask, run } = scene({ waitingOfCallerMax: 2, waitingOfApplicationMax: 3 })
    const ofCaller = { status: 429, code: 'RATE_LIMITED', retryAfterSeconds: 2 }
    for (const n of [1, 2, 3, 4]) await ask(`${n}`, keyed('evil'))
    await expect(run('x', keyed('evil'))).rejects.toMatchObject({
      ...ofCaller,
      details: { limit: 'queries_of_caller' },
    })
    expect(() => slots.refuseFull(keyed('evil'))).toThrow('Too many queries of you')
    await ask('5', keyed('evil', 'another'))
    await expect(run('x', keyed('evil', 'third'))).rejects.toMatchObject({
      ...ofCaller,
      details: { limit: 'queries_of_application' },
    })
    // Visitors have filled nothing that belongs to keys, and the other way round.
    await ask('6', visitor('evil'))
    expect(() => slots.refuseFull(visitor('evil', 'third'))).not.toThrow()
    expect(() => slots.refuseFull(paid('evil'))).not.toThrow()
    expect(() => slots.refuseFull(keyed('good'))).not.toThrow()
  })

  it('the semaphore refuses work with 503 when too much waits in all', async () => {
    const { run, ask } = scene({ waitingMax: 2 })
    for (const n of [1, 2, 3, 4, 5]) await ask(`${n}`, keyed(`app ${n}`))
    await expect(run('x', keyed('app 6'))).rejects.toMatchObject({
      status: 503,
      code: 'UNAVAILABLE',
      retryAfterSeconds: 2,
    })
    await ask('buyer', paid('app 6'))
  })

  it('the slots go on after work that failed, whose slot is free again', async () => {
    const { slots, ask, end, started } = scene({ atOnceMax: 1 })
    const failing = slots.run(keyed('a'), async () => {
      await settle()
      throw new Error('failed')
    })
    await ask('next', keyed('a'))
    await expect(failing).rejects.toThrow('failed')
    await settle()
    expect(started).toEqual(['next'])
    await end('next')
    expect(slots.stats()).toEqual({ running: 0, waiting: 0 })
  })

  it('work that waited too long is refused, and its slot is not lost', async () => {
    let ring = () => {}
    const world = {
      ...realWorld,
      every: (_ms: number, call: () => void) => {
        ring = call
        return () => undefined
      },
    }
    const { slots, ask, run, end, started } = scene({ world, atOnceMax: 1 })
    await ask('first', keyed('a'))
    const refused = expect(run('late', keyed('a'))).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    await settle()
    ring()
    await refused
    await end('first')
    await ask('next', keyed('a'))
    expect(started).toEqual(['first', 'next'])
    await end('next')
    expect(slots.stats()).toEqual({ running: 0, waiting: 0 })
  })

  it('the slots are free of work that nobody wants any more, whether it waits or its turn has just come', async () => {
    const { slots, ask, run, end } = scene({ atOnceMax: 1 })
    const [gone, other] = [new AbortController(), new AbortController()]
    await ask('first', keyed('a'))
    const waiting = run('waiting', { ...keyed('a'), getSignal: () => gone.signal })
    const refused = expect(waiting).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    await settle()
    gone.abort()
    await refused
    expect(slots.stats()).toEqual({ running: 1, waiting: 0 })
    const late = run('late', { ...keyed('a'), getSignal: () => other.signal })
    const alsoRefused = expect(late).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    await settle()
    other.abort()
    await end('first')
    await alsoRefused
    await expect(
      run('never', { ...keyed('a'), getSignal: () => gone.signal }),
    ).rejects.toMatchObject({
      code: 'UNAVAILABLE',
    })
    expect(slots.stats()).toEqual({ running: 0, waiting: 0 })
  })
})
