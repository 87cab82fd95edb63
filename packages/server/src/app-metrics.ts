import type { FastifyReply, FastifyRequest } from 'fastify'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { Database } from './database/database.ts'
import type { Tenancy } from './domains/tenancy/tenancy.ts'

/** The service's metrics, in a registry of its own, so that two services in one process do not mix. */
export function createMetrics() {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const requests = new Counter({
    name: 'tollbase_requests_total',
    help: 'Requests by operation and status',
    labelNames: ['operation', 'status'],
    registers: [registry],
  })
  const seconds = new Histogram({
    name: 'tollbase_request_seconds',
    help: 'Time from the request to its answer',
    labelNames: ['operation'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
    registers: [registry],
  })
  return {
    observe: (request: FastifyRequest, reply: FastifyReply) => {
      const operation = request.routeOptions.config.operationId ?? 'none'
      requests.inc({ operation, status: String(reply.statusCode) })
      seconds.observe({ operation }, reply.elapsedTime / 1000)
    },
    watch: (tenancy: Tenancy, database: Database) => {
      new Gauge({
        name: 'tollbase_applier_lag_entries',
        help: 'Entries committed and not yet in the tables, of the chain that is furthest behind',
        registers: [registry],
        collect() {
          const chains = [tenancy.system.chain, ...tenancy.tenants().map(({ chain }) => chain)]
          this.set(Math.max(...chains.map((chain) => chain.lag())))
        },
      })
      new Gauge({
        name: 'tollbase_database_connections',
        help: 'Connections of the pool by state',
        labelNames: ['state'],
        registers: [registry],
        collect() {
          const { total, idle, waiting } = database.stats()
          this.set({ state: 'busy' }, total - idle)
          this.set({ state: 'idle' }, idle)
          this.set({ state: 'waiting' }, waiting)
        },
      })
    },
    text: () => registry.metrics(),
  }
}
