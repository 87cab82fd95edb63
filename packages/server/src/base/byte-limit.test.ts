import { expect, test } from 'vitest'
import { ByteLimit, type Holding } from './byte-limit.ts'
import { realWorld } from './world.ts'

const settle = () => new Promise((resolve) => setImmediate(resolve))

/** A limit of 100 bytes, and some of them by name, held until they are told to end. */
function scene({ waitMs = 60_000 } = {}) {
  const limit = new ByteLimit({ world: realWorld, bytesMax: 100, waitMs })
  const started: string[] = []
  const ends = new Map<string, () => void>()
  const run = async (name: string, holding: Partial<Holding> = {}) => {
    const leave = await limit.hold({ holder: 'shop', bytes: 40, ...holding })
    started.push(name)
    ends.set(name, leave)
  }
  return {
    limit,
    started,
    run,
    ask: async (name: string, holding?: Partial<Holding>) => {
      run(name, holding).catch(() => undefined)
      await settle()
    },
    end: async (name: string) => {
      ends.get(name)?.()
      await settle()
    },
  }
}

test('as much is held as the bound allows, and what has more is held alone', async () => {
  const { limit, started, ask, end } = scene()
  for (const name of ['a', 'b', 'c']) await ask(name)
  expect(started).toEqual(['a', 'b'])
  await ask('large', { bytes: 1_000 })
  await ask('small', { bytes: 1 })
  await end('a')
  expect(started).toEqual(['a', 'b', 'c'])
  for (const name of ['b', 'c']) await end(name)
  expect(started).toEqual(['a', 'b', 'c', 'large'])
  expect(limit.stats()).toEqual({ bytes: 100, waiting: 1 })
  await end('large')
  await end('small')
  expect(limit.stats()).toEqual({ bytes: 0, waiting: 0 })
})

test('the next is of the holder with the fewest bytes, however many of another wait', async () => {
  const { started, ask, end } = scene()
  for (const name of ['a', 'b', 'c', 'd']) await ask(name, { holder: 'flood' })
  await ask('other', { holder: 'shop' })
  await end('a')
  expect(started).toEqual(['a', 'b', 'other'])
})

test('a wait ends with the caller who hung up, and at its deadline, and holds up nobody behind it', async () => {
  const { limit, started, run, ask } = scene({ waitMs: 300 })
  await ask('a', { bytes: 60 })
  const gone = new AbortController()
  const aborted = run('b', { bytes: 60, signal: gone.signal }).catch((error: unknown) => error)
  await ask('c', { bytes: 30 })
  expect(started).toEqual(['a'])
  gone.abort()
  expect(await aborted).toMatchObject({ code: 'UNAVAILABLE' })
  await settle()
  expect(started).toEqual(['a', 'c'])
  await expect(run('late', { bytes: 60 })).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  await expect(run('d', { signal: gone.signal })).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  expect(limit.stats()).toEqual({ bytes: 90, waiting: 0 })
})
