import { limits } from '@tollbase/contract/limits'
import {
  type Contract,
  canChange,
  type Input,
  type Reply,
  type Route,
} from '@tollbase/contract/route'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Fault } from '../base/fault.ts'
import { type JsonBody, parseJsonBytes, parseLongJson } from '../base/json-body.ts'
import { isShortJson, printJsonInTurns } from '../base/print-json-in-turns.ts'
import {
  type KnownInput,
  refuseUnknownMembers,
  refuseUnknownTexts,
  toKnownInput,
} from './known-input.ts'
import { refuseUndecodable } from './refuse-undecodable.ts'
import { HttpReply } from './reply.ts'
import type { Outcome, RequestContext } from './request-context.ts'
import { makeRepeatedFault, type RequestInfo } from './request-info.ts'
import { sendFile } from './send-file.ts'
import { findDigest } from './upload.ts'
import { type Check, compileCheck, parseTexts } from './validate.ts'

/** One handler for every route of the contract: a missing one does not compile. */
export type Handlers<C extends Contract, Call> = {
  readonly [K in keyof C]: (call: Call, input: Input<C[K]>) => Promise<Reply<C[K]> | HttpReply>
}

/** Authorizes the caller, before the body is judged; throws 401, 403 or 404. */
export type Enter<Call> = (
  operationId: string,
  route: Pick<Route, 'access' | 'evenArchived'>,
  info: RequestInfo,
) => Promise<Call>

/**
 * Finds the answer that a repeated request to a paid endpoint has already bought; its operation is not called then.
 */
export type FindEarlierReply<Call> = (call: Call) => Promise<HttpReply | undefined>

/**
 * Checks whether the caller may access what the request addresses, as far as the request can be read; throws 401, 403
 * or 404. Called only if a request is refused for its shape: for all others the operation checks this.
 */
export type Judge<Call> = (operationId: string, call: Call) => Promise<void>

/**
 * Does the work of a call that changes something, unless the same caller had it done before under the same
 * Idempotency-Key: then the answer is the one of that time.
 */
export type RunOnce<Call> = (
  call: Call,
  operation: { readonly operationId: string; readonly route: Route },
  work: () => Promise<unknown>,
) => Promise<{ readonly answer: unknown; readonly isRepeat: boolean }>

/** Does the work of a call that changes nothing, again where what it reads was replaced meanwhile. */
export type ReadAnew = (work: () => Promise<unknown>) => Promise<unknown>

type Hooks<Call> = {
  readonly enter: Enter<Call>
  readonly judge: Judge<Call>
  readonly findEarlierReply: FindEarlierReply<Call>
  readonly runOnce: RunOnce<Call>
  readonly readAnew: ReadAnew
}

type AnyHandler<Call> = (call: Call, input: unknown) => Promise<unknown>

/** Makes a server route of each route of the contract and of its aliases. */
export function implement<C extends Contract, Call>(
  fastify: FastifyInstance,
  contract: C,
  options: Hooks<Call> & { handlers: Handlers<C, Call> },
): void {
  for (const [operationId, route] of Object.entries(contract)) {
    const handler = options.handlers[operationId] as AnyHandler<Call>
    const run = makeRunner(operationId, route, { ...options, handler })
    const add = (to: FastifyInstance) => {
      for (const url of listPaths(route)) {
        to.route({
          method: route.method,
          url,
          config: { operationId, route },
          bodyLimit: route.takesRecords === true ? limits.bodyBytesMax : limits.plainBodyBytesMax,
          // A HEAD would buy an answer and throw it away, so endpoints that can cost money have none by default.
          exposeHeadRoute:
            route.method === 'GET' && (route.paid !== true || route.hasHead === true),
          handler: run,
        })
      }
    }
    if (!hasStreamedBody(route)) add(fastify)
    else {
      fastify.register((scope, _options, done) => {
        leaveBodiesUnread(scope)
        add(scope)
        done()
      })
    }
  }
}

/** Says that the operation reads the body, as a stream. */
export function hasStreamedBody({ form, stream }: Pick<Route, 'form' | 'stream'>): boolean {
  return form !== undefined || stream !== undefined
}

/** The operations of this scope read the bodies themselves. */
function leaveBodiesUnread(scope: FastifyInstance): void {
  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser('*', (_request, _body, done) => done(null))
}

/** Says that a body is read as JSON: also that of a change that takes none, so that its members are refused. */
export function isBodyJudged(route: Route): boolean {
  return route.body !== undefined || (canChange(route) && !hasStreamedBody(route))
}

