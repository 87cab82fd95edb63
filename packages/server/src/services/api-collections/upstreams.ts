import { createHash } from 'node:crypto'
import { promises } from 'node:dns'
import { limits } from '@tollbase/contract/limits'
import { LRUCache } from 'lru-cache'
import { awaitWithin } from '../../base/await-within.ts'
import { Semaphore, type SemaphoreOptions, type Turn } from '../../base/semaphore.ts'
import type { World } from '../../base/world.ts'
import type { AllowedHost } from '../../upstream/allowed-host.ts'
import {
  askUpstream,
  type UpstreamAnswer,
  type UpstreamRequest,
} from '../../upstream/ask-upstream.ts'
import { type Resolver, resolveUpstream } from '../../upstream/resolve-upstream.ts'
import { UpstreamError } from '../../upstream/upstream-error.ts'

/** Bytes of all answers of upstreams that are kept to be given again. */
const upstreamCacheBytesMax = 32 * 1024 * 1024

export type UpstreamsOptions = {
  readonly world: World
  /** Hosts that the operator allows wherever they are. */
  readonly allowed: readonly AllowedHost[]
  /** 32 bytes; headers of upstreams are sealed with them. */
  readonly headerKey: Buffer
  readonly resolver?: Resolver
}

/** A request to an upstream, and how long its answer may be given again. */
export type UpstreamCall = {
  readonly turn: Turn
  readonly request: UpstreamRequest
  /** Text that is another one for every definition and request. */
  readonly name: string
  readonly cacheSeconds: number
}

type CachedAnswer = { readonly answer: UpstreamAnswer; readonly untilMs: number }

const dnsOptions = { timeout: 2_000, tries: 2 }
/** The approximate overhead of a cached answer. */
const entryBytes = 1_024

/** Asks upstreams: few at once, within a time, and not again while an answer is good. */
export class Upstreams {
  readonly allowed: readonly AllowedHost[]
  readonly headerKey: Buffer
  readonly #world: World
  readonly #resolver: Resolver
  readonly #cache = new LRUCache<string, CachedAnswer>({ maxSize: upstreamCacheBytesMax })
  readonly #underWay = new Map<string, Promise<UpstreamAnswer>>()
  readonly #all: Semaphore
  readonly #byApplication = new Map<string, Semaphore>()

  constructor({ world, allowed, headerKey, resolver }: UpstreamsOptions) {
    this.allowed = allowed
    this.headerKey = headerKey
    this.#world = world
    this.#resolver = resolver ?? new promises.Resolver(dnsOptions)
    this.#all = makeSemaphore(world, { atOnceMax: limits.upstreamsAtOnceMax })
  }

  /** Throws 429 or 503 where a request would find no turn, so that nobody pays for it; a cached answer needs none. */
  refuseFull({ turn, name }: UpstreamCall): void {
    if (this.#findCached(name) !== undefined) return
    this.#all.refuseFull(turn)
    this.#byApplication.get(turn.application)?.refuseFull(turn)
  }

  /** Returns the answer, a cached one where there is one that is still good. Throws an UpstreamError, 429 or 503. */
  async ask(call: UpstreamCall): Promise<UpstreamAnswer> {
    if (call.cacheSeconds === 0) return this.#askNow(call)
    const other = this.#underWay.get(call.name)
    if (other === undefined) return this.#findCached(call.name) ?? this.#fill(call)
    try {
      return await other
    } catch (error) {
      // The upstream's failure is the outcome for all who waited. If each of them asked again, an upstream that waits
      // for itself would be asked without end.
      if (error instanceof UpstreamError) throw error
      // The other one had no turn, which says nothing of this one's.
      return this.#findCached(call.name) ?? this.#fill(call)
    }
  }

  /** One request fills the cache for all who wait for it. */
  async #fill(call: UpstreamCall): Promise<UpstreamAnswer> {
    const { name } = call
    // Others may want the answer too, so it does not end with this caller.
    const asking = this.#askNow({ ...call, turn: { ...call.turn, getSignal: undefined } })
    this.#underWay.set(name, asking)
    try {
      const answer = await asking
      this.#keep(call, answer)
      return answer
    } finally {
      if (this.#underWay.get(name) === asking) this.#underWay.delete(name)
    }
  }

  #findCached(name: string): UpstreamAnswer | undefined {
    const cached = this.#cache.get(digest(name))
    return cached !== undefined && cached.untilMs > this.#world.now() ? cached.answer : undefined
  }

  #keep({ name, cacheSeconds }: UpstreamCall, answer: UpstreamAnswer): void {
    const untilMs = this.#world.now() + cacheSeconds * 1000
    this.#cache.set(digest(name), { answer, untilMs }, { size: answer.body.length + entryBytes })
  }

  async #askNow(call: UpstreamCall): Promise<UpstreamAnswer> {
    const { application } = call.turn
    const known = this.#byApplication.get(application)
    const most = limits.upstreamsAtOnceOfApplicationMax
    const own = known ?? makeSemaphore(this.#world, { atOnceMax: most, ofApplicationMax: most })
    this.#byApplication.set(application, own)
    try {
      return await own.run(call.turn, () => this.#all.run(call.turn, () => this.#send(call)))
    } finally {
      const { running, waiting } = own.stats()
      if (running + waiting === 0) this.#byApplication.delete(application)
    }
  }

  async #send({ request, turn }: UpstreamCall): Promise<UpstreamAnswer> {
    const world = this.#world
    const beginMs = world.ticks()
    const addresses = await awaitWithin(
      resolveUpstream(request.url, { allowed: this.allowed, resolver: this.#resolver }),
      { world, ms: limits.upstreamMs, otherwise: undefined },
    )
    const leftMs = Math.ceil(limits.upstreamMs - (world.ticks() - beginMs))
    if (addresses === undefined || leftMs <= 0)
      throw new UpstreamError('late', 'its name was not resolved in time')
    const bytesMax = limits.upstreamBytesMax
    return askUpstream(request, addresses, {
      world,
      deadlineMs: leftMs,
      bytesMax,
      signal: turn.getSignal?.(),
    })
  }
}

function makeSemaphore(
  world: World,
  most: Pick<SemaphoreOptions, 'atOnceMax' | 'ofApplicationMax'>,
): Semaphore {
  return new Semaphore({
    ...most,
    world,
    waitingMax: limits.upstreamsWaitingMax,
    waitingOfApplicationMax: limits.upstreamsWaitingOfApplicationMax,
    waitingOfCallerMax: limits.upstreamsWaitingOfCallerMax,
    waitMs: limits.upstreamWaitMs,
  })
}

/** Keys of one length, whatever callers send. */
function digest(name: string): string {
  return createHash('sha256').update(name).digest('base64url')
}
