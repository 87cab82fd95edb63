import { limits } from '@tollbase/contract/limits'
import { expect, test } from 'vitest'
import { KeptRecords } from './kept-records.ts'

type Record = {
  readonly app_id: string
  readonly revoked_at: string | null
  readonly expires_at: string | null
}

const at = (ms: number) => new Date(ms).toISOString()

function makeKept(nowMs = 1_000_000) {
  const forgotten: Record[] = []
  const kept = new KeptRecords<Record>({
    now: () => nowMs,
    onForgotten: (one) => forgotten.push(one),
  })
  const set = (id: string, record: Partial<Record> = {}) =>
    kept.set(
      id,
      { app_id: 'shop', revoked_at: null, expires_at: null, ...record },
      { chars: 1_000, place: 0 },
    )
  return { kept, set, forgotten }
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
