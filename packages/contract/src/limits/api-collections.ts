/** Bounds on API collections and on requests to their upstreams. */
export const apiCollectionLimits = {
  /** Characters of an upstream's URL and of one of its headers, and headers of one. */
  upstreamUrlCharsMax: 2_000,
  upstreamHeaderCharsMax: 4_096,
  upstreamHeadersMax: 20,
  upstreamCacheSecondsMax: 24 * 3600,
  /** Largest answer of an upstream, and the time for all of it, its address included. */
  upstreamBytesMax: 1024 * 1024,
  upstreamMs: 10_000,
  /**
   * Requests to upstreams at once: of one application, and in all; those that may wait for a turn, of each rank; and
   * the longest wait.
   */
  upstreamsAtOnceOfApplicationMax: 8,
  upstreamsAtOnceMax: 64,
  upstreamsWaitingMax: 128,
  upstreamsWaitingOfApplicationMax: 32,
  upstreamsWaitingOfCallerMax: 16,
  upstreamWaitMs: 5_000,
} as const
