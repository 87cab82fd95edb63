import { makeInvalidFault } from '../../base/fault.ts'
import type { DataSetBody, DataSetRange } from '../../model/definitions.ts'
import {
  type AddressRange,
  formatAddress,
  readNetwork,
  readSpan,
} from '../../query/address-range.ts'
import type { Scalar } from '../../query/condition.ts'
import { countryCode, type DataSetKind, dataSetValueCharsMax } from '../../query/data-set.ts'
import { isLong } from '../../query/index-key.ts'
import { parseScalar } from '../../query/operand.ts'

/** One entry as it was sent, and where it stands. */
export type SentEntry = { readonly value: unknown; readonly pointer: string }

type Range = AddressRange & { readonly country: string | null; readonly pointer: string }

/** Checks the entries of a data set and returns each once, ranges in order; a 400 names the entry that is wrong. */
export function parseEntries(
  kind: DataSetKind,
  sent: readonly SentEntry[],
): DataSetBody['entries'] {
  if (kind === 'values') return parseValues(sent)
  return joinRanges(sent.map((entry) => parseRange(kind, entry)))
}

function parseValues(sent: readonly SentEntry[]): readonly Scalar[] {
  const values = sent.map(({ value, pointer }) => {
    const scalar = parseScalar(value, pointer)
    if (isLong(scalar))
      throw makeInvalidFault(pointer, `must have at most ${dataSetValueCharsMax} characters`)
    return scalar
  })
  // -0 is 0, as it is in the database.
  return [...new Set(values.map((value) => (value === 0 ? 0 : value)))]
}

/**
 * Parses `network` or `first,last`, with a country behind it where the kind has one, as public databases write
 * them.
 */
function parseRange(kind: 'cidr' | 'ip_country', { value, pointer }: SentEntry): Range {
  const cells = typeof value === 'string' ? value.split(',').map(trimCell) : []
  const country = kind === 'ip_country' ? (cells.pop() ?? '').toUpperCase() : null
  const [first = '', last, ...more] = cells
  const range = last === undefined ? readNetwork(first) : readSpan(first, last)
  if (range === undefined || more.length > 0)
    throw makeInvalidFault(
      pointer,
      `must be ${kind === 'cidr' ? '"network" or "first,last"' : '"network,country" or "first,last,country"'}, such as "${kind === 'cidr' ? '10.0.0.0/8' : '192.0.2.0/24,DE'}"`,
    )
  if (country !== null && !countryCode.test(country))
    throw makeInvalidFault(pointer, 'must end with the two letters of a country (ISO 3166-1)')
  return { ...range, country, pointer }
}

function trimCell(cell: string): string {
  return cell.trim().replace(/^"(.*)"$/, '$1')
}

/** Sorts the ranges and joins those that meet; an address in two countries is an error of the set. */
function joinRanges(ranges: readonly Range[]): readonly DataSetRange[] {
  const result: Range[] = []
  for (const range of ranges.toSorted(compareAddresses)) {
    const before = result.at(-1)
    const meets = before !== undefined && before.bits === range.bits
    if (!meets || range.first > before.last + 1n) {
      result.push(range)
    } else if (before.country === range.country) {
      if (range.last > before.last) result[result.length - 1] = { ...before, last: range.last }
    } else if (range.first > before.last) {
      result.push(range)
    } else {
      throw makeInvalidFault(
        range.pointer,
        `has addresses that ${before.pointer} says are elsewhere`,
      )
    }
  }
  return result.map(({ bits, first, last, country }) => [
    formatAddress(first, bits),
    formatAddress(last, bits),
    country,
  ])
}

function compareAddresses(a: Range, b: Range): number {
  if (a.bits !== b.bits) return a.bits - b.bits
  return a.first < b.first ? -1 : a.first > b.first ? 1 : 0
}
