import { awaitTurn } from '../../base/await-turn.ts'
import { makeInvalidFault } from '../../base/fault.ts'
import { sortInTurns } from '../../base/sort-in-turns.ts'
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

/** Entries as they were sent; `locate` gives the place of the entry at an index. */
export type SentEntries = {
  readonly values: readonly unknown[]
  readonly locate: (at: number) => string
}

type Range = AddressRange & { readonly country: string | null; readonly at: number }

/** Entries that are read without a pause. */
const entriesAtOnce = 1_000
/** Characters of an entry of addresses: two of the longest, quotes, blanks and a country. */
const rangeCharsMax = 256

/**
 * Checks the entries of a data set and returns each once, ranges in order; a 400 names the entry that is wrong. Other
 * requests have their turns meanwhile.
 */
export async function parseEntries(
  kind: DataSetKind,
  sent: SentEntries,
): Promise<DataSetBody['entries']> {
  if (kind === 'values') return parseValues(sent)
  const ranges = await mapInTurns(sent.values, (value, at) => parseRange(kind, sent, { value, at }))
  return joinRanges(await sortInTurns(ranges, compareAddresses), sent)
}

async function mapInTurns<T, R>(
  items: readonly T[],
  convert: (item: T, at: number) => R,
): Promise<R[]> {
  const results: R[] = []
  for (const [at, item] of items.entries()) {
    if (at % entriesAtOnce === 0) await awaitTurn()
    results.push(convert(item, at))
  }
  return results
}

async function parseValues({ values, locate }: SentEntries): Promise<readonly Scalar[]> {
  const scalars = await mapInTurns(values, (value, at) => {
    const scalar = parseScalar(value, locate(at))
    if (isLong(scalar))
      throw makeInvalidFault(locate(at), `must have at most ${dataSetValueCharsMax} characters`)
    // -0 is 0, as it is in the database.
    return scalar === 0 ? 0 : scalar
  })
  return [...new Set(scalars)]
}

/**
 * Parses `network` or `first,last`, with a country behind it where the kind has one, as public databases write
 * them.
 */
function parseRange(
  kind: 'cidr' | 'ip_country',
  { locate }: SentEntries,
  { value, at }: { readonly value: unknown; readonly at: number },
): Range {
  const isText = typeof value === 'string' && value.length <= rangeCharsMax
  const cells = isText ? value.split(',').map(trimCell) : []
  const country = kind === 'ip_country' ? (cells.pop() ?? '').toUpperCase() : null
  const [first = '', last, ...more] = cells
  const range = last === undefined ? readNetwork(first) : readSpan(first, last)
  if (range === undefined || more.length > 0)
    throw makeInvalidFault(
      locate(at),
      `must be ${kind === 'cidr' ? '"network" or "first,last"' : '"network,country" or "first,last,country"'}, such as "${kind === 'cidr' ? '10.0.0.0/8' : '192.0.2.0/24,DE'}"`,
    )
  if (country !== null && !countryCode.test(country))
    throw makeInvalidFault(locate(at), 'must end with the two letters of a country (ISO 3166-1)')
  return { ...range, country, at }
}

function trimCell(cell: string): string {
  return cell.trim().replace(/^"(.*)"$/, '$1')
}

/** Joins ranges in order where they meet; an address in two countries is an error of the set. */
async function joinRanges(
  ranges: readonly Range[],
  { locate }: SentEntries,
): Promise<readonly DataSetRange[]> {
  const result: Range[] = []
  for (const [at, range] of ranges.entries()) {
    if (at % entriesAtOnce === 0) await awaitTurn()
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
        locate(range.at),
        `has addresses that ${locate(before.at)} assigns to another country`,
      )
    }
  }
  return mapInTurns(result, ({ bits, first, last, country }) => [
    formatAddress(first, bits),
    formatAddress(last, bits),
    country,
  ])
}

function compareAddresses(a: Range, b: Range): number {
  if (a.bits !== b.bits) return a.bits - b.bits
  return a.first < b.first ? -1 : a.first > b.first ? 1 : 0
}
