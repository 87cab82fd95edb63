import { DatabaseError } from 'pg'
import { SetupError } from '../base/setup-error.ts'
import { databaseUrlExample, databaseUrlSigns, formatServer } from '../config/database-url.ts'

/**
 * Waits for the first connection to the server of a URL. Whatever goes wrong there is a SetupError of one line, which
 * says what to do and never the URL, as that may hold a password.
 */
export async function explainConnecting<T>(
  url: string | undefined,
  connecting: Promise<T>,
): Promise<T> {
  try {
    return await connecting
  } catch (error) {
    if (url === undefined || !(error instanceof Error) || error instanceof SetupError) throw error
    throw new SetupError(`--database-url: ${explain(error, formatServer(url))}`)
  }
}

function explain(error: Error, server: string): string {
  if (error instanceof DatabaseError) return explainRefusal(error, server)
  const { code = '', syscall, path, message }: NodeJS.ErrnoException = error
  if (code === 'ECONNREFUSED' || (code === 'ENOENT' && syscall === 'connect'))
    return `no server listens at ${server}; start PostgreSQL there, or correct the URL: ${databaseUrlExample}`
  if (syscall === 'getaddrinfo')
    return `there is no host of this name: ${server}; correct the URL: ${databaseUrlExample}`
  if (path !== undefined && syscall === 'open') return `the file ${path} cannot be read (${code})`
  if (message.startsWith('SASL') && message.includes('password'))
    return `the server at ${server} asks for a password; add it to the URL: ${databaseUrlExample}`
  return `the server at ${server} cannot be reached, or is no PostgreSQL: ${message === '' ? code : message}`
}

/** SQLSTATE 28: who may connect; 3D000: no such database. */
function explainRefusal({ code = '', message }: DatabaseError, server: string): string {
  const said = `the server at ${server} refuses: ${message}`
  if (code.startsWith('28')) return `${said}. In the URL a password writes ${databaseUrlSigns}`
  if (!code.startsWith('3D')) return said
  const [, database = 'tollbase'] = /database "(.*)" does not exist/.exec(message) ?? []
  return `${said}. Make it: CREATE DATABASE "${database}" TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C';`
}
