import type { FastifyReply, FastifyRequest } from 'fastify'
import { collectDefaultMetrics, Registry } from 'prom-client'
import type { FacilitatedOutcome } from '../services/payments/facilitating/facilitating.ts'
import { getStatus } from './access-log.ts'
import { type CountedMetric, makeCounter, makeReader, type ReadMetric } from './metric-registry.ts'
import {
  computeAgeSeconds,
  computeQuotaUse,
  countPool,
  type ObservedParts,
  readState,
  type ServiceState,
} from './service-state.ts'

export type Metrics = ReturnType<typeof createMetrics>

/**
 * Creates the service's metrics, in a registry of their own, so that two services in one process do not mix. Each
 * metric that counts stands below with the event that it counts; each that is read stands in `readMetrics`.
 */
export function createMetrics() {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const count = <Happening = void>(...metrics: CountedMetric<Happening>[]) =>
    makeCounter(registry, metrics)
  let read: () => Promise<void> = async () => undefined
  return {
    onRequest: count<{ request: FastifyRequest; reply: FastifyReply; ms: number }>(
      {
        name: 'requests_total',
        help: 'Requests by operation and status',
        labels: ['operation', 'status'],
        toLabels: ({ request, reply }) => ({
          operation: getOperation(request),
          status: String(getStatus(reply)),
        }),
      },
      {
        name: 'request_seconds',
        help: 'Time from the request to its answer',
        labels: ['operation'],
        buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
        toLabels: ({ request }) => ({ operation: getOperation(request) }),
        toAmount: ({ ms }) => ms / 1000,
      },
    ),
    onRateLimit: count<string>({
      name: 'rate_limited_total',
      help: 'Requests answered 429, by the limit that they met',
      labels: ['limit'],
      toLabels: (limit) => ({ limit }),
    }),
    onQuota: count({
      name: 'quota_refused_total',
      help: 'Writes refused because an application has used up its quota',
    }),
    onBlock: count<{ readonly entries: number }>(
      { name: 'blocks_total', help: 'Blocks committed by this process, of all chains' },
      {
        name: 'entries_total',
        help: 'Entries committed by this process, of all chains',
        toAmount: ({ entries }) => entries,
      },
    ),
    onPaymentState: count<string>({
      name: 'payments_total',
      help: 'Payments that came into a state: claimed, settled (a deposit only), delivered, failed',
      labels: ['state'],
      toLabels: (state) => ({ state }),
    }),
    onClaim: count<string>({
      name: 'channel_claims_total',
      help: 'Claims from payment channels: made, failed; and channels of which the chain takes none: refused',
      labels: ['outcome'],
      toLabels: (outcome) => ({ outcome }),
    }),
    onFacilitated: count<FacilitatedOutcome>(
      {
        name: 'facilitated_total',
        help: 'Settlements for other x402 servers: settled, failed, pending, refused',
        labels: ['outcome', 'network'],
        toLabels: ({ outcome, network }) => ({ outcome, network }),
      },
      {
        name: 'facilitated_gas_total',
        help: 'Coin that settlements for other x402 servers have cost',
        labels: ['network'],
        toLabels: ({ network }) => ({ network }),
        toAmount: ({ gas }) => Number(gas) / coinUnits,
      },
    ),
    onStaleView: count({
      name: 'views_stale_total',
      help: 'Times that a view could not be kept up or filled, and stands still',
    }),
    onAnswerLookup: count<'hit' | 'miss'>({
      name: 'query_answers_total',
      help: 'Free answers of predefined queries that were looked for in memory: hit, miss',
      labels: ['result'],
      toLabels: (result) => ({ result }),
    }),
    watch: (parts: ObservedParts) => {
      const setAll = makeReader(registry, readMetrics)
      read = async () => setAll(await readState(parts))
    },
    text: async () => {
      await read()
      return registry.metrics()
    },
  }
}

function getOperation({ routeOptions }: FastifyRequest): string {
  return routeOptions.config.operationId ?? 'none'
}

const coinUnits = 1e18

