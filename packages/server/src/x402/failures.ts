import { limits } from '@tollbase/contract/limits'
import { dayMs } from '../base/durations.ts'
import type { World } from '../base/world.ts'
import { readCode } from './evm-chain.ts'
import type { Verification } from './facilitator.ts'
import type { Rpc } from './rpc.ts'

/** The most payers whose failures are remembered, and the most payments by code that are. */
const payersMax = 4096
const byCodeMax = 10_000

/** The refusal of a payment whose payer has made too many fail. */
export const failedBefore: Verification = {
  ok: false,
  reason: 'failed_before',
  detail: `${limits.failedPaymentsMax} payments failed after they were found good; wait ${limits.failedPaymentSeconds / 60} minutes`,
}

/** plain: the payer's wallet has no code; allowed: it has, or nobody says; refused: the payer made too many fail. */
export type PayerVerdict = 'plain' | 'allowed' | 'refused'

/**
 * Remembers, for one network, the payments that failed on our gas after they were found good. A payer can make many
 * fail with one transaction (it revokes an allowance). A wallet with code can make each one fail for free, because its
 * code can behave differently in a simulation and in a block. So each payer may have a few failures an hour. New
 * wallets are free, so all wallets with code together may have a certain number a day, and their payments count as
 * failed from the moment they are sent until they are made.
 */
export class Failures {
  readonly #ports: { readonly rpc: Rpc; readonly world: World }
  readonly #payers = new Map<string, Map<string, number>>()
  /** Payments by wallets with code that are under way. */
  readonly #underWay = new Set<string>()
  /** Payments that the code of a wallet made fail, with their times. */
  readonly #byCode = new Map<string, number>()

  constructor(ports: { readonly rpc: Rpc; readonly world: World }) {
    this.#ports = ports
  }

  /** Returns true where no more payments of this payer are tried for now. */
  isOver(payer: string): boolean {
    const known = this.#payers.get(payer)
    if (known === undefined) return false
    dropOlder(known, this.#ports.world.now() - limits.failedPaymentSeconds * 1000)
    return known.size >= limits.failedPaymentsMax
  }

  /** Asked before gas is spent on a payment. */
  async allow(payer: string, id: string): Promise<PayerVerdict> {
    // A failed payment has its transaction already and gets no other one, so a repetition of it is not a new attempt.
    if (this.#underWay.has(id) || this.#byCode.has(id)) return 'allowed'
    // A node that does not answer says nothing about a wallet.
    const code = await readCode(this.#ports.rpc, payer).catch(() => undefined)
    // Some of those that were found good together may have failed since.
    if (this.isOver(payer)) return 'refused'
    if (code === '0x') return 'plain'
    if (code === undefined) return 'allowed'
    dropOlder(this.#byCode, this.#ports.world.now() - dayMs)
    if (this.#byCode.size >= limits.failedPaymentsByCodeMax) return 'refused'
    this.#note(payer, id, this.#ports.world.now())
    keepNewest(this.#underWay.add(id), byCodeMax)
    return 'allowed'
  }

  /** Notes a payment by its id that failed on our gas, from the time at which it was sent; the same one counts once. */
  noteFailed(payer: string, id: string, sentMs: number = this.#ports.world.now()): void {
    this.#note(payer, id, sentMs)
    if (!this.#underWay.delete(id)) return
    keepNewest(this.#byCode.set(id, this.#ports.world.now()), byCodeMax)
  }

  /** Notes that nothing is lost by a payment: it was made, or was never sent. */
  noteHarmless(payer: string, id: string): void {
    if (this.#underWay.delete(id)) this.#payers.get(payer)?.delete(id)
  }

  #note(payer: string, id: string, atMs: number): void {
    const known = this.#payers.get(payer) ?? new Map<string, number>()
    // The last one to fail is the last one to be forgotten.
    this.#payers.delete(payer)
    // Its outcome may be read again and again.
    if (!known.has(id)) known.set(id, atMs)
    this.#payers.set(payer, known)
    keepNewest(this.#payers, payersMax)
  }
}

function dropOlder(times: Map<string, number>, beforeMs: number): void {
  for (const [id, atMs] of times) if (atMs <= beforeMs) times.delete(id)
}

function keepNewest(
  kept: {
    readonly size: number
    readonly keys: () => Iterable<string>
    readonly delete: (key: string) => unknown
  },
  most: number,
): void {
  const [oldest] = kept.keys()
  if (kept.size > most && oldest !== undefined) kept.delete(oldest)
}
