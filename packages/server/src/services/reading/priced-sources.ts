import { limits } from '@tollbase/contract/limits'
import type { SoldItem } from '@tollbase/verify/sale-details'
import { makeInvalidFault } from '../../base/fault.ts'
import {
  type BoundParts,
  computeBoundParts,
  computeCost,
  type Size,
} from '../../model/compute-cost.ts'
import { getDefinitionVersion } from '../../model/definition-version.ts'
import { findDerivePrice, getReadPrice, isFree } from '../../model/find-price.ts'
import { findGrant, findGrantedPrice } from '../../model/grants.ts'
import { freePrice, type Price } from '../../model/policy.ts'
import type { ListRow } from '../../query/compile-list.ts'
import type { PartPrice } from '../payments/purchase.ts'
import { type AuthorizedSource, makeDerivationFault } from './authorize-sources.ts'

/** A part of an answer that may cost money: a source, or a query that its owner has priced by itself. */
export type PricedSource = Pick<AuthorizedSource, 'kind' | 'tenant'> & {
  /** `app::name`. */
  readonly name: string
  readonly emptyAnswerFree: boolean
  /** Its owner accepts that a quote shows what the answer holds. */
  readonly isQuotedByResult: boolean
  readonly soldAs: SoldItem['kind']
  /** The kind of its use in the ledger's entry. */
  readonly measuredBy: 'rows' | 'derived' | 'granted'
  /** That of the predefined query. */
  readonly version?: number
  /** Today's price; undefined where it cannot be bought. */
  readonly price: Price | undefined
}

/** Returns whether it costs money today, or cannot be bought at all. */
export function hasPrice({ price }: PricedSource): boolean {
  return price === undefined || !isFree(price)
}

/**
 * Lists the sources that others may charge the caller for, whether they do so today or not: a collection counts once as
 * rows and once as derived, however often it is used.
 */
export function listPricedSources(sources: readonly AuthorizedSource[]): readonly PricedSource[] {
  const priced = new Map<string, PricedSource>()
  for (const source of sources) {
    if (source.free) continue
    const { kind, tenant, readable, grantee = '' } = source
    priced.set(`${kind} ${grantee} ${tenant.application.app_id} ${readable.id}`, {
      kind,
      tenant,
      // A reader of a view need not know the sources behind it, which may be private.
      name: grantee === '' ? `${tenant.application.app_id}::${readable.name}` : grantee,
      soldAs: grantee === '' ? readable.kind : 'view',
      measuredBy: grantee === '' ? kind : 'granted',
      emptyAnswerFree: readable.policy.emptyAnswerFree,
      // The view's owner is another one, who can make its size depend on any value.
      isQuotedByResult: grantee === '' && readable.policy.isQuotedByResult,
      price: findPrice(source),
    })
  }
  return [...priced.values()]
}

/** Returns what the names in a read request stand for now, and which of it is the caller's own; JSON. */
export function buildSourcesMeaning(sources: readonly AuthorizedSource[]): readonly unknown[] {
  return sources.map(({ kind, tenant, readable, free: isFreeToCaller, grantee, dataSets }) => [
    kind,
    isFreeToCaller,
    getDefinitionVersion(tenant, readable),
    [...dataSets].map(([name, { version }]) => [name, version]),
    ...(grantee === undefined
      ? []
      : [grantee, findGrant(tenant.data.catalog, readable, grantee)?.id ?? null]),
  ])
}

/** Returns the price of a source: rows cost by access, row and KB; derived sources cost by access alone. */
function findPrice({ kind, tenant, readable, grantee }: AuthorizedSource): Price | undefined {
  const { catalog } = tenant.data
  if (kind === 'rows') return getReadPrice(catalog, readable)
  const perAccess =
    grantee === undefined
      ? findDerivePrice(catalog, readable)
      : findGrantedPrice(catalog, readable, grantee)
  return perAccess === undefined ? undefined : { ...freePrice, perAccess }
}

/** The size limit of a read that is priced by the KB, when the request does not say. */
export const maxKbDefault = 64

/** The bounds of a read that its most is computed from. */
export type ReadBounds = {
  readonly limit: number | undefined
  readonly maxKb: number | undefined
  /** The error to report where rows have a price and there is no limit. */
  readonly limitMissing: { readonly pointer: string; readonly problem: string }
}

