import type { World } from '../base/world.ts'
import type { Fees } from './evm-chain.ts'
import { computeHigherOffer } from './fees.ts'
import type { Journal, Journaled, Replacement } from './journal.ts'
import { parseTransaction, signTransaction, type Transaction } from './transaction.ts'

export type ReplacerOptions = {
  readonly journal: Pick<Journal, 'replace' | 'withdraw'>
  readonly world: World
  readonly log: { readonly info: (fields: object, text: string) => void }
  /** 32 bytes, and the address of it. */
  readonly key: Uint8Array
  readonly address: string
  readonly readFees: () => Promise<Fees>
  /** Wei of the most that is paid for a unit of gas; unlimited when not given. */
  readonly feeMax: bigint | undefined
  readonly replaceAfterMs: number
}

/**
 * After so many replacements a transaction is only broadcast again: that is eight hours, and an authorization lasts
 * two.
 */
const replacementsMax = 9
/**
 * The gas limit of a transaction that does nothing: 21,000 are used; chains that charge for another chain's data need
 * more.
 */
const emptyGas = 100_000n

/** Puts other transactions in the place of some that no block took, each with the same nonce: one of them is mined. */
export class Replacer {
  readonly #options: ReplacerOptions
  /** The time from which on a transaction is known to be in no block, though it was sent. */
  #openSinceMs: ReadonlyMap<string, number> = new Map()

  constructor(options: ReplacerOptions) {
    this.#options = options
  }

  /** Signs with higher fees what has waited for too long; returns all as they are to be broadcast now. */
  async replaceOld(open: readonly Journaled[]): Promise<readonly Journaled[]> {
    const { world, feeMax } = this.#options
    const now = world.now()
    this.#openSinceMs = new Map(
      open.map(({ id }) => [id, Math.min(this.#openSinceMs.get(id) ?? now, now)]),
    )
    const old = open.filter((row) => this.#isOld(row, now))
    if (old.length === 0) return open
    const fees = await this.#options.readFees()
    const replaced = new Map<string, Journaled>()
    for (const row of old) {
      const transaction = parseTransaction(row.raw)
      const offer = computeHigherOffer(transaction, fees, feeMax)
      if (offer !== undefined) replaced.set(row.id, this.#sign(row, { ...transaction, ...offer }))
    }
    if (replaced.size === 0) return open
    const rows = old.flatMap((row) => this.#toReplacement(row, replaced.get(row.id)) ?? [])
    // Nothing that is not in the journal may leave; the next round reads what is there.
    if (!(await this.#options.journal.replace(rows))) return []
    this.#tell(rows, 'a transaction that waits is sent with higher fees')
    return open.map((row) => replaced.get(row.id) ?? row)
  }

  /**
   * Signs transactions that do nothing in the place of those that may not leave any more: their nonces would hold back
   * all that follow. The bytes of those are forgotten; a node may have taken them, so their hashes are not.
   */
  async withdraw(unwanted: readonly Journaled[]): Promise<readonly Journaled[]> {
    if (unwanted.length === 0) return []
    const { address, feeMax, readFees, journal } = this.#options
    const fees = await readFees()
    const signed = unwanted.map((row) => {
      const transaction = parseTransaction(row.raw)
      const offer = computeHigherOffer(transaction, fees, feeMax)
      return this.#sign(row, { ...transaction, ...offer, gas: emptyGas, to: address, data: '0x' })
    })
    const rows = unwanted.flatMap((row, at) => this.#toReplacement(row, signed[at]) ?? [])
    if (!(await journal.withdraw(rows))) return []
    this.#tell(rows, 'a transaction that may not be sent any more gives its nonce to an empty one')
    return signed
  }

  /** A time before which the clock was set back says nothing. */
  #isOld({ id, replacedAtMs, createdAtMs }: Journaled, now: number): boolean {
    if (replacedAtMs.length >= replacementsMax) return false
    const sentMs = Number(replacedAtMs.at(-1) ?? createdAtMs)
    const openMs = this.#openSinceMs.get(id) ?? now
    const sinceMs = sentMs > now ? openMs : Math.max(sentMs, openMs)
    return now - sinceMs >= this.#options.replaceAfterMs * 2 ** replacedAtMs.length
  }

  #sign(row: Journaled, transaction: Transaction): Journaled {
    const signed = signTransaction(transaction, this.#options.key)
    return { ...row, ...signed, state: 'signed', blockNumber: null }
  }

  #toReplacement(
    { id, hash: replacedHash }: Journaled,
    by: Journaled | undefined,
  ): Replacement | undefined {
    const atMs = BigInt(this.#options.world.now())
    return by && { id, raw: by.raw, hash: by.hash, replacedHash, atMs }
  }

  #tell(rows: readonly Replacement[], text: string): void {
    this.#options.world.failpoint?.('payment.replaced')
    for (const { id, hash, replacedHash } of rows)
      this.#options.log.info({ id, hash, replacedHash }, text)
  }
}

/** Returns true for a transaction whose nonce was given to one that does nothing. */
export function isWithdrawn({ raw, signer }: Pick<Journaled, 'raw' | 'signer'>): boolean {
  const { to, data } = parseTransaction(raw)
  return to === signer && data === '0x'
}
