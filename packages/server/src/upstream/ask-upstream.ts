import type { LookupAddress } from 'node:dns'
import { type IncomingMessage, type RequestOptions, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import type { LookupFunction } from 'node:net'
import { BytesInParts } from '../base/bytes-in-parts.ts'
import type { World } from '../base/world.ts'
import { getPort } from './allowed-host.ts'
import { UpstreamError } from './upstream-error.ts'
import { toAddress } from './upstream-url.ts'

export type UpstreamRequest = {
  /** Scheme, host and port. */
  readonly url: URL
  readonly method: 'GET' | 'POST'
  /** Path and query, encoded. */
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
}

export type UpstreamAnswer = { readonly body: Buffer; readonly contentType: string }

export type UpstreamBounds = {
  readonly world: World
  readonly deadlineMs: number
  readonly bytesMax: number
  /** Aborted once nobody wants the answer any more. */
  readonly signal?: AbortSignal | undefined
}

/**
 * Sends a request to addresses that were checked, and returns the body of a 2xx answer. Redirects are not followed;
 * certificates are verified. Throws an UpstreamError.
 */
export function askUpstream(
  asked: UpstreamRequest,
  addresses: readonly LookupAddress[],
  bounds: UpstreamBounds,
): Promise<UpstreamAnswer> {
  return new Promise((resolve, reject) => {
    const send = asked.url.protocol === 'https:' ? requestHttps : requestHttp
    const request = send(makeOptions(asked, addresses))
    // Each of these ends it by itself: a request that was destroyed already tells nobody that it is destroyed.
    const late = new UpstreamError('late', `no whole answer within ${bounds.deadlineMs} ms`)
    const stop = bounds.world.every(bounds.deadlineMs, () => end(late))
    const abort = () => end(new UpstreamError('unreachable', 'nobody waits for it'))
    bounds.signal?.addEventListener('abort', abort, { once: true })
    const end = (outcome: UpstreamAnswer | Error) => {
      stop()
      bounds.signal?.removeEventListener('abort', abort)
      if (!(outcome instanceof Error)) return resolve(outcome)
      request.destroy()
      reject(toUpstreamError(outcome))
    }
    if (bounds.signal?.aborted === true) abort()
    request.on('error', end)
    // Nobody asked for another protocol. Unheard, this would end the connection and nothing else.
    request.on('upgrade', (_response, socket) => {
      socket.destroy()
      end(new UpstreamError('unusable', 'its status was 101'))
    })
    request.on('response', (response) => collect(response, bounds.bytesMax, end))
    request.end(asked.body)
  })
}

function makeOptions(
  { url, method, target, headers, body }: UpstreamRequest,
  addresses: readonly LookupAddress[],
): RequestOptions & { readonly rejectUnauthorized: boolean } {
  const lookup: LookupFunction = (_host, { all }, done) => {
    const [first] = addresses
    if (all === true) done(null, [...addresses])
    else done(null, first?.address ?? '', first?.family)
  }
  return {
    protocol: url.protocol,
    hostname: toAddress(url),
    port: getPort(url),
    path: target,
    method,
    lookup,
    // A kept connection would have been checked at another time.
    agent: false,
    rejectUnauthorized: true,
    headers: {
      accept: '*/*',
      'user-agent': 'tollbase',
      ...headers,
      host: url.host,
      'accept-encoding': 'identity',
      ...(body !== undefined && {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      }),
    },
  }
}

function toUpstreamError(error: Error): UpstreamError {
  if (error instanceof UpstreamError) return error
  return new UpstreamError('unreachable', error.message, { cause: error })
}

function collect(
  response: IncomingMessage,
  bytesMax: number,
  end: (outcome: UpstreamAnswer | Error) => void,
): void {
  // An error that comes after the end is nobody's concern, but would end the process unheard.
  response.on('error', end)
  const refuse = (why: string) => end(new UpstreamError('unusable', why))
  const problem = findProblem(response, bytesMax)
  if (problem !== undefined) {
    refuse(problem)
    return
  }
  const parts = new BytesInParts()
  response.on('data', (part: Buffer) => {
    parts.add(part)
    if (parts.length > bytesMax) refuse(`more than ${bytesMax} bytes`)
    else if (parts.isCrumbled) refuse('too many small chunks')
  })
  response.on('end', () => {
    if (parts.length === 0) refuse('it has no body')
    const contentType = readContentType(response.headers['content-type'])
    void parts.concat().then((body) => end({ body: copyShort(body), contentType }))
  })
}

/** Finds what its head says against an answer. */
function findProblem(
  { statusCode = 0, headers }: IncomingMessage,
  bytesMax: number,
): string | undefined {
  if (statusCode < 200 || statusCode > 299) return `its status was ${statusCode}`
  const encoding = headers['content-encoding'] ?? 'identity'
  if (encoding !== 'identity') return 'it is compressed, unasked'
  const isLong = Number(headers['content-length'] ?? 0) > bytesMax
  return isLong ? `more than ${bytesMax} bytes` : undefined
}

/** Returns short bytes in memory of their own: a cached answer would keep alive what shares its memory. */
function copyShort(bytes: Buffer): Buffer {
  if (bytes.length >= Buffer.poolSize) return bytes
  const room = Buffer.allocUnsafeSlow(bytes.length)
  bytes.copy(room)
  return room
}

const mediaType =
  /^[a-z0-9!#$&^_.+-]+\/[a-z0-9!#$&^_.+-]+(\s*;\s*[a-z0-9-]+=("[\x20-\x21\x23-\x5b\x5d-\x7e]*"|[a-z0-9!#$&^_.+-]+))*$/i

/** Returns the type as it was given, where it is one; nobody guesses another from the bytes. */
function readContentType(given: string | undefined): string {
  const isType = given !== undefined && given.length <= 200 && mediaType.test(given)
  return isType ? given : 'application/octet-stream'
}
