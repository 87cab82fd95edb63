import { expect, test } from 'vitest'
import { BytesInParts, isCrumbled } from './bytes-in-parts.ts'

test('bytes are the same and in order, however short or long the parts are that they come in', async () => {
  const parts = new BytesInParts()
  const whole = Buffer.alloc(3_000_000, 'some bytes that do not repeat soon, or so ')
  const lengths = [1, 1, 2, 3, 70_000, 1, 63, 64, 65, 5_000, 0, 40_000]
  let at = 0
  for (let turn = 0; at < whole.length; turn++) {
    // Some hundred short ones in a row, and then long ones among them.
    const length = turn % 500 < 300 ? 1 : (lengths[turn % lengths.length] ?? 1)
    parts.add(whole.subarray(at, at + length))
    at += length
  }
  expect(parts.length).toBe(whole.length)
  expect(whole.equals(await parts.concat())).toBe(true)
  expect(await new BytesInParts().concat()).toHaveLength(0)
})

test('short parts do not keep alive the memory that they are cut from', async () => {
  const parts = new BytesInParts()
  const from = Buffer.alloc(1024 * 1024, 'x')
  for (let at = 0; at < 3; at++) parts.add(from.subarray(at, at + 1))
  const bytes = await parts.concat()
  expect(bytes.buffer).not.toBe(from.buffer)
})

test('parts of 64 bytes are never too many, and of shorter ones ten thousand are not', () => {
  expect(isCrumbled({ parts: 10_000, bytes: 0 })).toBe(false)
  expect(isCrumbled({ parts: 10_001, bytes: 63 })).toBe(true)
  expect(isCrumbled({ parts: 10_001, bytes: 64 })).toBe(false)
  expect(isCrumbled({ parts: 1_000_000, bytes: 64_000_000 })).toBe(false)
  expect(isCrumbled({ parts: 1_000_000, bytes: 63_000_000 })).toBe(true)
})
