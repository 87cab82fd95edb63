import type { ClientConfig } from 'pg'
import type { World } from '../base/world.ts'
import type { DatabaseLog } from './log.ts'
import { typeParsers } from './types.ts'

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
  /** For reading alone, with so much temporary space on disk for a statement. */
  readonly readOnly?: { readonly temporaryKbMax: number }
  /** Longest run of a read that may take long; that of any statement where nothing is said. */
  readonly longTimeoutMs?: number
  /** Connections beside the pool's that short reads share. */
  readonly pipelines?: number
  readonly log?: DatabaseLog
  readonly world?: World
}

const postgresPort = 5432
/** For connecting, and again for the settings that a connection begins with. */
export const connectTimeoutMs = 10_000

/** What every connection is made with. */
export function clientConfig(connection: DatabaseConnection): ClientConfig {
  return {
    ...target(connection),
    connectionTimeoutMillis: connectTimeoutMs,
    keepAlive: true,
    // What is sent does not wait for the answers before.
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
