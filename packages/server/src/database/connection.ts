import type { ClientConfig } from 'pg'
import type { Log } from '../base/log.ts'
import type { World } from '../base/world.ts'
import type { PreparedNames } from './prepared-names.ts'
import { typeParsers } from './type-parsers.ts'

/** `host` is the folder of the server's socket, or a host name. */
export type DatabaseConnection =
  | {
      readonly host: string
      readonly port?: number
      readonly user: string
      readonly database: string
    }
  | { readonly url: string }

export type DatabaseOptions = {
  readonly connection: DatabaseConnection
  readonly poolSize?: number
  /** Longest run of one statement, 0 is no limit. */
  readonly statementTimeoutMs?: number
  /** Makes the database read only, with this much temporary space on disk per statement. */
  readonly readOnly?: { readonly temporaryKbMax: number }
  /** Longest run of a read that may take long; that of any statement where nothing is said. */
  readonly longTimeoutMs?: number
  /** Connections beside the pool that short reads share. */
  readonly pipelines?: number
  /** Called with the process id of the server process behind each new connection of the pool. */
  readonly onConnection?: ((pid: number) => void) | undefined
  /** The names of prepared statements, where one database after the other gets the same statements. */
  readonly preparedNames?: PreparedNames
  readonly log?: Log
  readonly world?: World
}

const postgresPort = 5432
/** Time-out for connecting, and again for the first settings of a connection. */
export const connectTimeoutMs = 10_000

/** The configuration of every connection. */
export function makeClientConfig(connection: DatabaseConnection): ClientConfig {
  return {
    ...target(connection),
    connectionTimeoutMillis: connectTimeoutMs,
    keepAlive: true,
    // A statement does not wait for the answers to those before it.
    pipeline: true,
    application_name: 'tollbase',
    types: typeParsers,
  }
}

/** States port and encryption, which pg would otherwise take from the environment (PGPORT, PGSSLMODE). */
function target(connection: DatabaseConnection): ClientConfig {
  if ('url' in connection) return { connectionString: connection.url }
  const isSocket = connection.host.startsWith('/')
  return { port: postgresPort, ...connection, ...(isSocket ? { ssl: false } : {}) }
}
