import { LRUCache } from 'lru-cache'
import { Fault } from '../../base/fault.ts'
import { toAddressKey } from '../../http/rate-limits.ts'
import { TokenBuckets } from '../../http/token-buckets.ts'
import type { KeptQuery } from '../../model/stored-query.ts'
import { type Caller, canRead } from '../access/access.ts'
import type { Tenant } from '../applications/tenants.ts'
import { queryPlansMax } from './query-plans.ts'

type Rate = { readonly requests: number; readonly window_seconds: number }
/** The caller, their address, and the time of the request (milliseconds since 1970). */
type Visit = { readonly caller: Caller; readonly address: string; readonly nowMs: number }
type KeptBuckets = { readonly rate: Rate; readonly buckets: TokenBuckets }

/** The most callers of one query that are remembered, and the most queries. */
const callersMax = 5_000
const queriesMax = queryPlansMax

/** Limits how often each caller may run each version of a query, in the memory of this process. */
export class QueryRates {
  readonly #kept = new LRUCache<string, KeptBuckets>({ max: queriesMax })

  /** Takes one request; 429 where the caller has none left. Callers that may read the application are not limited. */
  take(visit: Visit, tenant: Tenant, stored: KeptQuery): void {
    const { rate_limit: rate, name, version } = stored
    if (rate === undefined || rate === null || canRead(visit.caller, tenant.application)) return
    const buckets = this.#getBuckets(`${tenant.application.number} ${name} ${version}`, rate)
    // Buckets fill within a minute of their clock; here that minute is as long as the window.
    const pace = 60 / rate.window_seconds
    const taken = buckets.take(getCallerName(visit), 1, visit.nowMs * pace)
    if (taken.ok) return
    const seconds = Math.max(1, Math.ceil(taken.waitMs / pace / 1000))
    throw new Fault('RATE_LIMITED', {
      message: `Too many requests to the query ${name}; wait ${seconds} s and try again`,
      details: { limit: 'query', retry_after_seconds: seconds },
      retryAfterSeconds: seconds,
    })
  }

  #getBuckets(key: string, rate: Rate): TokenBuckets {
    const kept = this.#kept.get(key)
    const isSame =
      kept?.rate.requests === rate.requests && kept.rate.window_seconds === rate.window_seconds
    if (kept !== undefined && isSame) return kept.buckets
    const buckets = new TokenBuckets({ perMinute: rate.requests, bucketsMax: callersMax })
    this.#kept.set(key, { rate, buckets })
    return buckets
  }
}

/** A new wallet costs nothing, and neither does another key of one's own application. */
function getCallerName({ caller, address }: Visit): string {
  return caller.kind === 'key' ? `application ${caller.key.app_id}` : toAddressKey(address)
}
