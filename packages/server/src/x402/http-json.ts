import { type Agent, type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { BytesInParts } from '../base/bytes-in-parts.ts'
import { parseJsonInTurns } from '../base/parse-json-in-turns.ts'
import type { World } from '../base/world.ts'

/** The peer gave no usable answer: unreachable, too slow, too large, another status, no JSON. */
export class TransportError extends Error {
  override readonly name = 'TransportError'
  /** True if the request cannot have reached the peer. */
  readonly unsent: boolean

  constructor(
    problem: string,
    options: { readonly unsent?: boolean; readonly cause?: unknown } = {},
  ) {
    super(problem, { cause: options.cause })
    this.unsent = options.unsent ?? false
  }
}

/** The answer has more bytes than are read; a smaller request may succeed. */
export class AnswerTooLarge extends TransportError {}

export type JsonCall = {
  readonly url: URL
  readonly agent: Agent
  readonly body: unknown
  readonly world: World
  readonly deadlineMs: number
  readonly responseBytesMax: number
  readonly headers?: Readonly<Record<string, string>>
  /** Sends once more if a kept connection turns out to be closed; for calls that may arrive twice. */
  readonly repeatable?: boolean
  /** True once the client is closed, which ends connections too: nothing is sent once more then. */
  readonly isClosed?: () => boolean
}

/** Gets JSON and returns it with the status; redirects are not followed. */
export function getJson(
  call: Omit<JsonCall, 'body' | 'repeatable'>,
): Promise<{ status: number; value: unknown }> {
  return postJson({ ...call, body: undefined, repeatable: true })
}

/** Bytes of an answer that is parsed at once; the event loop gets turns while a longer one is. */
const bytesAtOnce = 256 * 1024
/** Some gateways put a byte order mark before JSON. */
const mark = Buffer.from('\ufeff')

/** Posts JSON and returns the parsed answer with its status; redirects are not followed. */
export async function postJson(call: JsonCall): Promise<{ status: number; value: unknown }> {
  const { status, bytes: whole } = await send(call)
  const bytes = mark.equals(whole.subarray(0, mark.length)) ? whole.subarray(mark.length) : whole
  try {
    const isLong = bytes.length > bytesAtOnce
    const value = isLong ? await parseJsonInTurns(bytes) : JSON.parse(bytes.toString('utf8'))
    return { status, value }
  } catch (error) {
    throw new TransportError(`status ${status} without JSON`, { cause: error })
  }
}

async function send(call: JsonCall): Promise<{ status: number; bytes: Buffer }> {
  const body = call.body === undefined ? undefined : Buffer.from(JSON.stringify(call.body))
  const { status, parts } = await post(call, body).catch((error: unknown) => {
    if (!(error instanceof StaleConnection)) throw error
    if (call.repeatable !== true || call.isClosed?.() === true)
      throw new TransportError(error.message, { cause: error })
    return post(call, body)
  })
  return { status, bytes: await parts.concat() }
}

class StaleConnection extends TransportError {}

const refused = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'])

/** Sends the body; a call without one gets. */
function post(
  call: JsonCall,
  body: Buffer | undefined,
): Promise<{ readonly status: number; readonly parts: BytesInParts }> {
  return new Promise((resolve, reject) => {
    const open = call.url.protocol === 'https:' ? requestHttps : requestHttp
    const request = open(call.url, {
      method: body === undefined ? 'GET' : 'POST',
      agent: call.agent,
      headers: {
        accept: 'application/json',
        ...(body && { 'content-type': 'application/json', 'content-length': body.length }),
        ...call.headers,
      },
    })
    const stop = call.world.every(call.deadlineMs, () => {
      request.destroy(new TransportError(`no answer within ${call.deadlineMs} ms`))
    })
    const fail = (error: NodeJS.ErrnoException) => {
      stop()
      if (error instanceof TransportError) return reject(error)
      const stale = request.reusedSocket && error.code === 'ECONNRESET'
      const unsent = refused.has(error.code ?? '')
      reject(
        new (stale ? StaleConnection : TransportError)(error.message, { unsent, cause: error }),
      )
    }
    request.on('error', fail)
    request.on('response', (response) => {
      collect(response, call.responseBytesMax, (error, parts) => {
        stop()
        if (error === undefined) resolve({ status: response.statusCode ?? 0, parts })
        else fail(error)
      })
    })
    request.end(body)
  })
}

function collect(
  response: IncomingMessage,
  bytesMax: number,
  done: (error: NodeJS.ErrnoException | undefined, parts: BytesInParts) => void,
): void {
  const parts = new BytesInParts()
  response.on('data', (part: Buffer) => {
    // The rest of what was read at once still comes.
    if (response.destroyed) return
    parts.add(part)
    if (parts.length > bytesMax)
      response.destroy(new AnswerTooLarge(`an answer of more than ${bytesMax} bytes`))
    else if (parts.isCrumbled)
      response.destroy(new TransportError('an answer in too many small chunks'))
  })
  response.on('error', (error) => done(error, parts))
  response.on('end', () => done(undefined, parts))
}
