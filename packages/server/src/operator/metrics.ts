import type { FastifyReply, FastifyRequest } from 'fastify'
import { Counter, collectDefaultMetrics, Histogram, Registry } from 'prom-client'
import { getStatus } from './access-log.ts'
import { type ObservedParts, observeParts } from './metrics-parts.ts'

export type Metrics = ReturnType<typeof createMetrics>

/** The service's metrics, in a registry of its own, so that two services in one process do not mix. */
export function createMetrics() {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })
  const requests = new Counter({
    name: 'tollbase_requests_total',
    help: 'Requests by operation and status',
    labelNames: ['operation', 'status'],
    registers,
  })
  const seconds = new Histogram({
    name: 'tollbase_request_seconds',
    help: 'Time from the request to its answer',
    labelNames: ['operation'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
    registers,
  })
  const refused = new Counter({
    name: 'tollbase_rate_limited_total',
    help: 'Requests answered 429, by the limit that they met',
    labelNames: ['limit'],
    registers,
  })
  const overQuota = new Counter({
    name: 'tollbase_quota_refused_total',
    help: 'Writes refused because an application has used up its quota',
    registers,
  })
  const blocks = new Counter({
    name: 'tollbase_blocks_total',
    help: 'Blocks committed by this process, of all chains',
    registers,
  })
  const entries = new Counter({
    name: 'tollbase_entries_total',
    help: 'Entries committed by this process, of all chains',
    registers,
  })
  const payments = new Counter({
    name: 'tollbase_payments_total',
    help: 'Payments that came into a state: claimed, settled (a deposit only), delivered, failed',
    labelNames: ['state'],
    registers,
  })
  const staleViews = new Counter({
    name: 'tollbase_views_stale_total',
    help: 'Times that a view could not be kept up or filled, and stands still',
    registers,
  })
  const answers = new Counter({
    name: 'tollbase_query_answers_total',
    help: 'Free answers of predefined queries that were looked for in memory: hit, miss',
    labelNames: ['result'],
    registers,
  })
  let read: () => Promise<void> = async () => undefined
  return {
    observe: (request: FastifyRequest, reply: FastifyReply, ms: number) => {
      const operation = request.routeOptions.config.operationId ?? 'none'
      requests.inc({ operation, status: String(getStatus(reply)) })
      seconds.observe({ operation }, ms / 1000)
    },
    refused: (limit: string) => refused.inc({ limit }),
    block: (block: { readonly entries: number }) => {
      blocks.inc()
      entries.inc(block.entries)
    },
    quotaRefused: () => overQuota.inc(),
    staleView: () => staleViews.inc(),
    answerLookup: (result: 'hit' | 'miss') => answers.inc({ result }),
    payment: (state: string) => payments.inc({ state }),
    watch: (parts: ObservedParts) => {
      read = observeParts(registry, parts)
    },
    text: async () => {
      await read()
      return registry.metrics()
    },
  }
}
