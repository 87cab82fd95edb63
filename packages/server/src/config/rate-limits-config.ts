import { type Static, Type } from 'typebox'
import type { InFlightLimits, Quotas } from '../http/rate-limits.ts'
import { PositiveInteger } from './positive-integer.ts'

/** Limits that no ordinary use of one process comes near; see docs/operating.md. */
const rateLimitDefaults = {
  address: 12_000,
  payment: 600,
  key: 300_000,
  application: 600_000,
  visitors: 300_000,
  anonymous_in_flight: 256,
  paying_in_flight: 1024,
} as const satisfies Required<Quotas & InFlightLimits>

const quotaDefaults = { megabytes: 10_240, records: 20_000_000 } as const

const rateLimitTexts = {
  address: 'points a minute of one address without a key',
  payment: 'payments a minute of one address or key that buy nothing new',
  key: 'requests a minute with one key',
  application: 'requests a minute with the keys of one application',
  visitors: 'requests a minute without a key to one application',
  anonymous_in_flight: 'requests without a key at once',
  paying_in_flight: 'requests without a key that pay at once',
} as const

const describeLimit = (name: keyof typeof rateLimitDefaults) =>
  PositiveInteger(`${rateLimitTexts[name]}; ${rateLimitDefaults[name]} when not given`)

/** The limits on what callers may ask for: `rate_limits` of the configuration. */
export const RateLimits = Type.Union(
  [
    Type.Literal('off'),
    Type.Object(
      {
        address: describeLimit('address'),
        payment: describeLimit('payment'),
        key: describeLimit('key'),
        application: describeLimit('application'),
        visitors: describeLimit('visitors'),
        anonymous_in_flight: describeLimit('anonymous_in_flight'),
        paying_in_flight: describeLimit('paying_in_flight'),
      },
      { additionalProperties: false },
    ),
  ],
  { description: 'how much callers may ask for, or "off"; see docs/operating.md' },
)

/** The limits on what an application may keep: `quota` of the configuration. */
export const ApplicationQuota = Type.Union(
  [
    Type.Literal('off'),
    Type.Object(
      {
        megabytes: PositiveInteger(`MiB of its log; ${quotaDefaults.megabytes} when not given`),
        records: PositiveInteger(`entries of its log; ${quotaDefaults.records} when not given`),
      },
      { additionalProperties: false },
    ),
  ],
  {
    description:
      'what each application may keep where the operator sets nothing else for it, or "off"; see docs/operating.md',
  },
)

/** Fills in what the file does not say; `off` is no limit at all. */
export function readRateLimits(
  given: Static<typeof RateLimits> | undefined,
): Quotas & InFlightLimits {
  return given === 'off' ? {} : { ...rateLimitDefaults, ...given }
}

/** The same for an application's quota, in bytes and entries of its log; null is no bound. */
export function readQuota(given: Static<typeof ApplicationQuota> | undefined): {
  readonly bytes: number | null
  readonly records: number | null
} {
  if (given === 'off') return { bytes: null, records: null }
  const { megabytes, records } = { ...quotaDefaults, ...given }
  return { bytes: megabytes * 1024 * 1024, records }
}
