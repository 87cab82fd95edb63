import { limits } from '@tollbase/contract/limits'
import { expect, test } from 'vitest'
import { KeptRecords } from './kept-records.ts'

type Record = {
  readonly app_id: string
  readonly revoked_at: string | null
  readonly expires_at: string | null
}

const at = (ms: number) => new Date(ms).toISOString()

function makeKept(bytesMax?: number) {
  const forgotten: Record[] = []
  const time = { nowMs: 1_000_000 }
  const kept = new KeptRecords<Record>({
    now: () => time.nowMs,
    onForgotten: (one) => forgotten.push(one),
    ...(bytesMax !== undefined && { bytesMax }),
  })
  const set = (id: string, record: Partial<Record> = {}) =>
    kept.set(
      id,
      { app_id: 'shop', revoked_at: null, expires_at: null, ...record },
      { chars: 1_000, place: 0 },
    )
  return { kept, set, forgotten, time }
}

test('all live records stay, and of the dead ones those that died last, in any order of their coming', () => {
  const { kept, set, forgotten } = makeKept()
  const count = 2_000
  for (let index = 0; index < count; index++) {
    set(`live ${index}`, { expires_at: at(2_000_000) })
    // 7 and 2,000 have no common divisor, so each of the times comes once.
    const time = at((index * 7) % count)
    set(`dead ${index}`, index % 2 === 0 ? { revoked_at: time } : { expires_at: time })
  }
  const all = kept.listByApp('shop')
  const dead = all.filter(({ record }) => record.expires_at !== at(2_000_000))
  expect(all.length - dead.length).toBe(count)
  const bytes = dead.reduce((sum, one) => sum + one.bytes, 0)
  expect(bytes).toBeLessThan(4 * limits.deadKeysBytesMax + 4_000_000)
  expect(forgotten.length + dead.length).toBe(count)
  expect(kept.hasForgotten('shop')).toBe(true)
  expect(kept.get('dead 1713'), 'it died at 1,991 of 2,000').toBeDefined()
  expect(kept.hasForgotten('maps')).toBe(false)
})

test('dead records take as much memory after ten thousands as after hundreds', () => {
  const { kept, set } = makeKept()
  for (let index = 0; index < 50_000; index++) set(`${index}`, { revoked_at: at(index) })
  const bytes = kept.listByApp('shop').reduce((sum, one) => sum + one.bytes, 0)
  expect(bytes).toBeLessThanOrEqual(2 * limits.deadKeysBytesMax)
  expect(kept.get('49999')).toBeDefined()
})

test('a record is dead while anybody kills it, and a kill is taken back once', () => {
  const { kept, set } = makeKept()
  set('one')
  const record = kept.get('one')
  if (record === undefined) throw new Error('it is there')
  const isAlive = (ownKills = 0) => kept.isAlive('one', record, { nowMs: 1_000_000, ownKills })
  const [first, second] = [kept.kill('one'), kept.kill('one')]
  expect([isAlive(), isAlive(1), isAlive(2)]).toEqual([false, false, true])
  first()
  first()
  expect([isAlive(), isAlive(1)]).toEqual([false, true])
  second()
  expect(isAlive()).toBe(true)
})

const sumBytes = (kept: KeptRecords<Record>, apps: Iterable<string>) =>
  [...apps].flatMap((app) => kept.listByApp(app)).reduce((sum, { bytes }) => sum + bytes, 0)

test('the live records of all applications have a bound, which a few cannot take from the others', () => {
  const bytesMax = 1_000_000
  const { kept, set, time } = makeKept(bytesMax)
  const fill = (app: string, record: Partial<Record> = {}) => {
    let count = 0
    while (kept.findFull(app, 400_000) === undefined)
      set(`${app} ${count++}`, { app_id: app, ...record })
    return kept.findFull(app, 400_000)
  }
  const end = at(time.nowMs + 1)
  expect([fill('a', { expires_at: end }), fill('b')]).toEqual(['application', 'all'])
  const apps = ['a', 'b', ...Array.from({ length: 50 }, (_, index) => `${index}`)]
  expect(kept.findFull('new', 400_000)).toBeUndefined()
  for (const app of apps) fill(app)
  expect(sumBytes(kept, apps)).toBeGreaterThan(bytesMax - 10_000)
  expect(sumBytes(kept, apps)).toBeLessThan(bytesMax + 10_000)
  expect(kept.findFull('new', 400_000)).toBe('all')
  time.nowMs += 10_000
  expect(kept.findFull('new', 400_000)).toBeUndefined()
  expect(kept.listByApp('a'), 'those that have ended leave the memory').toEqual([])
  expect(kept.hasForgotten('a')).toBe(true)
  const { length } = kept.listByApp('b')
  fill('b')
  expect(kept.listByApp('b').length).toBeGreaterThan(length)
})

test('whoever ends some of its own has room at once, and all are looked at again though the clock was set back', () => {
  const { kept, set, time } = makeKept(100_000)
  const end = at(time.nowMs + 1)
  for (let index = 0; kept.findFull('shop', 90_000) === undefined; index++)
    set(`shop ${index}`, { expires_at: end })
  for (let index = 0; kept.findFull('maps', 90_000) === undefined; index++)
    set(`maps ${index}`, { app_id: 'maps' })
  expect(kept.findFull('maps', 90_000)).toBe('all')
  const [one] = kept.listByApp('maps')
  if (one === undefined) throw new Error('maps has none')
  const revoke = () => set(one.id, { app_id: 'maps', revoked_at: at(time.nowMs) })
  revoke()
  expect(kept.findFull('maps', 90_000)).toBeUndefined()
  set('maps again', { app_id: 'maps' })
  expect(kept.findFull('maps', 90_000)).toBe('all')
  time.nowMs -= 3_600_000
  const { length } = kept.listByApp('shop')
  for (const { id } of kept.listByApp('shop')) set(id, { expires_at: at(time.nowMs - 1) })
  expect(length).toBeGreaterThan(0)
  expect(kept.findFull('maps', 90_000)).toBeUndefined()
})

test('dead records of many applications take no more memory than all may have', () => {
  const { kept, set } = makeKept(1_000_000)
  const apps = Array.from({ length: 100 }, (_, index) => `${index}`)
  for (const app of apps)
    for (let index = 0; index < 100; index++)
      set(`${app} ${index}`, { app_id: app, revoked_at: at(index) })
  expect(sumBytes(kept, apps)).toBeLessThan(1_010_000)
  for (let index = 0; index < 500; index++) set(`live ${index}`)
  expect(kept.findFull('shop', 2_000_000)).toBe('all')
  expect(sumBytes(kept, apps)).toBe(0)
})

test('an application forgets dead records as soon as they have twice their bytes, however many live', () => {
  const { kept, set, time } = makeKept()
  for (let index = 0; index < 500; index++) set(`live ${index}`)
  const live = sumBytes(kept, ['shop'])
  for (let index = 0; index < 400; index++) {
    set(`dead ${index}`, { revoked_at: at(index) })
    expect(sumBytes(kept, ['shop']) - live).toBeLessThanOrEqual(2 * limits.deadKeysBytesMax)
  }
  // The end of a record is noticed later.
  for (let index = 0; index < 2_000; index++) {
    time.nowMs += 1
    set(`ending ${index}`, { expires_at: at(time.nowMs + 1) })
  }
  expect(sumBytes(kept, ['shop']) - live).toBeLessThan(live / 2 + 3 * limits.deadKeysBytesMax)
})
