import { awaitWithin } from '../base/await-within.ts'
import type { World } from '../base/world.ts'
import type { Chain } from '../chain/chain.ts'
import type { Database } from '../database/database.ts'
import type { FreeSpace } from '../database/embedded/free-space.ts'
import { getUsage } from '../model/quota.ts'
import { sumHeld } from '../projections/held-payments.ts'
import { countChannels } from '../projections/read-channels.ts'
import type { Tenants } from '../services/applications/tenants.ts'
import { readBacklog } from '../services/payments/claims/claim-lists.ts'
import type { GasKey } from '../services/payments/open-payment-methods.ts'
import type { Payments } from '../services/payments/payments.ts'
import type { Publishing } from '../services/publishing/publishing.ts'
import type { ResultCache } from '../services/reading/result-cache.ts'
import type { QueryRunner } from '../services/reading/run-query.ts'
import { countUndecided } from '../x402/journal.ts'

export type ObservedParts = {
  readonly world: World
  readonly database: Database
  readonly freeSpace: FreeSpace | undefined
  readonly tenants: Tenants
  readonly payments: Payments
  readonly gasKeys: readonly GasKey[]
  readonly publishing: readonly Publishing[]
  readonly queryRunner: QueryRunner
  readonly resultCache: ResultCache
}

/** The state of the service's parts at one moment. */
export type ServiceState = ObservedParts & {
  readonly chains: readonly Chain[]
  /** Figures that are stored in the database; undefined where it does not answer. */
  readonly stored: Awaited<ReturnType<typeof readStored>>
  /** The balances of those keys whose node answered. */
  readonly gas: readonly GasBalance[]
}

type GasBalance = Pick<GasKey, 'network' | 'address'> & { readonly units: bigint }

export async function readState(parts: ObservedParts): Promise<ServiceState> {
  const [stored, gas] = await Promise.all([readStored(parts), readGas(parts)])
  return { ...parts, chains: parts.tenants.listChains(), stored, gas }
}

async function readStored({ database, tenants }: ObservedParts) {
  try {
    const { schema } = tenants.system
    const [backlog, undecided, channels, held] = await Promise.all([
      readBacklog(database),
      countUndecided(database),
      countChannels(database, schema),
      sumHeld(database, schema),
    ])
    return { backlog, undecided, channels, held }
  } catch {
    return undefined
  }
}

const gasWaitMs = 2_000

/** Reads the balances; a node that does not answer must not keep the other figures back. */
async function readGas({ gasKeys, world }: ObservedParts): Promise<GasBalance[]> {
  const ask = async ({ network, address, balance }: GasKey) => {
    const asked = balance().then(
      (units) => [{ network, address, units }],
      () => [],
    )
    return awaitWithin(asked, { world, ms: gasWaitMs, otherwise: [] })
  }
  return (await Promise.all(gasKeys.map(ask))).flat()
}

/** Computes the part of its quota that is used, of the application that has used the most of its own. */
export function computeQuotaUse(tenants: Tenants): number {
  const parts = tenants.listOpen().flatMap(({ application, chain }) => {
    const { bytes, records } = tenants.getQuota(application)
    const now = getUsage(chain.contents())
    return [computeShare(now.bytes, bytes), computeShare(now.records, records)]
  })
  return Math.max(0, ...parts)
}

/** A quota of 0 counts as used up. */
function computeShare(used: number, max: number | null): number {
  if (max === null) return 0
  return max === 0 ? 1 : used / max
}

/** Counts the connections of a pool by their state. */
export function countPool(pool: string, { stats }: Database) {
  const { total, idle, waiting } = stats()
  const counts = { busy: total - idle, idle, waiting }
  return Object.entries(counts).map(([state, count]) => [{ pool, state }, count] as const)
}

/** Computes the age of what was there since then; 0 where there is nothing. */
export function computeAgeSeconds(world: World, sinceMs: number | undefined): number {
  return sinceMs === undefined ? 0 : Math.max(0, (world.now() - sinceMs) / 1000)
}
