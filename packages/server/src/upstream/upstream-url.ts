import { isIP } from 'node:net'
import { makeInvalidFault } from '../base/fault.ts'
import { type AllowedHost, getPort, isAllowedHost } from './allowed-host.ts'
import { isPublicAddress } from './public-address.ts'

/** Ports at which HTTP is served: any other may be a service that takes a request for a command of its own. */
const ports: ReadonlySet<number> = new Set([80, 443, 8080, 8443])

/** A URL whose path has places for values. */
export type UrlTemplate = {
  /** Scheme, host and port; its path and query are those of the template without values. */
  readonly url: URL
  /** Literal texts and names of values, in turns; the first and the last are literal. */
  readonly parts: readonly string[]
  /** The names of the query's own, constant members. */
  readonly constants: ReadonlySet<string>
}

/** Parses a URL with `{name}` in its path; 400 where it is none of HTTP, or has more than that. */
export function parseUrlTemplate(text: string, pointer: string): UrlTemplate {
  const refuse = (problem: string) => makeInvalidFault(pointer, problem)
  // The parser would leave out what nobody sees, and take a backslash for a slash.
  if (/[\s\\]|\p{Cc}/u.test(text))
    throw refuse('must have no spaces, control characters or backslashes')
  if (!URL.canParse(text)) throw refuse('must be a URL, such as https://api.example.com/v1')
  const url = new URL(text)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') throw refuse('must be http or https')
  // The parser takes http:user@host and http:/user@host for the same.
  if (/^[^:]*:\/*[^/?#]*@/.test(text))
    throw refuse('must name no user; send an Authorization header')
  if (text.includes('#')) throw refuse('must have no fragment')
  if (/[{}]/.test(decodeText(url.search)) || /[{}]/.test(url.hostname))
    throw refuse(
      'may have {name} in its path alone; other parameters go into the query by themselves',
    )
  const parts = url.pathname.split(/%7B([A-Za-z_][A-Za-z0-9_]*)%7D/i)
  return { url, parts, constants: new Set(url.searchParams.keys()) }
}

/** Lists the names of the values in a template's path. */
export function listPathNames({ parts }: UrlTemplate): readonly string[] {
  return parts.filter((_, at) => at % 2 === 1)
}

/**
 * Fills the template: path and query of the request. Each value of the path stays within its segment; `values` has
 * one for each name.
 */
export function fillTemplate(
  { url, parts }: UrlTemplate,
  { path, query }: { readonly path: ReadonlyMap<string, string>; readonly query: URLSearchParams },
): string {
  const filled = parts.map((part, at) =>
    at % 2 === 0 ? part : encodeSegment(part, path.get(part)),
  )
  const search = [url.search.slice(1), query.toString()].filter((one) => one !== '').join('&')
  return `${filled.join('')}${search === '' ? '' : `?${search}`}`
}

/** Many servers decode %2F before they look for their routes, and take dots for a way up. */
function encodeSegment(name: string, value: string | undefined): string {
  const text = value ?? ''
  if (text === '' || /^\.+$/.test(text) || /[/\\]|\p{Cc}/u.test(text))
    throw makeInvalidFault(
      `/query/${name}`,
      'must be one segment of a path: not empty, not only dots, without slashes and control characters',
    )
  return encodeURIComponent(text)
}

/** Finds what forbids to ask the host, as far as its URL tells; a name still has to be resolved. */
export function findHostProblem(url: URL, allowed: readonly AllowedHost[]): string | undefined {
  if (isAllowedHost(allowed, url)) return undefined
  const exception = `unless the operator allows it (--allow-upstream ${url.host})`
  if (!ports.has(getPort(url)))
    return `must have one of the ports ${[...ports].join(', ')}, ${exception}`
  const host = toAddress(url)
  const isElsewhere = isIP(host) === 0 || isPublicAddress(host)
  return isElsewhere ? undefined : `must be on the public internet, ${exception}`
}

/** Returns the host as sockets take it: IPv6 without brackets. */
export function toAddress({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, '$1')
}

function decodeText(text: string): string {
  return text.replace(/%7b/gi, '{').replace(/%7d/gi, '}')
}
