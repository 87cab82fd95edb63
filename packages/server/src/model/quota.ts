import type { Entry } from '@tollbase/verify/entry'
import { Fault } from '../base/fault.ts'
import type { Contents } from '../chain/chain-options.ts'

/** The most that an application may keep; null is no bound. */
export type Quota = { readonly bytes: number | null; readonly records: number | null }

/** The operator's quota for one application: a missing part falls back to the service's own. */
export type OwnQuota = { readonly bytes?: number | null; readonly records?: number | null }

/**
 * The room beyond the quota for definitions and entries that refresh views: without it nobody could delete, sell or
 * close anything in a full application.
 */
export const definitionReserve = { bytes: 16 * 1024 * 1024, records: 10_000 } as const

export function mergeQuota(service: Quota, own: OwnQuota | null | undefined): Quota {
  return { ...service, ...own }
}

/** QUOTA_EXCEEDED where the log of an application, which nothing leaves but what expired, would hold more than it may. */
export function refuseOverQuota(
  quota: Quota,
  change: { readonly before: Contents; readonly after: Contents; readonly isData: boolean },
): void {
  const { before, after, isData } = change
  for (const [name, max] of Object.entries(quota) as [keyof Quota, number | null][]) {
    if (max === null) continue
    const reserve = isData ? 0 : definitionReserve[name]
    const [used, wanted] = [getUsage(before)[name], getUsage(after)[name]]
    if (wanted <= max + reserve) continue
    throw new Fault('QUOTA_EXCEEDED', {
      message: `This application may keep ${max} ${name}, has ${used}, and this needs ${wanted - used} more; the operator of the service can raise its quota (PATCH /api/apps/{app}). Deleted records stay in the chain and count; records that expire by a retention leave it`,
      details: { quota: name, limit: max, used, needed: wanted - used },
    })
  }
}

/** Records are versions and definitions alike: whatever is an entry of the chain. */
export function getUsage({ entries, bytes }: Contents): { bytes: number; records: number } {
  return { bytes, records: entries }
}

/** Returns true for content that is stored, false for definitions of how it is stored. */
export function isData({ header }: Entry): boolean {
  return header.type === 'record' || (header.type === 'definition' && header.kind === 'data_set')
}

const ownTypes: ReadonlySet<unknown> = new Set(['expire', 'erase', 'reseal'])

/**
 * Returns true for entries by which versions of records expire or change their encryption: they make room, or take
 * the place of what leaves the log, however full it is.
 */
export function isOwnWork({ header }: Entry): boolean {
  return ownTypes.has(header.type)
}
