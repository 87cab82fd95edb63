import { DatabaseError } from 'pg'
import { Fault } from './base/fault.ts'
import { explainFolderError } from './base/files.ts'
import type { Config } from './config/config.ts'

/**
 * Returns the setting that keeps the service from starting, and why, in one line; undefined where the error has
 * another cause. Never names the database's URL, which may hold a password.
 */
export function findStartProblem(error: unknown, config: Config): string | undefined {
  if (error instanceof DatabaseError && config.databaseUrl !== undefined) {
    // SQLSTATE classes: 28 who may connect, 3D no such database, 53 too many connections, 57 not ready; 42501 no right.
    const isRefusal = /^(28|3D|53|57|42501)/.test(error.code ?? '')
    return isRefusal ? `--database-url: the server refuses: ${error.message}` : undefined
  }
  if (!(error instanceof Error)) return undefined
  if (error instanceof Fault) return findFaultProblem(error)
  const { syscall = '', code = '', path }: NodeJS.ErrnoException = error
  if (syscall === 'listen' || (syscall === 'getaddrinfo' && config.databaseUrl === undefined))
    return formatListenProblem(code, config)
  if ((syscall === 'connect' || syscall === 'getaddrinfo') && config.databaseUrl !== undefined)
    return `--database-url: the server cannot be reached any more: ${error.message}`
  // Where a folder above it cannot be made, the error names that one.
  if (path?.startsWith(config.dataDir) === true || config.dataDir.startsWith(`${path}/`))
    return `--data-dir ${config.dataDir} cannot be used: ${explainFolderError(error)}`
  return undefined
}

function findFaultProblem({ code, message, details, status }: Fault): string | undefined {
  if (code === 'VALIDATION_FAILED') return `data_sets: ${message}`
  if (details?.holder !== undefined)
    return `another process (${String(details.holder)}) runs the service on this database; end it first, or use another database`
  return status === 500 ? undefined : message
}

function formatListenProblem(code: string, { host, port }: Config): string {
  switch (code) {
    case 'EADDRINUSE':
      return `--port ${port}: another program listens there already; choose another, or 0 for any free one`
    case 'EACCES':
      return `--port ${port}: this user may not listen there; choose one above 1023`
    default:
      return `--host ${host}: cannot be listened on (${code}); write an address or name of this machine, such as 127.0.0.1, or 0.0.0.0 for all of its addresses, without a scheme or port`
  }
}
