import type { IncomingHttpHeaders } from 'node:http'
import { Fault, invalid } from '../base/fault.ts'
import { isRecord } from '../base/is-record.ts'
import type { Pass } from './request-context.ts'

/** One HTTP request as operations see it: the transport's facts, parsed but not judged. */
export type RequestFacts = {
  readonly requestId: string
  readonly method: string
  /** The canonical path of the endpoint, with parameters filled in: aliases look alike. */
  readonly path: string
  /** The path with query as the client sent it, for signatures and receipts. */
  readonly url: string
  /** The query string as sent, without `?` and without a key in it. */
  readonly queryText: string
  readonly headers: IncomingHttpHeaders
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, string | string[]>>
  readonly bodyBytes: Buffer
  /** The body as JSON, read once; throws a 400. Who calls is judged before this. */
  readonly json: () => { readonly text: string; readonly value: unknown }
  readonly remoteAddress: string
  readonly pass: Pass
}

/** What of a request is there before its body. */
export type RequestHead = Pick<RequestFacts, 'headers' | 'query'>

/** The one value of a header; two of them are refused, because readers would differ on which counts. */
export function oneHeader(facts: Pick<RequestFacts, 'headers'>, name: string): string | undefined {
  const value = facts.headers[name]
  if (value === undefined || value === '') return undefined
  if (Array.isArray(value)) throw doubled(name)
  return value
}

/** The members of the body, whatever they are worth; none where it cannot be read, which is refused where it must be. */
export function legibleBody(facts: Pick<RequestFacts, 'json'>): Readonly<Record<string, unknown>> {
  try {
    const { value } = facts.json()
    return isRecord(value) ? value : {}
  } catch (error) {
    if (error instanceof Fault) return {}
    throw error
  }
}

export function doubled(name: string): Fault {
  return invalid('', `came with the header ${name} more than once`)
}
