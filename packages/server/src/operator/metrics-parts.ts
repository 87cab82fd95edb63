import { Gauge, type Registry } from 'prom-client'
import { awaitWithin } from '../base/await-within.ts'
import type { World } from '../base/world.ts'
import type { Database } from '../database/database.ts'
import type { FreeSpace } from '../database/embedded/free-space.ts'
import { getUsage } from '../model/quota.ts'
import type { Tenancy } from '../services/applications/tenancy.ts'
import { readBacklog } from '../services/payments/claim-store.ts'
import type { GasKey } from '../services/payments/open-payments.ts'
import type { Payments } from '../services/payments/payments.ts'
import type { ResultCache } from '../services/reading/result-cache.ts'
import type { QueryRunner } from '../services/reading/run-query.ts'
import { countUndecided } from '../x402/journal.ts'

export type ObservedParts = {
  readonly world: World
  readonly database: Database
  readonly freeSpace: FreeSpace | undefined
  readonly tenancy: Tenancy
  readonly payments: Payments
  readonly gasKeys: readonly GasKey[]
  readonly queryRunner: QueryRunner
  readonly resultCache: ResultCache
}

type MakeGauge = (name: string, help: string, labelNames?: readonly string[]) => Gauge
type Read = () => void | Promise<void>

/**
 * Creates gauges for the parts' state; the returned function updates them. A part that does not answer leaves its
 * gauges out.
 */
export function observeParts(registry: Registry, parts: ObservedParts): () => Promise<void> {
  const gauge: MakeGauge = (name, help, labelNames = []) =>
    new Gauge({ name: `tollbase_${name}`, help, labelNames, registers: [registry] })
  const reads: readonly Read[] = [
    observeChains(gauge, parts),
    observeQuotas(gauge, parts),
    observePools(gauge, parts),
    observeQueries(gauge, parts),
    observeFreeSpace(gauge, parts),
    observePayments(gauge, parts),
    observeGas(gauge, parts),
    observeAnswers(gauge, parts),
  ]
  return async () => {
    await Promise.all(reads.map((read) => read()))
  }
}

function observeChains(gauge: MakeGauge, { tenancy }: ObservedParts): Read {
  const entries = gauge(
    'applier_lag_entries',
    'Entries taken in and not yet in the tables, of the chain that is furthest behind',
  )
  const seconds = gauge(
    'applier_lag_seconds',
    'How long the oldest entry waits that is committed and not yet in the tables, of the chain that is furthest behind',
  )
  const count = gauge('chains', 'Chains that this process holds, by state', ['state'])
  return () => {
    const chains = tenancy.listChains()
    const stopped = chains.filter(({ failure }) => failure !== undefined).length
    entries.set(Math.max(...chains.map((chain) => chain.lag())))
    seconds.set(Math.max(...chains.map((chain) => chain.lagMs())) / 1000)
    count.set({ state: 'open' }, chains.length - stopped)
    count.set({ state: 'stopped' }, stopped)
  }
}

function observeQuotas(gauge: MakeGauge, { tenancy }: ObservedParts): Read {
  const used = gauge(
    'quota_used_ratio',
    'Part of its quota that is used, of the application that has used the most of its own',
  )
  return () => {
    const parts = tenancy.listOpenTenants().flatMap(({ application, chain }) => {
      const { bytes, records } = tenancy.getQuota(application)
      const now = getUsage(chain.contents())
      return [computeShare(now.bytes, bytes), computeShare(now.records, records)]
    })
    used.set(Math.max(0, ...parts))
  }
}

/** A quota of 0 counts as used up. */
function computeShare(used: number, max: number | null): number {
  if (max === null) return 0
  return max === 0 ? 1 : used / max
}

function observePools(gauge: MakeGauge, { database, queryRunner }: ObservedParts): Read {
  const connections = gauge(
    'database_connections',
    'Connections of a pool (of lists and SQL, or of all else), and work that waits for one',
    ['pool', 'state'],
  )
  return () => {
    for (const [pool, { stats }] of [
      ['queries', queryRunner.database],
      ['other', database],
    ] as const) {
      const { total, idle, waiting } = stats()
      connections.set({ pool, state: 'busy' }, total - idle)
      connections.set({ pool, state: 'idle' }, idle)
      connections.set({ pool, state: 'waiting' }, waiting)
    }
  }
}

function observeQueries(gauge: MakeGauge, { queryRunner }: ObservedParts): Read {
  const queries = gauge(
    'queries',
    'SQL, joins, groups and slow lists, by state: running, waiting',
    ['state'],
  )
  return () => {
    for (const [state, count] of Object.entries(queryRunner.semaphore.stats()))
      queries.set({ state }, count)
  }
}

/** Creates no gauge where the service cannot see the disk. */
function observeFreeSpace(gauge: MakeGauge, { freeSpace }: ObservedParts): Read {
  if (freeSpace === undefined) return () => undefined
  const free = gauge('storage_free_bytes', 'Room left on the disk of the embedded database')
  return () => free.set(freeSpace.bytes())
}

function observePayments(gauge: MakeGauge, parts: ObservedParts): Read {
  const { world, database, payments } = parts
  const up = gauge('database_up', 'Whether the database answered just now')
  const inFlight = gauge('payments_in_flight', 'Payments that this process is working on')
  const open = gauge('payments_open', 'Payments that are claimed and not known to be booked')
  const openAge = gauge('payments_open_oldest_seconds', 'Age of the oldest open payment')
  const kept = gauge('kept_replies_bytes', 'Room on disk of the answers kept for retries')
  const signed = gauge('transactions_undecided', 'Signed transactions not known to be in a block')
  const signedAge = gauge('transactions_undecided_oldest_seconds', 'Age of the oldest one of them')
  const computeAgeSeconds = (ms: number | undefined) =>
    ms === undefined ? 0 : Math.max(0, (world.now() - ms) / 1000)
  return async () => {
    inFlight.set(payments.countInFlight())
    try {
      const [backlog, undecided] = await Promise.all([
        readBacklog(database),
        countUndecided(database),
      ])
      up.set(1)
      open.set(backlog.open)
      openAge.set(computeAgeSeconds(backlog.oldestMs))
      kept.set(backlog.keptBytes)
      signed.set(undecided.count)
      signedAge.set(computeAgeSeconds(undecided.oldestMs))
    } catch {
      up.set(0)
      for (const unknown of [open, openAge, kept, signed, signedAge]) unknown.remove()
    }
  }
}

function observeAnswers(gauge: MakeGauge, { resultCache }: ObservedParts): Read {
  const bytes = gauge('query_answers_bytes', 'Memory of the kept answers of predefined queries')
  return () => bytes.set(resultCache.bytes)
}

const gasWaitMs = 2_000
const coinUnits = 1e18

function observeGas(gauge: MakeGauge, { gasKeys, world }: ObservedParts): Read {
  const coins = gauge('gas_balance', "What a key that pays gas has left, in the chain's own coin", [
    'network',
    'address',
  ])
  const ask = async ({ network, address, balance }: GasKey) => {
    coins.remove({ network, address })
    coins.set({ network, address }, Number(await balance()) / coinUnits)
  }
  return async () => {
    // A node that does not answer must not keep the other metrics back.
    const asked = Promise.allSettled(gasKeys.map(ask))
    await awaitWithin(asked, { world, ms: gasWaitMs, otherwise: undefined })
  }
}
