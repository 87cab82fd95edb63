import { type OperationId, tollbase } from '@tollbase/contract/contract'
import { canChange, type Route } from '@tollbase/contract/route'
import { Fault } from '../../packages/server/src/base/fault.ts'
import { toJsonSource } from '../../packages/server/src/base/json-source.ts'
import { CommitUnknownError } from '../../packages/server/src/database/errors.ts'
import { HttpReply } from '../../packages/server/src/http/reply.ts'
import { RequestContext } from '../../packages/server/src/http/request-context.ts'
import type { RequestInfo } from '../../packages/server/src/http/request-info.ts'
import { hashKey } from '../../packages/server/src/projections/keys.ts'
import { authorize, identify } from '../../packages/server/src/services/access/access.ts'
import type { Call, Service } from '../../packages/server/src/services/call.ts'
import { findEarlierReply } from '../../packages/server/src/services/payments/replies/earlier-reply.ts'
import { Lost, Reset } from './life.ts'
import { application, operatorKey, publicUrl, type Running } from './shop.ts'

/** One request as its bytes, and the operation that serves it. */
export type Asked = {
  readonly operationId: OperationId
  readonly path: string
  readonly params?: Readonly<Record<string, string>>
  /** The part after the question mark of a GET, which has no body. */
  readonly query?: Readonly<Record<string, string>>
  readonly body: object
  /** The address that it comes from, where it is another one. */
  readonly from?: string
  readonly run: (call: Call<keyof Service>, body: object) => Promise<unknown>
}

export type Answer = {
  readonly status: number
  readonly text: string
  readonly headers: Readonly<Record<string, string>>
  /** The code from the error catalogue, where the answer is an error. */
  readonly code?: string
  /** An error that the simulation did not cause. */
  readonly bug?: unknown
}

/** Sends a request to a running service; rejects with Reset where the process dies meanwhile. */
export async function sendRequest(
  { life, service, namedRequests }: Running,
  asked: Asked,
  headers: Readonly<Record<string, string>>,
): Promise<Answer> {
  const requestInfo = makeRequestInfo(asked, headers)
  const serve = async () => {
    await life.whenAwake()
    const { tenants, database, world } = service
    const operatorKeyHash = hashKey(operatorKey)
    const known = { tenants, database, world, origin: publicUrl, operatorKeyHash }
    const caller = await identify(requestInfo, known)
    const { operationId, params = {}, body } = asked
    const route: Route = tollbase[operationId]
    authorize(route, caller, { appId: params.app, tenants, registration: 'operator' })
    const call = { service, caller, requestInfo }
    const kept = route.paid === true ? await findEarlierReply(call) : undefined
    if (kept !== undefined) return { answer: kept, route }
    const work = () => asked.run(call, body)
    if (!canChange(route)) return { answer: await work(), route }
    const { answer } = await namedRequests.run(call, { operationId, route }, work)
    return { answer, route }
  }
  try {
    const { answer, route } = await Promise.race([serve(), life.ended])
    return await toAnswer(answer, route)
  } catch (error) {
    if (error instanceof Reset) throw error
    return toFailure(error)
  }
}

/** Returns the parts of a request by which it is known, as they go over the wire. */
export function toRequestParts({ operationId, path, query, body }: Omit<Asked, 'run'>) {
  const { method } = tollbase[operationId]
  const bytes = query === undefined ? JSON.stringify(body) : ''
  return { method, path, query: String(new URLSearchParams(query)), body: Buffer.from(bytes) }
}

/** Makes the request info as the HTTP layer does. */
export function makeRequestInfo(
  asked: Omit<Asked, 'run'>,
  headers: Readonly<Record<string, string>>,
): RequestInfo {
  const { path, body, params = {}, from = '127.0.0.1' } = asked
  const { method, query: queryText, body: bodyBytes } = toRequestParts(asked)
  const context = new RequestContext(0, () => undefined)
  context.app = params.app ?? application
  return {
    requestId: 'simulated',
    method,
    path,
    url: queryText === '' ? path : `${path}?${queryText}`,
    queryText,
    headers,
    params,
    query: { ...asked.query },
    bodyBytes,
    json: () => ({ source: toJsonSource(bodyBytes.toString()), value: body }),
    remoteAddress: from,
    context,
  }
}

async function toAnswer(reply: unknown, { status = 200 }: Route): Promise<Answer> {
  if (reply instanceof HttpReply) {
    const { file, headers, text } = reply
    const parts: Uint8Array[] = []
    if (file !== undefined)
      for await (const part of file.read({ start: 0, end: file.size - 1 })) parts.push(part)
    const sent = (file === undefined ? text : Buffer.concat(parts)).toString()
    const told = reply.status ?? status
    // A refusal that is given again comes as it was sent.
    const code = told >= 400 && told !== 402 ? { code: JSON.parse(sent).code } : {}
    return { status: told, text: sent, headers, ...code }
  }
  return { status, text: JSON.stringify(reply), headers: {} }
}

/** Makes the answer to an error as the HTTP layer does. */
function toFailure(error: unknown): Answer {
  if (error instanceof Fault) {
    const { code, status, message, headers } = error
    const bug = code === 'INTERNAL' && !isCaused(error) ? { bug: error } : {}
    return { status, text: message, headers, code, ...bug }
  }
  const bug = isCaused(error) ? {} : { bug: error }
  return { status: 500, text: String(error), headers: {}, code: 'INTERNAL', ...bug }
}

/** Says that a connection which the simulation cut is the cause. */
function isCaused(error: unknown): boolean {
  if (error instanceof Lost || error instanceof CommitUnknownError) return true
  return error instanceof Error && error.cause !== undefined && isCaused(error.cause)
}