/** Lists the paths of a route; every `/api/apps/` path is served under `/apps/` too. */
export function listPaths(route: Pick<Route, 'path' | 'aliases'>): string[] {
  const paths = [route.path, ...(route.aliases ?? [])]
  const all = paths.flatMap((path) =>
    path.startsWith('/api/apps') ? [path, path.slice('/api'.length)] : [path],
  )
  return [...new Set(all)]
}

function makeRunner<Call>(
  operationId: string,
  route: Route,
  options: Hooks<Call> & { handler: AnyHandler<Call> },
) {
  const checks = {
    known: toKnownInput(operationId, route),
    params: route.params && compileCheck(route.params),
    query: route.query && compileCheck(route.query),
    body: route.body && compileCheck(route.body),
  }
  const runOnce: RunOnce<Call> = canChange(route)
    ? options.runOnce
    : async (_call, _operation, work) => ({ answer: await options.readAnew(work), isRepeat: false })
  /** Rights come before shape: a caller without access is not told how to correct the request. */
  const inOrder = async (call: Call, input: () => unknown) => {
    try {
      const work = async () => options.handler(call, input())
      return await runOnce(call, { operationId, route }, work)
    } catch (error) {
      if (error instanceof Fault && shapeStatuses.has(error.status))
        await options.judge(operationId, call)
      throw error
    }
  }
  return async (request: FastifyRequest, reply: FastifyReply) => {
    const info = makeRequestInfo(request, route)
    await info.readBody()
    const call = await options.enter(operationId, route, info)
    const known = route.paid === true ? await options.findEarlierReply(call) : undefined
    const { answer, isRepeat } =
      known === undefined
        ? await inOrder(call, () => parseInput(route, info, checks))
        : { answer: known, isRepeat: true }
    if (isRepeat) reply.header('idempotent-replayed', 'true')
    const ready = answer instanceof HttpReply ? answer : await printAnswer(reply, answer)
    // The work ends before the answer is sent: the time of its reader is not work, but printing is.
    info.context.finish(toOutcome(route, answer, { isRepeat }))
    return send(route, { request, reply }, ready)
  }
}

/** The codes that say that a request, or a record in it, is not as it should be. */
const shapeStatuses: ReadonlySet<number> = new Set([400, 422])

function toOutcome(route: Route, answer: unknown, { isRepeat }: { isRepeat: boolean }): Outcome {
  if (!(answer instanceof HttpReply)) return { status: route.status ?? 200, sale: 'none' }
  const status = answer.status ?? route.status ?? 200
  if (isRepeat || answer.headers['x-payment-id'] === undefined) return { status, sale: 'none' }
  // A cheap one grows the log for good and costs nobody anything, so the rate limits alone bound it.
  return { status, sale: answer.paysForEntry ? 'paid' : 'cheap' }
}

function parseInput(
  route: Route,
  info: RequestInfo,
  checks: {
    known: KnownInput
    params: Check | undefined
    query: Check | undefined
    body: Check | undefined
  },
) {
  const params = route.params ? parseTexts(route.params, info.params, '/params') : {}
  refuseUndecodable(info.queryText)
  const query = route.query ? parseTexts(route.query, info.query, '/query') : {}
  checks.params?.(params, '/params')
  refuseUnknownTexts(checks.known, info.query)
  checks.query?.(query, '/query')
  const sent = isBodyJudged(route) ? info.json().value : undefined
  // The public PHP client posts `[]` where it means an empty object.
  const absent = sent === undefined || sent === null || (Array.isArray(sent) && sent.length === 0)
  const body = route.bodyOptional === true && absent ? {} : sent
  if (route.body && body === undefined)
    throw new Fault('VALIDATION_FAILED', { message: 'A JSON body is needed' })
  refuseUnknownMembers(checks.known, body)
  checks.body?.(body, '')
  return { params, query, body }
}

const noBody = Buffer.alloc(0)

/**
 * A request whose body is still unread; `readBody` parses a long one without holding up others, and `json` throws
 * what is wrong with it.
 */
export type IncomingRequest = RequestInfo & { readonly readBody: () => Promise<void> }

