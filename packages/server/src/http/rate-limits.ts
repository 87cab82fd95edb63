import ipaddr from 'ipaddr.js'
import { Fault } from '../base/fault.ts'
import { SharedRoom } from '../base/shared-room.ts'
import type { World } from '../base/world.ts'
import type { InFlightName, RequestContext } from './request-context.ts'
import { TokenBuckets } from './token-buckets.ts'

/** Buckets of one rate limit in memory; past them the one unused the longest is forgotten. */
const rateLimitBucketsMax = 20_000

/**
 * Rates per minute, by name; one that is not given is off. docs/limits.md says which requests take from which
 * one.
 */
export type Rates = {
  /** Points of one address, for callers without a key. */
  readonly address?: number
  /**
   * Requests of one address or key that carry a payment which buys nothing new, and sales out of one account that do not
   * pay for their entries.
   */
  readonly payment?: number
  readonly key?: number
  /** Requests with any key of one application. */
  readonly application?: number
  /** Requests without a key to one application, from all addresses. */
  readonly visitors?: number
}

/**
 * Most requests of a kind that may be in work at once. One address has half of them at most, and a quarter is kept for
 * addresses without any, so that a few whose requests are slow leave places for others.
 */
export type InFlightLimits = { readonly [name in InFlightName]?: number }

type RateName = keyof Rates
export type LimitName = RateName | InFlightName

const rateNames = ['address', 'payment', 'key', 'application', 'visitors'] as const
const inFlightNames = ['anonymous_in_flight', 'paying_in_flight'] as const

type Rate = { readonly perMinute: number; readonly buckets: TokenBuckets }

/** The rates and the concurrency that callers are held to, in the memory of this process. */
export class RateLimits {
  readonly #world: World
  readonly #onRefused: (limit: LimitName) => void
  readonly #rates = new Map<RateName, Rate>()
  readonly #places = new Map<InFlightName, SharedRoom>()

  constructor(options: {
    readonly world: World
    readonly settings: Rates & InFlightLimits
    /** Called for each refusal. */
    readonly onRefused?: (limit: LimitName) => void
  }) {
    this.#world = options.world
    this.#onRefused = options.onRefused ?? (() => undefined)
    for (const name of inFlightNames) {
      const max = options.settings[name]
      if (max === undefined) continue
      const bounds = { max, ofHolderMax: Math.ceil(max / 2), forNew: Math.floor(max / 4) }
      this.#places.set(name, new SharedRoom(bounds))
    }
    for (const name of rateNames) {
      const perMinute = options.settings[name]
      if (perMinute === undefined) continue
      const buckets = new TokenBuckets({ perMinute, bucketsMax: rateLimitBucketsMax })
      this.#rates.set(name, { perMinute, buckets })
    }
  }

  /** Takes from a rate; throws RATE_LIMITED and takes nothing where too little is left. */
  take(
    context: RequestContext,
    name: RateName,
    of: { readonly key: string; readonly cost?: number },
  ): void {
    const rate = this.#rates.get(name)
    if (rate === undefined) return
    const taken = rate.buckets.take(of.key, of.cost ?? 1, this.#world.now())
    context.rateLimitHeaders.add(name, {
      perMinute: rate.perMinute,
      left: taken.left,
      fullSeconds: Math.ceil(taken.fullMs / 1000),
    })
    if (!taken.ok) throw this.#refusal(name, Math.max(1, Math.ceil(taken.waitMs / 1000)))
  }

  /** Takes the cost of the answer beyond what was taken before; returns how much of it was taken. */
  charge(name: RateName, of: { readonly key: string; readonly cost: number }): number {
    return this.#rates.get(name)?.buckets.charge(of.key, of.cost, this.#world.now()) ?? 0
  }

  giveBack(name: RateName, of: { readonly key: string; readonly cost: number }): void {
    this.#rates.get(name)?.buckets.giveBack(of.key, of.cost, this.#world.now())
  }

  /** Returns true where less than one is left; takes nothing. */
  isUsedUp(name: RateName, key: string): boolean {
    return this.#computeWait(name, key) > 0
  }

  /** Throws RATE_LIMITED where less than one is left; takes nothing. */
  refuseUsedUp(name: RateName, key: string): void {
    const waitMs = this.#computeWait(name, key)
    if (waitMs > 0) throw this.#refusal(name, Math.ceil(waitMs / 1000))
  }

  /** Takes a place until the returned function is called; throws RATE_LIMITED where the address may have none. */
  occupy(name: InFlightName, address: string): () => void {
    const place = this.#places.get(name)?.open(address)
    if (place?.set(1) === false) throw this.#refusal(name, 1)
    return () => void place?.set(0)
  }

  #computeWait(name: RateName, key: string): number {
    return this.#rates.get(name)?.buckets.computeWait(key, 1, this.#world.now()) ?? 0
  }

  #refusal(limit: LimitName, retryAfterSeconds: number): Fault {
    this.#onRefused(limit)
    return new Fault('RATE_LIMITED', {
      message: `${sentences[limit]}; wait ${retryAfterSeconds} s and try again`,
      details: { limit, retry_after_seconds: retryAfterSeconds },
      retryAfterSeconds,
    })
  }
}

const sentences: Readonly<Record<LimitName, string>> = {
  address: 'Too many requests without a key from this address',
  payment: 'Too many payments that bought nothing, or too little',
  key: 'Too many requests with this key',
  application: "Too many requests with this application's keys",
  visitors: 'Too many requests without a key to this application',
  anonymous_in_flight: 'Too many requests without a key are being worked on',
  paying_in_flight: 'Too many payments are being worked on',
}

/**
 * Returns the key under which an address is limited: an IPv6 host has a whole /64 to itself, so the /64 counts; an
 * IPv4 address that arrived by an IPv6 socket is the IPv4 address.
 */
export function toAddressKey(address: string): string {
  if (!address.includes(':') || !ipaddr.isValid(address)) return address
  const plain = ipaddr.process(address)
  if (plain.kind() === 'ipv4') return plain.toString()
  const groups = plain.toNormalizedString().split(':')
  return `${groups.slice(0, 4).join(':')}::/64`
}
