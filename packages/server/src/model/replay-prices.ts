import type { MeasuredPart, MeasuredWrite } from '@tollbase/verify/sale-details'
import { hourMs } from '../base/durations.ts'
import type { Catalog } from './catalog.ts'
import { computeUnboundedCost, limitCost } from './compute-cost.ts'
import {
  computeMeteredCost,
  isCurrentPeriod,
  type MeterState,
  sumUses,
  type Usage,
} from './compute-metered-cost.ts'
import { getWritePrice, type WritePrice } from './find-price.ts'
import type { Price } from './policy.ts'

/** A sale as the books have it, with the use of what one application sold in it. */
export type PastSale = {
  readonly timeMs: number
  readonly buyer: string
  /** The amount that the buyer was charged for the application's parts. */
  readonly gross: bigint
  /** Undefined for a sale from before it was noted. */
  readonly measured: readonly MeasuredPart[] | undefined
}

/** Reasons for which a sale cannot be priced anew. */
export type ReplayGap = 'older' | 'granted' | 'gone' | 'field'

/** The price of a part by other rules: none where it would not be for sale, a gap where nobody can tell. */
export type ReplayPrice = { readonly price: Price } | 'unsold' | ReplayGap

export type PastPass = {
  readonly buyer: string
  readonly kind: string
  readonly name: string
  readonly fromMs: number
  readonly untilMs: number
}

export type ReplayedPart = { readonly part: MeasuredPart; readonly cost: bigint | 'unsold' }

type ValidTime = { readonly fromMs: number; untilMs: number }

/**
 * Prices sales anew in their order, as if other rules had been in force from the first of them. It knows of each buyer
 * what tiers, quotas and passes by these rules take off.
 */
export class PriceReplay {
  readonly #catalog: Catalog
  readonly #paid = new Set<string>()
  readonly #uses = new Map<string, readonly Usage[]>()
  /** By buyer and thing, the times in which a pass is valid, in their order. */
  readonly #passes = new Map<string, ValidTime[]>()
  /** By name of a collection; undefined where it is gone. */
  readonly #writePrices = new Map<string, WritePrice | undefined>()

  constructor(catalog: Catalog) {
    this.#catalog = catalog
  }

  /** Notes a buyer who has paid the application before. */
  notePaid(buyer: string): void {
    this.#paid.add(buyer)
  }

  /** Notes a pass; of one buyer and thing in the order of their beginnings. */
  notePass(pass: PastPass): void {
    const { fromMs, untilMs } = pass
    const key = formatKey(pass)
    const known = this.#passes.get(key) ?? []
    this.#passes.set(key, known)
    const last = known.at(-1)
    // Passes that follow each other are one: a buyer may have thousands of an hour.
    if (last === undefined || fromMs > last.untilMs) known.push({ fromMs, untilMs })
    else last.untilMs = Math.max(last.untilMs, untilMs)
  }

  /** Prices a sale; `find` gives the price of what it gave. A sale that has a gap counts as it was. */
  replay(
    sale: PastSale,
    find: (part: MeasuredPart) => ReplayPrice,
  ): readonly ReplayedPart[] | ReplayGap {
    const parts = this.#priceParts(sale, find)
    const total =
      typeof parts === 'string'
        ? sale.gross
        : parts.reduce((sum, { cost }) => sum + (cost === 'unsold' ? 0n : cost), 0n)
    if (total > 0n) this.#paid.add(sale.buyer)
    return parts
  }

  #priceParts(
    sale: PastSale,
    find: (part: MeasuredPart) => ReplayPrice,
  ): readonly ReplayedPart[] | ReplayGap {
    const { measured } = sale
    if (measured === undefined) return 'older'
    const found = measured.map((part) => ({ part, priced: this.#findPrice(part, find) }))
    const gap = found.map(({ priced }) => priced).find(isGap)
    if (gap !== undefined) return gap
    return found.map(({ part, priced }) => ({ part, cost: this.#computeCost(sale, part, priced) }))
  }

  #findPrice(
    part: MeasuredPart,
    find: (part: MeasuredPart) => ReplayPrice,
  ): ReplayPrice | { readonly cost: bigint } {
    switch (part.by) {
      case 'granted':
        return 'granted'
      case 'indexed':
        return { cost: BigInt(part.charged) }
      case 'written':
        return sumWrites(
          part.written.map((one) => computeWriteCost(this.#getWritePrice(one.collection), one)),
        )
      default:
        return find(part)
    }
  }

  #computeCost(
    { buyer, timeMs }: PastSale,
    part: MeasuredPart,
    priced: ReplayPrice | { readonly cost: bigint },
  ): bigint | 'unsold' {
    if (typeof priced === 'string') return 'unsold'
    if ('cost' in priced) return priced.cost
    const { kind, name } = part
    const key = formatKey({ buyer, kind, name })
    if (part.by === 'pass') {
      this.#addPass(key, { buyer, kind, name, timeMs, hours: part.hours })
      return priced.price.perAccess
    }
    if (part.by !== 'rows' && part.by !== 'derived') return 'unsold'
    if (part.unpaid) return 0n
    const used = this.#uses.get(key) ?? []
    const state: MeterState = {
      nowMs: timeMs,
      hasPaid: this.#paid.has(buyer),
      hasPass: (this.#passes.get(key) ?? []).some(
        ({ fromMs, untilMs }) => fromMs <= timeMs && untilMs > timeMs,
      ),
      used,
    }
    const { cost, uses } = computeMeteredCost(priced.price, part, state)
    if (uses.length === 0) return cost
    // Sales come in their order: nobody asks for a period again that is over.
    const current = used.filter(({ period }) => isCurrentPeriod(period, timeMs))
    this.#uses.set(key, sumUses([...current, ...uses]))
    return cost
  }

  #getWritePrice(name: string): WritePrice | undefined {
    if (this.#writePrices.has(name)) return this.#writePrices.get(name)
    const collection = this.#catalog.byName.get(name)
    const price = collection && getWritePrice(this.#catalog, collection)
    this.#writePrices.set(name, price)
    return price
  }

  /** A pass that is bought while another is valid begins at the end of that. */
  #addPass(
    key: string,
    sold: { buyer: string; kind: string; name: string; timeMs: number; hours: number },
  ): void {
    const { buyer, kind, name, timeMs, hours } = sold
    const fromMs = Math.max(timeMs, this.#passes.get(key)?.at(-1)?.untilMs ?? timeMs)
    this.notePass({ buyer, kind, name, fromMs, untilMs: fromMs + hours * hourMs })
  }
}

/** Computes what the application itself would get for a write; a gap where a field has a price and was not noted. */
function computeWriteCost(
  price: WritePrice | undefined,
  written: MeasuredWrite,
): bigint | ReplayGap {
  if (price === undefined) return 'gone'
  let byField = 0n
  for (const { field, share } of price.fields) {
    if (share !== undefined) continue
    const sum = written.fields?.[field]
    if (sum === undefined) return 'field'
    byField += BigInt(sum)
  }
  return limitCost(price, computeUnboundedCost(price, written) + byField)
}

function sumWrites(costs: readonly (bigint | ReplayGap)[]): { readonly cost: bigint } | ReplayGap {
  let cost = 0n
  for (const one of costs) {
    if (typeof one === 'string') return one
    cost += one
  }
  return { cost }
}

function isGap(priced: ReplayPrice | { readonly cost: bigint }): priced is ReplayGap {
  return typeof priced === 'string' && priced !== 'unsold'
}

function formatKey({ buyer, kind, name }: Pick<PastPass, 'buyer' | 'kind' | 'name'>): string {
  return `${buyer} ${kind} ${name}`
}