/** The metrics that are read when they are asked for. */
const readMetrics: readonly ReadMetric<ServiceState>[] = [
  {
    name: 'applier_lag_entries',
    help: 'Entries taken in and not yet in the tables, of the chain that is furthest behind',
    read: ({ chains }) => Math.max(...chains.map((chain) => chain.lag())),
  },
  {
    name: 'applier_lag_seconds',
    help: 'How long the oldest entry waits that is committed and not yet in the tables, of the chain that is furthest behind',
    read: ({ chains }) => Math.max(...chains.map((chain) => chain.lagMs())) / 1000,
  },
  {
    name: 'chains',
    help: 'Chains that this process holds, by state',
    labels: ['state'],
    read: ({ chains }) => {
      const stopped = chains.filter(({ failure }) => failure !== undefined).length
      return [
        [{ state: 'open' }, chains.length - stopped],
        [{ state: 'stopped' }, stopped],
      ]
    },
  },
  {
    name: 'quota_used_ratio',
    help: 'Part of its quota that is used, of the application that has used the most of its own',
    read: ({ tenants }) => computeQuotaUse(tenants),
  },
  {
    name: 'database_connections',
    help: 'Connections of a pool (of lists and SQL, or of all else), and work that waits for one',
    labels: ['pool', 'state'],
    read: ({ database, queryRunner }) => [
      ...countPool('queries', queryRunner.database),
      ...countPool('other', database),
    ],
  },
  {
    name: 'queries',
    help: 'SQL, groups, nearest, and other reads once they have taken 100 ms, by state: running, waiting',
    labels: ['state'],
    read: ({ queryRunner }) =>
      Object.entries(queryRunner.semaphore.stats()).map(([state, count]) => [{ state }, count]),
  },
  {
    name: 'storage_free_bytes',
    help: 'Room left on the disk of the embedded database',
    isThere: ({ freeSpace }) => freeSpace !== undefined,
    read: ({ freeSpace }) => freeSpace?.bytes(),
  },
  {
    name: 'database_up',
    help: 'Whether the database answered just now',
    read: ({ stored }) => (stored === undefined ? 0 : 1),
  },
  {
    name: 'payments_in_flight',
    help: 'Payments that this process is working on',
    read: ({ payments }) => payments.countInFlight(),
  },
  {
    name: 'payments_open',
    help: 'Payments that are claimed and not known to be booked, without hidden ones',
    read: ({ stored }) => stored?.backlog.open,
  },
  {
    name: 'payments_open_oldest_seconds',
    help: 'Age of the oldest open payment',
    read: ({ world, stored }) => stored && computeAgeSeconds(world, stored.backlog.oldestMs),
  },
  {
    name: 'payments_held_atomic',
    help: 'Money that came before a restore and is held for its payers, in atomic units',
    read: ({ stored }) => stored && Number(stored.held),
  },
  {
    name: 'channels_open',
    help: 'Payment channels with money that vouchers may use',
    labels: ['network'],
    read: ({ stored }) => stored?.channels.map(({ network, open }) => [{ network }, open] as const),
  },
  {
    name: 'channels_unclaimed_atomic',
    help: 'What was charged to payment channels and is not claimed from the contract yet, in atomic units',
    labels: ['network'],
    read: ({ stored }) =>
      stored?.channels.map(({ network, unclaimed }) => [{ network }, Number(unclaimed)] as const),
  },
  {
    name: 'channels_unclaimed_oldest_seconds',
    help: 'Age of the oldest charge of them',
    read: ({ world, stored }) => stored && computeAgeSeconds(world, findOldest(stored.channels)),
  },
  {
    name: 'kept_replies_bytes',
    help: 'Room on disk of the answers kept for retries',
    read: ({ stored }) => stored?.backlog.keptBytes,
  },
  {
    name: 'transactions_undecided',
    help: 'Signed transactions not known to be in a block',
    read: ({ stored }) => stored?.undecided.count,
  },
  {
    name: 'transactions_undecided_oldest_seconds',
    help: 'Age of the oldest one of them',
    read: ({ world, stored }) => stored && computeAgeSeconds(world, stored.undecided.oldestMs),
  },
  {
    name: 'gas_balance',
    help: "What a key that pays gas has left, in the chain's own coin",
    labels: ['network', 'address'],
    read: ({ gas }) =>
      gas.map(({ network, address, units }) => [{ network, address }, Number(units) / coinUnits]),
  },
  {
    name: 'publication_blocks_behind',
    help: 'Blocks that are to be published on another chain and are not confirmed there, of applications that are open',
    labels: ['network'],
    read: ({ publishing }) =>
      publishing.map((one) => [{ network: one.network }, one.countBehind()]),
  },
  {
    name: 'query_answers_bytes',
    help: 'Memory of the answers of predefined queries that the result cache holds',
    read: ({ resultCache }) => resultCache.bytes,
  },
]

function findOldest(counts: readonly { readonly sinceMs: number | undefined }[]) {
  const times = counts.flatMap(({ sinceMs }) => sinceMs ?? [])
  return times.length === 0 ? undefined : Math.min(...times)
}
