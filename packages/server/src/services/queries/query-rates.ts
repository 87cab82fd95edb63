import { FairCache, type FairCacheBounds } from '../../base/fair-cache.ts'
import { Fault } from '../../base/fault.ts'
import { toAddressKey } from '../../http/rate-limits.ts'
import { TokenBuckets } from '../../http/token-buckets.ts'
import type { KeptQuery } from '../../model/stored-query.ts'
import { type Caller, canRead } from '../access/access.ts'
import type { Tenant } from '../applications/tenants.ts'

type Rate = { readonly requests: number; readonly window_seconds: number }
/** The caller, their address, and the time of the request (milliseconds since 1970). */
type Visit = { readonly caller: Caller; readonly address: string; readonly nowMs: number }
type KeptBuckets = { readonly rate: Rate; readonly buckets: TokenBuckets }

/** The most callers of one query that are remembered. */
const callersMax = 5_000
/** Bytes of memory of the callers of all queries, and of those of one application, which gives away its own alone. */
const rateBounds: FairCacheBounds = {
  bytesMax: 128 * 1024 * 1024,
  shareBytesMax: 32 * 1024 * 1024,
}
const queryBytes = 1024
const callerBytes = 160

/** Limits how often each caller may run each version of a query, in the memory of this process. */
export class QueryRates {
  readonly #kept: FairCache<KeptBuckets>

  constructor(bounds: FairCacheBounds = rateBounds) {
    this.#kept = new FairCache(bounds)
  }

  /** The bytes of all that is kept. */
  get bytes(): number {
    return this.#kept.bytes
  }

  /** Takes one request; 429 where the caller has none left. Callers that may read the application are not limited. */
  take(visit: Visit, tenant: Tenant, stored: KeptQuery): void {
    const { rate_limit: rate, name, version } = stored
    if (rate === undefined || rate === null || canRead(visit.caller, tenant.application)) return
    const [holder, key] = [String(tenant.application.number), `${name} ${version}`]
    const buckets = this.#findBuckets(holder, key, rate) ?? makeBuckets(rate)
    // Buckets fill within a minute of their clock; here that minute is as long as the window.
    const pace = 60 / rate.window_seconds
    const taken = buckets.take(getCallerName(visit), 1, visit.nowMs * pace)
    const bytes = queryBytes + buckets.size * callerBytes
    this.#kept.set(holder, key, { value: { rate, buckets }, bytes })
    if (taken.ok) return
    const seconds = Math.max(1, Math.ceil(taken.waitMs / pace / 1000))
    throw new Fault('RATE_LIMITED', {
      message: `Too many requests to the query ${name}; wait ${seconds} s and try again`,
      details: { limit: 'query', retry_after_seconds: seconds },
      retryAfterSeconds: seconds,
    })
  }

  #findBuckets(holder: string, key: string, rate: Rate): TokenBuckets | undefined {
    const kept = this.#kept.get(holder, key)
    const isSame =
      kept?.rate.requests === rate.requests && kept.rate.window_seconds === rate.window_seconds
    return isSame ? kept?.buckets : undefined
  }
}

function makeBuckets({ requests }: Rate): TokenBuckets {
  return new TokenBuckets({ perMinute: requests, bucketsMax: callersMax })
}

/** A new wallet costs nothing, and neither does another key of one's own application. */
function getCallerName({ caller, address }: Visit): string {
  return caller.kind === 'key' ? `application ${caller.key.app_id}` : toAddressKey(address)
}
