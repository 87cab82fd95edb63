import type { ClientConfig } from 'pg'
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

const postgresPort = 5432
/** For connecting, and again for the settings that a connection begins with. */
export const connectTimeoutMs = 10_000

/** What every connection is made with. */
export function clientConfig(connection: DatabaseConnection): ClientConfig {
  return {
    ...target(connection),
    connectionTimeoutMillis: connectTimeoutMs,
    keepAlive: true,
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
