import { type Static, Type } from 'typebox'
import type { InFlightLimits, Rates } from '../http/rate-limits.ts'
import { PositiveInteger } from './positive-integer.ts'

/** Limits that no ordinary use of one process comes near; see docs/limits.md. */
const rateLimitDefaults = {
  address: 12_000,
  payment: 600,
  key: 300_000,
  application: 600_000,
  visitors: 300_000,
  anonymous_in_flight: 256,
  paying_in_flight: 1024,
} as const satisfies Required<Rates & InFlightLimits>

const rateLimitTexts = {
  address: 'points a minute of one address without a key',
  payment: 'payments a minute of one address or key that buy nothing new',
  key: 'requests a minute with one key',
  application: 'requests a minute with the keys of one application',
  visitors: 'requests a minute without a key to one application',
  anonymous_in_flight: 'requests without a key at once, half of them of one address',
  paying_in_flight: 'requests without a key that pay at once, half of them of one address',
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
  { description: 'how much callers may ask for, or "off"; see docs/limits.md' },
)

/** Fills in what the file does not say; `off` is no limit at all. */
export function readRateLimits(
  given: Static<typeof RateLimits> | undefined,
): Rates & InFlightLimits {
  return given === 'off' ? {} : { ...rateLimitDefaults, ...given }
}
