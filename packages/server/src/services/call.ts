import type { Logger } from 'pino'
import type { Semaphore } from '../base/semaphore.ts'
import type { World } from '../base/world.ts'
import type { Database } from '../database/database.ts'
import type { RequestInfo } from '../http/request-info.ts'
import type { Caller } from './access/access.ts'
import type { Tenancy } from './applications/tenancy.ts'
import type { OperatorDataSets } from './data-sets/operator-data-sets.ts'
import type { ServiceInfo } from './identity/service-info.ts'
import type { IndexBuilder } from './indexes/index-builder.ts'
import type { QueryStatistics } from './indexes/query-statistics.ts'
import type { Payments } from './payments/payments.ts'
import type { QueryPlans } from './queries/query-plans.ts'
import type { QueryRates } from './queries/query-rates.ts'
import type { ResultCache } from './queries/result-cache.ts'
import type { ShortReads } from './reading/short-reads.ts'
import type { ViewBuilder } from './views/view-builder.ts'

/** The parts that every operation works with. Made once, in app.ts. */
export type Service = {
  readonly world: World
  readonly log: Logger
  readonly database: Database
  /**
   * The same database over separate connections, for lists and SQL: however slow these are, writes and payments go
   * on.
   */
  readonly queryDatabase: Database
  readonly tenancy: Tenancy
  readonly payments: Payments
  readonly info: ServiceInfo
  readonly indexes: IndexBuilder
  readonly views: ViewBuilder
  readonly queries: QueryStatistics
  readonly dataSets: OperatorDataSets
  readonly predefined: {
    readonly plans: QueryPlans
    readonly rates: QueryRates
    readonly answers: ResultCache
  }
  /** Runs lists that ought to be short. */
  readonly shortReads: ShortReads
  /** Limits SQL, joins and groups, which may take long, and lists that prove slow. */
  readonly querySemaphore: Semaphore
  /** 16 bytes; tickets are encrypted with them. */
  readonly ticketKey: Buffer
  /** 32 bytes; cursors are signed with them. */
  readonly cursorSecret: Buffer
}

/** One call of an operation. */
export type Call = {
  readonly service: Service
  readonly caller: Caller
  readonly requestInfo: RequestInfo
}