/** The parts that may cost money, and the price of each in the same order. */
export type SourcePrices = {
  readonly priced: readonly PricedSource[]
  readonly prices: readonly PartPrice[]
  /** The size of the answer, where it makes the quote. */
  readonly size?: Size | undefined
}

export function listPrices(priced: readonly PricedSource[]): readonly PartPrice[] {
  return priced.map(({ price, name, emptyAnswerFree: emptyFree }) => {
    if (price === undefined) throw makeDerivationFault(name)
    return { ...price, emptyFree }
  })
}

export type Breakdown = BoundParts & {
  readonly per_access: number
  readonly per_row: number
  readonly per_kb: number
  readonly derive?: number
}

export function computeBreakdown(request: ReadBounds, priced: SourcePrices): Breakdown {
  const rows = computeRowsPrice(priced)
  const most = priced.size ?? computeSizeMax(request, rows)
  const derive = sumAmounts(listPricesOfKind(priced, 'derived'), ({ perAccess }) => perAccess)
  return {
    per_access: Number(rows.perAccess),
    per_row: Number(rows.perRow) * most.rows,
    per_kb: Number(computeCost({ ...freePrice, perKb: rows.perKb }, most)),
    ...(derive > 0n && { derive: Number(derive) }),
    ...computeBoundParts(priced.prices, most),
  }
}

/** Lists the largest size of each part; 400 where it cannot be bought by these prices. */
export function listMost(request: ReadBounds, priced: SourcePrices): readonly (Size | null)[] {
  if (priced.size !== undefined) return listSizes(priced.prices, priced.size)
  const most = requireSizeMax(request, priced)
  return priced.prices.map(() => most)
}

/** Computes the largest answer; 400 where it cannot be bought by these prices. */
function requireSizeMax(request: ReadBounds, priced: SourcePrices): Size {
  const rows = computeRowsPrice(priced)
  if (rows.perRow > 0n && request.limit === undefined) {
    const { pointer, problem } = request.limitMissing
    throw makeInvalidFault(pointer, `${problem}, because every row of this collection has a price`)
  }
  return computeSizeMax(request, rows)
}

/** Lists the size of the answer part by part; null where it is empty, and that is free. */
export function listSizes(prices: readonly PartPrice[], size: Size): readonly (Size | null)[] {
  return prices.map((price) => (size.rows === 0 && price.emptyFree ? null : size))
}

export function toSize({ count, bytes }: Pick<ListRow, 'count' | 'bytes'>): Size {
  const isEmpty = count === 0
  const size = { rows: count, bytes: isEmpty ? 0 : Number(bytes) }
  return size
}

/** Sums the prices of the sources whose rows are given; derived sources cost by access alone. */
export function computeRowsPrice(priced: SourcePrices): Price {
  const rows = listPricesOfKind(priced, 'rows')
  return {
    perAccess: sumAmounts(rows, ({ perAccess }) => perAccess),
    perRow: sumAmounts(rows, ({ perRow }) => perRow),
    perKb: sumAmounts(rows, ({ perKb }) => perKb),
  }
}

function listPricesOfKind(
  { priced, prices }: SourcePrices,
  kind: PricedSource['kind'],
): readonly PartPrice[] {
  return prices.filter((_, at) => priced[at]?.kind === kind)
}

/**
 * Computes the largest answer. Without a price by the KB only the service's own limit holds, but the quote may have
 * been made under such a price.
 */
export function computeSizeMax({ limit, maxKb }: ReadBounds, { perKb }: Price): Size {
  const bytes = perKb > 0n ? (maxKb ?? maxKbDefault) * 1024 : computeBytesMax({ maxKb })
  return { rows: limit ?? 0, bytes }
}

/** Computes the largest answer where no price by the KB bounds it. */
export function computeBytesMax({ maxKb }: Pick<ReadBounds, 'maxKb'>): number {
  return maxKb === undefined ? limits.resultBytesMax : maxKb * 1024
}

function sumAmounts<T>(items: readonly T[], amount: (item: T) => bigint): bigint {
  return items.reduce((sum, item) => sum + amount(item), 0n)
}
