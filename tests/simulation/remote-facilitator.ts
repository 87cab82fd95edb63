import { checkTerms } from '../../packages/server/src/x402/check-exact-payment.ts'
import type { Facilitator, Settlement } from '../../packages/server/src/x402/facilitator.ts'
import type { PaymentNetwork } from '../../packages/server/src/x402/networks.ts'
import type { SignedPayment } from '../../packages/server/src/x402/protocol.ts'
import { toUnreachable } from '../../packages/server/src/x402/rpc.ts'
import { getNowSeconds, isExpired } from '../../packages/server/src/x402/validity.ts'
import type { Chance } from './chance.ts'
import type { FaultProfile, Life } from './life.ts'

import type { Scheduler } from './scheduler.ts'
import { toAuthorizationKey } from './token-forms.ts'

/**
 * A payment network that is reached only through a remote facilitator, without any look at the chain. It may be
 * slow, move the money and not say so, refuse without a reason, and claim that the transaction of another payment
 * was this one's.
 */
export class RemoteFacilitator {
  readonly network: PaymentNetwork
  readonly #scheduler: Scheduler
  readonly #chance: Chance
  readonly #faultProfile: FaultProfile
  readonly #moved = new Map<
    string,
    { readonly hash: string; readonly value: bigint; readonly to: string }
  >()
  /** The payments whose settlement the service knows. A lie about any other could not be told from the truth. */
  readonly #known: string[] = []
  /** The payments about which it lied; it never moves these. */
  readonly #lies = new Map<string, string>()
  readonly #refused = new Set<string>()

  constructor(
    network: PaymentNetwork,
    parts: { scheduler: Scheduler; chance: Chance; faultProfile: FaultProfile },
  ) {
    this.network = network
    this.#scheduler = parts.scheduler
    this.#chance = parts.chance
    this.#faultProfile = parts.faultProfile
  }

  moved(from: string, nonce: string): { hash: string; value: bigint } | undefined {
    return this.#moved.get(toAuthorizationKey({ from, nonce }))
  }

  /** Lists the moves of an authorization's money, one at most: none is ever taken back here. */
  listMoves(from: string, nonce: string): readonly { hash: string; value: bigint }[] {
    const moved = this.moved(from, nonce)
    return moved === undefined ? [] : [moved]
  }

  wasConfirmed(from: string, nonce: string): boolean {
    return this.moved(from, nonce) !== undefined
  }

  /** Lists the authorizations whose money moved to the service. */
  allMoved(): string[] {
    const { payTo } = this.network
    return [...this.#moved].flatMap(([key, { to }]) => (to === payTo ? [key] : []))
  }

  /** Lists the authorizations whose money moved to somebody else. */
  allMovedElsewhere(): string[] {
    const { payTo } = this.network
    return [...this.#moved].flatMap(([key, { to }]) => (to === payTo ? [] : [key]))
  }

  isKnown(hash: string): void {
    if (!this.#known.includes(hash)) this.#known.push(hash)
  }

  hasRefused(from: string, nonce: string): boolean {
    return this.#refused.has(toAuthorizationKey({ from, nonce }))
  }

  hasLied(from: string, nonce: string): boolean {
    return this.#lies.has(toAuthorizationKey({ from, nonce }))
  }

  /** The facilitator as one process reaches it; to ask again is the only way to look up, as there is no node. */
  facilitator(life: Life): Facilitator {
    const trouble = { latency: [20, 400] as [number, number], perMille: this.#faultProfile.outside }
    const settle = async (payment: SignedPayment): Promise<Settlement> => {
      const silent = () => new Silence()
      try {
        const work = async () => this.#settle(life, payment)
        return await life.step('told settle', work, { ...trouble, lost: silent })
      } catch (error) {
        if (error instanceof Silence) return { state: 'pending', reason: 'facilitator_silent' }
        throw error
      }
    }
    return {
      verify: async (payment, requirement) => {
        const terms = checkTerms(payment, requirement, getNowSeconds(life.world))
        if (!terms.ok) return terms
        const lost = () => toUnreachable(new Error('the facilitator gave no answer'))
        return life.step('told verify', async () => ({ ok: true }), { ...trouble, lost })
      },
      isUsed: async () => false,
      findUse: async () => ({ state: 'failed', reason: 'use_not_found', final: false }),
      settle: (_, payment) => settle(payment),
      lookup: (_, payment) => settle(payment),
    }
  }

  #settle(life: Life, payment: SignedPayment): Settlement {
    const { payload } = payment
    const key = toAuthorizationKey(payload)
    const earlier = this.#moved.get(key)?.hash ?? this.#lies.get(key)
    if (earlier !== undefined) return { state: 'settled', transaction: earlier }
    if (isExpired(life.world, payload)) return { state: 'failed', reason: 'expired', final: true }
    const outside = this.#faultProfile.outside
    if (this.#chance.happens('facilitator refuses', outside * 2)) {
      this.#refused.add(key)
      return { state: 'failed', reason: 'no reason', final: false }
    }
    const other = this.#known.at(-1)
    if (other !== undefined && this.#chance.happens('facilitator lies', outside * 5)) {
      this.#scheduler.note(`facilitator lies about ${key}`)
      this.#lies.set(key, other)
      return { state: 'settled', transaction: other }
    }
    const hash = `0x${this.#chance.bytes('facilitator transaction', 32).toString('hex')}`
    this.#moved.set(key, { hash, value: payload.value, to: payload.to })
    return { state: 'settled', transaction: hash }
  }
}

class Silence extends Error {}
