import { type Static, Type } from 'typebox'
import { PositiveInteger } from './positive-integer.ts'

const quotaDefaults = { megabytes: 10_240, records: 20_000_000 } as const

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

/** Fills in what the file does not say, in bytes and entries of the log; null is no bound, which `off` stands for. */
export function readQuota(given: Static<typeof ApplicationQuota> | undefined): {
  readonly bytes: number | null
  readonly records: number | null
} {
  if (given === 'off') return { bytes: null, records: null }
  const { megabytes, records } = { ...quotaDefaults, ...given }
  return { bytes: megabytes * 1024 * 1024, records }
}
