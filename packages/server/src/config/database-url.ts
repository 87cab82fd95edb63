import { ConfigError } from './config-file.ts'

export const databaseUrlExample = 'postgresql://USER:PASSWORD@HOST:5432/DATABASE'

/** The signs that end a part of a URL, as a password or a name with them must write them. */
export const databaseUrlSigns = '%40 for @, %23 for #, %2F for /, %3F for ? and %25 for %'

const name = '--database-url (DATABASE_URL)'
/** RFC 3986, appendix B: scheme, authority, path, query and fragment. */
const form = /^(?:([a-z][a-z0-9+.-]*):\/\/)?([^/?#]*)([^?#]*)(\?[^#]*)?(#.*)?$/is
const hostAndPort = /^(\[[0-9a-f:.]+\]|[^:[\]]*)(?::([0-9]*))?$/i
const encryptionParameters = 'ssl sslmode sslcert sslkey sslrootcert sslnegotiation'.split(' ')
const encryptionModes = 'disable prefer require verify-ca verify-full no-verify'.split(' ')

/**
 * Checks the URL of a PostgreSQL server, and returns it. Throws a ConfigError that says what is wrong, and never the URL,
 * which may hold a password. The driver would take `http://`, a name alone or nothing for the server of this machine,
 * cut the URL at a `#`, and connect in the clear where a parameter of the encryption is mistyped.
 */
export function readDatabaseUrl(text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  const [, scheme = '', authority = '', path = '', query = '', fragment = ''] =
    form.exec(text) ?? []
  if (!/^postgres(ql)?$/i.test(scheme))
    throw new ConfigError(
      `${name} must be the URL of a PostgreSQL server: ${databaseUrlExample}${scheme === '' ? '' : `, not ${scheme}://…`}`,
    )
  if (fragment !== '' || `${path}${query}`.includes('@'))
    throw new ConfigError(
      `${name} has a sign that ends the password, the user or another part: write ${databaseUrlSigns}, as in postgresql://USER:p%40ss@HOST:5432/DATABASE`,
    )
  const parameters = new URLSearchParams(query)
  const [, host, port = ''] =
    hostAndPort.exec(authority.slice(authority.lastIndexOf('@') + 1)) ?? []
  if (host === undefined || !isPort(port) || !isPort(parameters.get('port') ?? ''))
    throw new ConfigError(
      `${name} has a port that is no number from 1 to 65535: ${databaseUrlExample}`,
    )
  if (host === '' && (parameters.get('host') ?? '') === '')
    throw new ConfigError(`${name} names no host: ${databaseUrlExample}`)
  refuseEncryption(parameters)
  return text
}

function isPort(text: string): boolean {
  return text === '' || (/^[0-9]{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= 65_535)
}

function refuseEncryption(parameters: URLSearchParams): void {
  for (const [key, value] of parameters) {
    if (/^(ssl|tls)/i.test(key) && !encryptionParameters.includes(key))
      throw new ConfigError(
        `${name} has the parameter ${key}, which has no effect; those of the encryption are ${encryptionParameters.join(', ')}`,
      )
    if (key === 'sslmode' && !encryptionModes.includes(value))
      throw new ConfigError(`${name}: sslmode must be one of ${encryptionModes.join(', ')}`)
  }
}

/** Names the server of a URL as `host:port`. */
export function formatServer(url: string): string {
  const [, , authority = '', , query = ''] = form.exec(url) ?? []
  const parameters = new URLSearchParams(query)
  const [, host = '', port = ''] =
    hostAndPort.exec(authority.slice(authority.lastIndexOf('@') + 1)) ?? []
  const shown = parameters.get('host') ?? decodeURIComponent(host)
  return `${shown}:${parameters.get('port') ?? (port === '' ? '5432' : port)}`
}
