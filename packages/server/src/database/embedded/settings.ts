import { availableParallelism } from 'node:os'
import type { PostgresBinaries } from './binaries.ts'
import type { Command } from './server-user.ts'
import { socketPort } from './socket-folder.ts'

export type ServerSettings = {
  readonly sharedBuffersMb?: number
  readonly maxConnections?: number
  /** For tests: nothing is synced to the disk, and the data folder is removed once this process is gone. */
  readonly temporary?: boolean
}

export type ServerFolders = {
  readonly binaries: PostgresBinaries
  readonly clusterFolder: string
  readonly socketFolder: string
}

const sharedBuffersMbDefault = 128
const maxConnectionsDefault = 100
/**
 * Private memory that one process of the server may have, beside the shared memory. A statement that needs more
 * fails alone (53200); otherwise the system would kill a process of its choice, and PostgreSQL all others with it.
 * The largest possible answer takes 300 MB.
 */
export const backendMemoryMbMax = 512
/**
 * Freed memory that one process keeps. By default it gives the memory of a large answer back after each statement, and
 * has the system map and clear the same pages again for the next one, which cost more than a third of a join.
 */
export const backendMemoryMbKept = 8
/** PostgreSQL's own default. */
const workersPerQueryDefault = 2

/**
 * Builds the command line of the server; it states every setting that we rely on, so the cluster's own file does
 * not matter.
 */
export function buildServerCommand(places: ServerFolders, settings: ServerSettings): Command {
  const durable = settings.temporary === true ? 'off' : 'on'
  const values: Readonly<Record<string, string | number>> = {
    // Only the socket: no port, no password, and its folder is closed to others.
    listen_addresses: '',
    unix_socket_directories: `"${places.socketFolder.replaceAll('"', '""')}"`,
    unix_socket_permissions: '0700',
    port: socketPort,
    // A rebuild exchanges all tables of an application, and their indexes, in one transaction.
    max_locks_per_transaction: 512,
    max_connections: settings.maxConnections ?? maxConnectionsDefault,
    shared_buffers: `${settings.sharedBuffersMb ?? sharedBuffersMbDefault}MB`,
    fsync: durable,
    synchronous_commit: durable,
    full_page_writes: durable,
    ...(settings.temporary === true && { max_wal_size: '256MB' }),
    wal_compression: 'off',
    jit: 'off',
    // Workers and their leader together are no more than the processors: more make a query no faster, and others
    // wait.
    max_parallel_workers_per_gather: Math.min(workersPerQueryDefault, availableParallelism() - 1),
    timezone: 'UTC',
    log_timezone: 'UTC',
    log_destination: 'stderr',
    logging_collector: 'off',
    // Logs the server's own events and the ends of sessions; failed statements are told to their senders, and their
    // texts and values have no place in a log.
    log_min_messages: 'log',
    log_min_error_statement: 'panic',
    log_checkpoints: 'off',
    log_line_prefix: '%m [%p] ',
  }
  const flags = Object.entries(values).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  return [`${places.binaries.folder}/postgres`, '-D', places.clusterFolder, ...flags]
}
