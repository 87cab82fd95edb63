import { assert } from '../base/assert.ts'
import {
  computeSelector,
  decodeHex,
  encodeArray,
  encodeBytes,
  encodeHexWord,
  encodeNumberWord,
  isAddress,
  wordBytes,
} from './hex.ts'

/** Multicall3, under the address that it has on nearly every EVM chain. */
export const multicallAddress = '0xca11bde05977b3631167028862be2a173976ca11'

/** The most transfers of one transaction: twenty would save a twentieth more, and could lose twice as much. */
export const jointPartsMax = 10

/**
 * The gas limit: 62,000 are used of each part if its recipient has no balance yet, 47,000 if it has one; USDC behind its
 * proxy takes some thousands more. The rest of one part is there for the others.
 */
const jointGas = { base: 30_000n, part: 100_000n }

const selector = computeSelector('aggregate3((address,bool,bytes)[])')

/** A call of a contract, `data` as hexadecimal text. */
export type Call = { readonly to: string; readonly data: string }

/** A transaction that makes several calls, and the ids of these in their order. */
export type Joint = Call & {
  readonly id: string
  readonly gas: bigint
  readonly parts: readonly string[]
}

/** Joins those that may go together, some at a time; what is alone stays as it is. */
export function joinCalls<T extends Call & { readonly id: string; readonly joins?: boolean }>(
  calls: readonly T[],
): (T | Joint)[] {
  const together = calls.filter(({ joins }) => joins === true)
  const joined: (T | Joint)[] = calls.filter(({ joins }) => joins !== true)
  for (let at = 0; at < together.length; at += jointPartsMax) {
    const group = together.slice(at, at + jointPartsMax)
    joined.push(...(group.length > 1 ? [makeJoint(group)] : group))
  }
  return joined
}

/** Makes one transaction of calls that may fail each by itself. */
function makeJoint(calls: readonly (Call & { readonly id: string })[]): Joint {
  const [first] = calls
  assert(first !== undefined && calls.length <= jointPartsMax, 'a joint transaction has some parts')
  return {
    // An id is a part of one joint transaction at most.
    id: `joint:${first.id}`,
    to: multicallAddress,
    data: encodeJointCall(calls),
    gas: jointGas.base + jointGas.part * BigInt(calls.length),
    parts: calls.map(({ id }) => id),
  }
}

function encodeJointCall(calls: readonly Call[]): string {
  const items = calls.map(({ to, data }) =>
    [
      encodeHexWord(to),
      // It may fail.
      encodeNumberWord(1),
      encodeNumberWord(3 * wordBytes),
      encodeBytes(data),
    ].join(''),
  )
  return `${selector}${encodeNumberWord(wordBytes)}${encodeArray(items)}`
}

/** Decodes the calls of a joint transaction from its data; undefined where it is not exactly the data of one. */
export function parseJointCalls(data: string): readonly Call[] | undefined {
  if (!data.startsWith(selector)) return undefined
  const bytes = decodeHex(data).subarray(4)
  const count = readNumber(bytes, wordBytes)
  if (count > jointPartsMax) return undefined
  const begin = 2 * wordBytes
  const calls = Array.from({ length: count }, (_, index): Call => {
    const at = begin + readNumber(bytes, begin + index * wordBytes)
    const to = `0x${bytes.toString('hex', at + wordBytes - 20, at + wordBytes)}`
    const length = at + 4 * wordBytes
    const last = length + readNumber(bytes, length - wordBytes)
    return { to, data: `0x${bytes.toString('hex', length, last)}` }
  })
  // Whatever else the bytes say, they are not what we sign.
  if (!calls.every(({ to }) => isAddress(to)) || encodeJointCall(calls) !== data) return undefined
  return calls
}

/** Reads the low four bytes of a word; 0 where there is none. */
function readNumber(bytes: Buffer, at: number): number {
  const last = at + wordBytes - 4
  return last + 4 <= bytes.length ? bytes.readUInt32BE(last) : 0
}
