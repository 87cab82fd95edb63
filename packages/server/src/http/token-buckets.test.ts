import { expect, test } from 'vitest'
import { toAddressKey } from './rate-limits.ts'
import { TokenBuckets } from './token-buckets.ts'

test('a bucket gives at once what a minute allows and then as fast as it fills', () => {
  const buckets = new TokenBuckets({ perMinute: 60, bucketsMax: 10 })
  for (let n = 0; n < 60; n++) expect(buckets.take('a', 1, 0).ok).toBe(true)
  expect(buckets.take('a', 1, 0)).toMatchObject({ ok: false, left: 0, waitMs: 1000 })
  expect(buckets.take('a', 1, 999).ok).toBe(false)
  expect(buckets.take('a', 1, 1000).ok).toBe(true)
  expect(buckets.take('b', 1, 1000)).toMatchObject({ ok: true, left: 59 })
})

test('a refusal takes nothing, and says when so much will be there', () => {
  const buckets = new TokenBuckets({ perMinute: 60, bucketsMax: 10 })
  buckets.take('a', 55, 0)
  expect(buckets.take('a', 10, 0)).toMatchObject({ ok: false, left: 5, waitMs: 5000 })
  expect(buckets.take('a', 5, 0).ok).toBe(true)
  expect(buckets.take('a', 10, 10_000).ok).toBe(true)
})

test('a request that costs more than a bucket holds takes a full one, instead of never being there', () => {
  const buckets = new TokenBuckets({ perMinute: 10, bucketsMax: 10 })
  expect(buckets.take('a', 100, 0)).toMatchObject({ ok: true, left: 0 })
  expect(buckets.take('a', 100, 0).waitMs).toBe(60_000)
})

test('the time until so much is there is told without taking any of it, and without keeping a bucket for it', () => {
  const buckets = new TokenBuckets({ perMinute: 60, bucketsMax: 10 })
  expect(buckets.computeWait('a', 1, 0)).toBe(0)
  expect(buckets.size).toBe(0)
  buckets.charge('a', 60, 0)
  expect(buckets.computeWait('a', 1, 0)).toBe(1000)
  expect(buckets.computeWait('a', 1, 1000)).toBe(0)
  expect(buckets.take('a', 1, 1000).ok).toBe(true)
})

test('a debt is paid off first, and has a bound', () => {
  const buckets = new TokenBuckets({ perMinute: 60, bucketsMax: 10 })
  for (let n = 0; n < 100; n++) buckets.charge('a', 50, 0)
  expect(buckets.take('a', 1, 60_000).ok).toBe(false)
  expect(buckets.take('a', 1, 61_000).ok).toBe(true)
})

test('giving back never makes more than a full bucket', () => {
  const buckets = new TokenBuckets({ perMinute: 3, bucketsMax: 10 })
  buckets.take('a', 1, 0)
  buckets.giveBack('a', 5, 0)
  expect(buckets.take('a', 1, 0).left).toBe(2)
})

test('a clock that is set back neither gives nor takes', () => {
  const buckets = new TokenBuckets({ perMinute: 60, bucketsMax: 10 })
  buckets.take('a', 60, 100_000)
  expect(buckets.take('a', 1, 50_000).ok).toBe(false)
  expect(buckets.take('a', 1, 51_000).ok).toBe(true)
})

test('the memory of buckets is bounded however many come, and the one unused the longest is forgotten', () => {
  const buckets = new TokenBuckets({ perMinute: 60, bucketsMax: 100 })
  for (let n = 0; n < 1000; n++) {
    buckets.take(`a${n}`, 60, 0)
    buckets.take('busy', 1, 0)
  }
  expect(buckets.size).toBe(100)
  expect(buckets.take('busy', 1, 0).ok).toBe(false)
  expect(buckets.take('a999', 1, 0).ok).toBe(false)
})

test('buckets that are full again are forgotten as others come', () => {
  const buckets = new TokenBuckets({ perMinute: 60, bucketsMax: 1000 })
  for (let n = 0; n < 500; n++) buckets.take(`a${n}`, 1, 0)
  for (let n = 0; n < 300; n++) buckets.take(`b${n}`, 1, 60_000)
  expect(buckets.size).toBeLessThan(302)
})

test.each([
  ['192.0.2.7', '192.0.2.7'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8:1:2::9', '2001:db8:1:2::/64'],
  ['2001:0db8:0001:0002:ffff::1', '2001:db8:1:2::/64'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['::', '0:0:0:0::/64'],
])('the address %s is limited as %s', (address, key) => {
  expect(toAddressKey(address)).toBe(key)
})