/** Collects the transport's information about a request to a route. */
export function makeRequestInfo(
  request: FastifyRequest,
  route: Pick<Route, 'path' | 'form' | 'stream'>,
): IncomingRequest {
  refuseSecondAuthorization(request.raw)
  const bodyBytes = Buffer.isBuffer(request.body) ? request.body : noBody
  let parsed: JsonBody | undefined
  let problem: unknown
  const params = request.params as Record<string, string>
  const mark = request.raw.url?.indexOf('?') ?? -1
  return {
    requestId: request.id,
    method: request.method,
    path: fillPath(route.path, params),
    url: request.originalUrl,
    queryText: mark < 0 ? '' : removeKey(request.raw.url?.slice(mark + 1) ?? ''),
    headers: request.headers,
    params,
    query: request.query as Record<string, string | string[]>,
    bodyBytes,
    ...(hasStreamedBody(route) && {
      upload: { stream: request.raw, sha256: findDigest(request.headers) },
    }),
    json: () => {
      if (problem !== undefined) throw problem
      parsed ??= parseJsonBytes(bodyBytes)
      return parsed
    },
    readBody: async () => {
      if (bodyBytes.length <= limits.bodyBytesAtOnce) return
      try {
        parsed = await parseLongJson(bodyBytes)
      } catch (error) {
        problem = error
      }
    },
    remoteAddress: request.ip,
    context: request.context,
  }
}

function fillPath(path: string, params: Readonly<Record<string, string>>): string {
  if (!path.includes(':')) return path
  return path.replace(/:(\w+)/g, (_, name: string) => params[name] ?? '')
}

/**
 * Refuses a second Authorization header. Node keeps the first one silently, and a proxy in between may have
 * believed another.
 */
function refuseSecondAuthorization(raw: FastifyRequest['raw']): void {
  if (raw.headers.authorization === undefined) return
  const names = raw.rawHeaders.filter((_, at) => at % 2 === 0)
  if (names.filter((name) => name.toLowerCase() === 'authorization').length > 1)
    throw makeRepeatedFault('authorization')
}

function removeKey(query: string): string {
  return query
    .split('&')
    .filter((part) => !new URLSearchParams(part).has('api_key'))
    .join('&')
}

function send(
  route: Route,
  { request, reply }: { readonly request: FastifyRequest; readonly reply: FastifyReply },
  answer: HttpReply | string | Buffer,
): FastifyReply | Promise<FastifyReply> {
  if (answer instanceof HttpReply) {
    reply.code(answer.status ?? route.status ?? 200)
    reply.header('content-type', answer.contentType)
    for (const [name, value] of Object.entries(answer.headers)) reply.header(name, value)
    if (answer.file !== undefined) return sendFile(request, reply, answer.file)
    if (route.isForeign === true) disarmForeign(reply, answer.contentType)
    return reply.send(toPayload(answer.text))
  }
  reply.code(route.status ?? 200)
  reply.header('content-type', 'application/json; charset=utf-8')
  return reply.send(toPayload(answer))
}

/** Prints an answer of JSON; throws 503 where too many are printed or read, and where nobody waits for it any more. */
async function printAnswer(reply: FastifyReply, answer: unknown): Promise<string | Buffer> {
  if (isShortJson(answer)) return JSON.stringify(answer)
  // Its parts are in memory beside the whole that is made of them.
  return printJsonInTurns(answer, (bytes) => reply.occupyOutgoing(2 * bytes))
}

/** Characters from which a text is encoded here, once. A shorter one is written together with its headers. */
const longText = 16 * 1024

/** Encodes a long text. As a string it would be read four times: each question for its length in bytes reads it all. */
function toPayload(text: string | Buffer): string | Buffer {
  return typeof text === 'string' && text.length >= longText ? Buffer.from(text) : text
}

/** Types that browsers show without running anything; all others are downloads. */
const inert =
  /^(application\/([\w.+-]+\+)?json|application\/x-ndjson|text\/(plain|csv)|image\/(png|jpeg|gif|webp|avif|bmp))(\s*;|$)/i

/** Nothing that others made acts as a page of this service. */
function disarmForeign(reply: FastifyReply, contentType: string): void {
  reply.header('content-security-policy', "default-src 'none'; sandbox")
  if (!inert.test(contentType)) reply.header('content-disposition', 'attachment')
}

declare module 'fastify' {
  interface FastifyRequest {
    context: RequestContext
  }
  interface FastifyReply {
    /**
     * Takes the bytes that an answer has by now, while it is printed; throws 503 where there are too many, or where its
     * reader has gone.
     */
    readonly occupyOutgoing: (bytes: number) => void
  }
  interface FastifyContextConfig {
    operationId?: string
    route?: Route
  }
}
