import { invalid } from '../../base/fault.ts'
import type { DataSetBody, DataSetRange } from '../../projections/data-set-table.ts'
import { type AddressRange, addressText, readNetwork, readSpan } from '../../query/address-range.ts'
import type { Scalar } from '../../query/condition.ts'
import { countryCode, type DataSetKind, dataSetValueCharsMax } from '../../query/data-set.ts'
import { isLong } from '../../query/index-key.ts'
import { scalarOperand } from '../../query/operand.ts'

/** One entry as it was sent, and where it stands. */
export type SentEntry = { readonly value: unknown; readonly pointer: string }

type Range = AddressRange & { readonly country: string | null; readonly pointer: string }

/** What a set holds, checked, each once, and ranges in order; a 400 names the entry that is wrong. */
export function readEntries(kind: DataSetKind, sent: readonly SentEntry[]): DataSetBody['entries'] {
  if (kind === 'values') return valuesOf(sent)
  return joined(sent.map((entry) => rangeOf(kind, entry)))
}

function valuesOf(sent: readonly SentEntry[]): readonly Scalar[] {
  const values = sent.map(({ value, pointer }) => {
    const scalar = scalarOperand(value, pointer)
    if (isLong(scalar))
      throw invalid(pointer, `must have at most ${dataSetValueCharsMax} characters`)
    return scalar
  })
  // -0 is 0, as it is in the database.
  return [...new Set(values.map((value) => (value === 0 ? 0 : value)))]
}

/** `network`, `first,last`, and with a country behind it, as public databases write them. */
function rangeOf(kind: 'cidr' | 'ip_country', { value, pointer }: SentEntry): Range {
  const cells = typeof value === 'string' ? value.split(',').map(plainCell) : []
  const country = kind === 'ip_country' ? (cells.pop() ?? '').toUpperCase() : null
  const [first = '', last, ...more] = cells
  const range = last === undefined ? readNetwork(first) : readSpan(first, last)
  if (range === undefined || more.length > 0)
    throw invalid(
      pointer,
      `must be ${kind === 'cidr' ? '"network" or "first,last"' : '"network,country" or "first,last,country"'}, such as "${kind === 'cidr' ? '10.0.0.0/8' : '192.0.2.0/24,DE'}"`,
    )
  if (country !== null && !countryCode.test(country))
    throw invalid(pointer, 'must end with the two letters of a country (ISO 3166-1)')
  return { ...range, country, pointer }
}

function plainCell(cell: string): string {
  return cell.trim().replace(/^"(.*)"$/, '$1')
}

/** Ranges in order, those that meet made into one; an address in two countries is a mistake of the set. */
function joined(ranges: readonly Range[]): readonly DataSetRange[] {
  const result: Range[] = []
  for (const range of ranges.toSorted(byAddress)) {
    const before = result.at(-1)
    const meets = before !== undefined && before.bits === range.bits
    if (!meets || range.first > before.last + 1n) {
      result.push(range)
    } else if (before.country === range.country) {
      if (range.last > before.last) result[result.length - 1] = { ...before, last: range.last }
    } else if (range.first > before.last) {
      result.push(range)
    } else {
      throw invalid(range.pointer, `has addresses that ${before.pointer} says are elsewhere`)
    }
  }
  return result.map(({ bits, first, last, country }) => [
    addressText(first, bits),
    addressText(last, bits),
    country,
  ])
}

function byAddress(a: Range, b: Range): number {
  if (a.bits !== b.bits) return a.bits - b.bits
  return a.first < b.first ? -1 : a.first > b.first ? 1 : 0
}
