import type { Logger } from 'pino'
import type { World } from '../base/world.ts'
import type { Database } from '../database/database.ts'
import type { FreeSpace } from '../database/embedded/free-space.ts'
import type { RequestInfo } from '../http/request-info.ts'
import type { Caller } from './access/access.ts'
import type { Anchoring } from './anchoring/anchoring.ts'
import type { Upstreams } from './api-collections/upstreams.ts'
import type { Tenants } from './applications/tenants.ts'
import type { Blobs } from './blobs/blobs.ts'
import type { OperatorDataSets } from './data-sets/operator-data-sets.ts'
import type { Resealings } from './encryption/resealings.ts'
import type { ProgramInfo } from './identity/program-info.ts'
import type { IndexBuilder } from './indexes/index-builder.ts'
import type { QueryStatistics } from './indexes/query-statistics.ts'
import type { KeyUse } from './keys/key-use.ts'
import type { Facilitating } from './payments/facilitating/facilitating.ts'
import type { Payments } from './payments/payments.ts'
import type { Transfers } from './payments/transfers/transfers.ts'
import type { Publishing } from './publishing/publishing.ts'
import type { QueryPlans } from './queries/query-plans.ts'
import type { QueryRates } from './queries/query-rates.ts'
import type { ResultCache } from './reading/result-cache.ts'
import type { QueryRunner } from './reading/run-query.ts'
import type { ViewBuilder } from './views/view-builder.ts'
import type { Witnesses } from './witnesses/witnesses.ts'

/** The parts of which operations name those that they use. Made once, in app.ts. */
export type Service = {
  readonly world: World
  readonly log: Logger
  readonly database: Database
  readonly tenants: Tenants
  readonly payments: Payments
  /** Settles for other x402 servers, where the operator enables it. */
  readonly facilitating: Facilitating | undefined
  /** Sends money out of our own addresses. */
  readonly transfers: Transfers
  /** The chains that the service's own chain is anchored on. */
  readonly anchoring: readonly Anchoring[]
  /** The chains that blocks of applications are published on. */
  readonly publishing: readonly Publishing[]
  readonly witnesses: Witnesses
  readonly blobs: Blobs
  readonly upstreams: Upstreams
  readonly queryRunner: QueryRunner
  /** The shapes of recent lists, from which indexes are advised. */
  readonly queryStatistics: QueryStatistics
  readonly queryPlans: QueryPlans
  readonly queryRates: QueryRates
  readonly resultCache: ResultCache
  readonly indexBuilder: IndexBuilder
  readonly viewBuilder: ViewBuilder
  readonly dataSets: OperatorDataSets
  readonly keyUse: KeyUse
  readonly program: ProgramInfo
  /** The free space on the database's disk, where the service can see that. */
  readonly freeSpace: FreeSpace | undefined
  readonly resealings: Resealings
  /** The database is a child process of this one, and its files are ours. */
  readonly ownsDatabase: boolean
  /** The price of a change of encryption settings, in atomic units; 0 is free. */
  readonly encryptionPrice: bigint
  /** The stated price of keeping 2^30 bytes of older records for 30 days, in atomic units. */
  readonly retentionPrice: bigint
  /** Gives test dollars; only with --devnet. */
  readonly faucet:
    | ((address: string, amount: bigint) => Promise<{ tx_hash: string; balance: string }>)
    | undefined
  /** Returns the metrics as text, in the format of Prometheus. */
  readonly readMetrics: () => Promise<string>
  /** 16 bytes; tickets are encrypted with them. */
  readonly ticketKey: Buffer
  /** 32 bytes; cursors are signed with them. */
  readonly cursorSecret: Buffer
  /** 32 bytes; the names of expired records are made with them. */
  readonly recordNameKey: Buffer
}

/** Those parts of the service that a function uses. */
export type Uses<Part extends keyof Service> = Pick<Service, Part>

/** One call of an operation, with the parts of the service that it uses. */
export type Call<Part extends keyof Service = never> = {
  readonly service: Uses<Part>
  readonly caller: Caller
  readonly requestInfo: RequestInfo
}
