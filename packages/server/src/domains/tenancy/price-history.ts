import { limits } from '@tollbase/contract/limits'
import type { Catalog } from './catalog.ts'

/**
 * Catalogs that were replaced so lately that a quote made under them may still be paid.
 * Clients that echo the quote need no history; older ones send only the amount.
 */
export class PriceHistory {
  #replaced: { catalog: Catalog; untilMs: number }[] = []

  changed(before: Catalog, after: Catalog, nowMs: number): void {
    if (before.version === after.version) return
    this.#replaced = this.#live(nowMs)
    this.#replaced.push({ catalog: before, untilMs: nowMs + limits.quoteLifetimeSeconds * 1000 })
  }

  /** The catalogs whose prices may still be paid, newest first. */
  honoured(nowMs: number): Catalog[] {
    return this.#live(nowMs)
      .map(({ catalog }) => catalog)
      .reverse()
  }

  #live(nowMs: number) {
    return this.#replaced.filter(({ untilMs }) => untilMs > nowMs).slice(-100)
  }
}
