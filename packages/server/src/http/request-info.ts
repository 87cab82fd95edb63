import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import { Fault, makeInvalidFault } from '../base/fault.ts'
import { isRecord } from '../base/is-record.ts'
import type { JsonBody } from '../base/json-body.ts'
import type { RequestContext } from './request-context.ts'

/** One HTTP request as operations see it: parsed but not judged. */
export type RequestInfo = {
  readonly requestId: string
  readonly method: string
  /** The canonical path of the endpoint, with parameters filled in, whichever alias was called. */
  readonly path: string
  /** The path with query as the client sent it, for signatures and receipts. */
  readonly url: string
  /** The query string as sent, without `?` and without a key in it. */
  readonly queryText: string
  readonly headers: IncomingHttpHeaders
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, string | string[]>>
  readonly bodyBytes: Buffer
  /** The unread body of an endpoint that takes a form; its bytes are not in `bodyBytes`. */
  readonly upload?: Upload
  /** The body as JSON, read once; throws a 400. The caller is judged before this. */
  readonly json: () => JsonBody
  readonly remoteAddress: string
  readonly context: RequestContext
}

/** A body that is read as a stream. */
export type Upload = {
  readonly stream: Readable
  /** The SHA-256 of the whole body in hex, where it is known before: stated in Content-Digest, or that of no bytes. */
  readonly sha256: string | undefined
}

/** The part of a request that is there before its body. */
export type RequestHead = Pick<RequestInfo, 'headers' | 'query'>

/** Returns the single value of a header; two are refused, because readers would differ on which counts. */
export function findSingleHeader(
  info: Pick<RequestInfo, 'headers'>,
  name: string,
): string | undefined {
  const value = info.headers[name]
  if (value === undefined || value === '') return undefined
  if (Array.isArray(value)) throw makeRepeatedFault(name)
  return value
}

/** The members of the body, whatever they are worth; none where it cannot be read, which is refused where it must be. */
export function readLegibleBody(
  info: Pick<RequestInfo, 'json'>,
): Readonly<Record<string, unknown>> {
  try {
    const { value } = info.json()
    return isRecord(value) ? value : {}
  } catch (error) {
    if (error instanceof Fault) return {}
    throw error
  }
}

export function makeRepeatedFault(name: string): Fault {
  return makeInvalidFault('', `came with the header ${name} more than once`)
}
