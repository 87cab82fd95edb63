import { expect, test } from 'vitest'
import { encodeHex } from './hex.ts'
import { type Call, joinCalls, jointPartsMax, parseJointCalls } from './joint.ts'

const makeCall = (at: number): Call & { id: string; joins: true } => ({
  id: `pay_${at}`,
  to: `0x${String(at).padStart(40, 'a')}`,
  data: encodeHex(Buffer.alloc(at * 33, at)),
  joins: true,
})

test('the calls of a joint transaction are decoded as they were joined, for each number of them', () => {
  for (let count = 2; count <= jointPartsMax; count++) {
    const calls = Array.from({ length: count }, (_, at) => makeCall(at))
    const [joint] = joinCalls(calls)
    expect(parseJointCalls(joint?.data ?? '')).toEqual(calls.map(({ to, data }) => ({ to, data })))
  }
})

test('bytes that are not exactly a joint transaction of ours have no calls', () => {
  const [joint] = joinCalls([makeCall(1), makeCall(2), makeCall(3)])
  const data = joint?.data ?? ''
  const bytes = Buffer.from(data.slice(2), 'hex')
  const damaged = Array.from({ length: bytes.length }, (_, at) => {
    const copy = Buffer.from(bytes)
    copy[at] = (copy[at] ?? 0) ^ 0xff
    return encodeHex(copy)
  })
  const readable = damaged.map(parseJointCalls).filter((calls) => calls !== undefined)
  // Only addresses and the bytes of the calls are free to be others.
  expect(readable.length).toBe(3 * 20 + 33 + 66 + 99)
  for (let length = 0; length < bytes.length; length += 7)
    expect(parseJointCalls(encodeHex(bytes.subarray(0, length)))).toBeUndefined()
  expect(parseJointCalls(`${data}00`)).toBeUndefined()
  expect(parseJointCalls('0x')).toBeUndefined()
})
