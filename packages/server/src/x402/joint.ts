import { assert } from '../base/assert.ts'
import {
  computeSelector,
  decodeHex,
  encodeArray,
  encodeBytes,
  encodeHexWord,
  encodeNumberWord,
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

/** Counts the calls of a joint transaction by its data. */
export function countJointCalls(data: string): number {
  const bytes = decodeHex(data)
  const begin = 4 + wordBytes
  return data.startsWith(selector) && bytes.length >= begin + wordBytes
    ? bytes.readUInt32BE(begin + wordBytes - 4)
    : 0
}
