import { type Agent, type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
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

/** Posts JSON and returns the parsed answer with its status; redirects are not followed. */
export async function postJson(call: JsonCall): Promise<{ status: number; value: unknown }> {
  const body = call.body === undefined ? undefined : Buffer.from(JSON.stringify(call.body))
  let { status, text } = await post(call, body).catch((error: unknown) => {
    if (!(error instanceof StaleConnection)) throw error
    if (call.repeatable !== true || call.isClosed?.() === true)
      throw new TransportError(error.message, { cause: error })
    return post(call, body)
  })
  // Some gateways put a byte order mark before JSON.
  if (text.startsWith('\ufeff')) text = text.slice(1)
  try {
    return { status, value: JSON.parse(text) }
  } catch (error) {
    throw new TransportError(`status ${status} without JSON`, { cause: error })
  }
}

class StaleConnection extends TransportError {}

const refused = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'])

/** Sends the body; a call without one gets. */
function post(call: JsonCall, body: Buffer | undefined): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const send = call.url.protocol === 'https:' ? requestHttps : requestHttp
    const request = send(call.url, {
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
      collect(response, call.responseBytesMax, (error, text) => {
        stop()
        if (error === undefined) resolve({ status: response.statusCode ?? 0, text })
        else fail(error)
      })
    })
    request.end(body)
  })
}

function collect(
  response: IncomingMessage,
  bytesMax: number,
  done: (error: NodeJS.ErrnoException | undefined, text: string) => void,
): void {
  const chunks: Buffer[] = []
  let bytes = 0
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    chunks.push(chunk)
    if (bytes > bytesMax) {
      response.destroy(new AnswerTooLarge(`an answer of more than ${bytesMax} bytes`))
    }
  })
  response.on('error', (error) => done(error, ''))
  response.on('end', () => done(undefined, Buffer.concat(chunks).toString('utf8')))
}
