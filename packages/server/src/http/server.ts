import { limits } from '@tollbase/contract/limits'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { Fault } from '../base/fault.ts'
import type { World } from '../base/world.ts'
import { refuseBrokenRequests } from './client-error.ts'
import { collectBody } from './collect-body.ts'
import { createTurns } from './connection-turns.ts'
import { allowAnyOrigin } from './cors.ts'
import { refuseCrumbledBodies } from './crumbled-bodies.ts'
import { drainInTime } from './drain.ts'
import { endConnection, makeEndRequest, noteAnswers } from './end-request.ts'
import { answerError, answerErrors } from './error-reply.ts'
import { hasStreamedBody } from './implement.ts'
import { limitIncoming } from './incoming-bodies.ts'
import { refuseLateRequests } from './late-requests.ts'
import { OpenReplies } from './open-replies.ts'
import { limitOutgoing, type OutgoingBounds } from './outgoing-answers.ts'
import { RequestContext } from './request-context.ts'
import { makeRequestIds } from './request-ids.ts'
import { type Served, watchMethods } from './served-methods.ts'
import { isBodyEmpty } from './upload.ts'
import { createProxyWarning } from './warn-of-proxy.ts'

export type HttpOptions = {
  readonly world: World
  readonly log: Logger
  /** Addresses and networks of proxies whose X-Forwarded-For is believed. */
  readonly trustProxy: readonly string[]
  /** Time for requests under way to finish when the server closes. */
  readonly finishMs: number
  /** Longest time for a request to arrive; the limit of the contract when not given. */
  readonly requestTimeoutMs?: number
  /** Bytes that bodies of callers without a key may hold; the limit of the contract when not given. */
  readonly incomingBytesMax?: number
  /** Refusals that wait for their pause at once; the limit of the contract when not given. */
  readonly refusalsWaitingMax?: number
  /** Bounds on what slow readers may hold; the limits of the contract when not given. */
  readonly outgoing?: OutgoingBounds
  /** Translates an error of a lower room into a fault, where it is no bug. */
  readonly explain: (error: unknown) => Fault | undefined
  /** Called once per finished request with the milliseconds that it took, for metrics and the access log. */
  readonly onFinish: (request: FastifyRequest, reply: FastifyReply, ms: number) => void
}

/**
 * Answers belong to one caller, key and payment: a shared cache would sell twice, hand a quote to another, or show
 * private data. Errors say so too. A cacheable answer states its own headers.
 */
const uncacheable = {
  'cache-control': 'no-store',
  vary: [
    'X-PAYMENT',
    'PAYMENT-SIGNATURE',
    'Authorization',
    'X-App-Key',
    'X-API-Key',
    'X-Agent-Key',
    'X-User-Key',
    'X-Signature',
    'SIGN-IN-WITH-X',
  ].join(', '),
}

const routerOptions = {
  ignoreTrailingSlash: true,
  ignoreDuplicateSlashes: true,
  maxParamLength: 1024,
}

function refuseSchema(): never {
  throw new Error('a route of Fastify has a schema; the contract has the schemas')
}

/** The contract's own checks judge every request. Fastify's would be loaded all the same, a tenth of a start. */
const noSchemas = {
  compilersFactory: { buildValidator: refuseSchema, buildSerializer: refuseSchema },
}

/** The bare HTTP server: body limits, request ids, CORS and errors; routes are added by `implement`. */
export function createServer(options: HttpOptions): FastifyInstance {
  const { world, finishMs } = options
  const finished = (request: FastifyRequest, reply: FastifyReply) =>
    options.onFinish(request, reply, world.ticks() - request.context.startedAt)
  const requestTimeoutMs = options.requestTimeoutMs ?? limits.requestTimeoutMs
  const fastify = Fastify({
    ...makeSettings(options, requestTimeoutMs),
    // A URL that cannot be decoded never reaches the hooks and handlers below.
    frameworkErrors: (error, request, reply) => {
      addContext(world, request, reply)
      reply.raw.once('close', () => finished(request, reply))
      // Nothing else watches how a body comes.
      if (!isBodyEmpty(request.headers)) endConnection(reply)
      answerInTime(error, request, reply).catch(() => reply.raw.destroy())
    },
  })
  // An expectation that is not known need not be met (RFC 9110, 10.1.1). Node would answer by itself, and go on to read a
  // body that nothing here watches.
  fastify.server.on('checkExpectation', (request, response) =>
    fastify.server.emit('request', request, response),
  )
  const answerInTime = answerErrors(fastify, options, () => drain.isClosing())
  takeAnyBody(fastify)
  const servedAt = watchMethods(fastify)
  fastify.decorateRequest('context')
  const open = new OpenReplies()
  allowAnyOrigin(fastify)
  const turns = createTurns()
  dropNameless(fastify)
  fastify.addHook('onRequest', createProxyWarning(options.log))
  const refuse = (error: Fault, reply: FastifyReply) =>
    answerError(error, { request: reply.request, reply, log: options.log })
  const endRequest = makeEndRequest(refuse)
  // Before a request waits for its turn: its body comes meanwhile.
  refuseCrumbledBodies(fastify, endRequest)
  const begin = (request: FastifyRequest, reply: FastifyReply) => {
    addContext(world, request, reply)
    open.add(reply)
    // onResponse never comes where the client hangs up.
    reply.raw.once('close', () => {
      if (!reply.raw.writableEnded) request.context.hangUp()
      if (!request.raw.complete && !drain.isClosing()) endLate(request, world, requestTimeoutMs)
      open.delete(reply)
      drain.requestEnded()
      finished(request, reply)
      turns.end(request.raw.socket)
    })
  }
  fastify.addHook('onRequest', (request, reply, done) => {
    const start = () => {
      if (reply.raw.destroyed) return
      begin(request, reply)
      done()
    }
    turns.take(request.raw.socket, () => {
      // Node answers some requests by itself, and ends their connection. An answer behind one of these never gets the
      // connection, and Node never closes it: whatever it held would be held for ever.
      if (reply.raw.socket !== null) start()
      else reply.raw.once('socket', () => setImmediate(start))
    })
  })
  refuseLateRequests(fastify, { world: world, open, timeoutMs: requestTimeoutMs, endRequest })
  limitIncoming(fastify, {
    bytesMax: options.incomingBytesMax ?? limits.incomingBytesMax,
    isBound: ({ context, routeOptions }) =>
      !ratedCallers.has(context.caller) && !hasStreamedBody(routeOptions.config.route ?? {}),
    endRequest,
  })
  noteAnswers(fastify)
  limitOutgoing(fastify, world, options.outgoing)
  const drain = drainInTime(fastify, { world, open, finishMs, refuse })
  fastify.setNotFoundHandler((request, reply) => {
    const served = servedAt(getPath(request))
    if (served.methods.length > 0) reply.header('allow', served.methods.join(', '))
    return answerInTime(notServed(request, served), request, reply)
  })
  return fastify
}

/** Callers whose bodies have rates of their own; a key that only pays is none of these. */
const ratedCallers: ReadonlySet<string> = new Set(['key', 'operator'])

/** The settings of Fastify, and of Node's server under it. */
function makeSettings({ world, trustProxy }: HttpOptions, requestTimeoutMs: number) {
  return {
    logger: false,
    schemaController: noSchemas,
    bodyLimit: limits.bodyBytesMax,
    routerOptions,
    http: {
      maxHeaderSize: limits.headerBytesMax,
      // Interval of the checks for late requests; Node's own half minute would double the deadline.
      connectionsCheckingInterval: requestTimeoutMs / 10,
      // Node watches the heads alone: an upload may take as long as its rate is good, and late-requests.ts watches
      // all other bodies.
      headersTimeout: requestTimeoutMs,
    },
    requestTimeout: 0,
    clientErrorHandler: refuseBrokenRequests(world),
    keepAliveTimeout: 65_000,
    genReqId: makeRequestIds(world),
    trustProxy: trustProxy.length > 0 ? [...trustProxy] : false,
    // Our own refusal is JSON like every other, with Retry-After.
    return503OnClosing: false,
    forceCloseConnections: 'idle' as const,
    exposeHeadRoutes: false,
  }
}

/**
 * Drops a request whose sender reset the connection before anybody asked for its address: the system does not know it any
 * more, but still hands over what had arrived. Asked for once, it is known to all who come later.
 */
function dropNameless(fastify: FastifyInstance): void {
  fastify.addHook('onRequest', (request, _reply, done) => {
    if (request.raw.socket.remoteAddress === undefined) request.raw.destroy()
    else done()
  })
}

/** Gives the request its context, and its answer the headers that every answer has. */
function addContext(world: World, request: FastifyRequest, reply: FastifyReply): void {
  request.context = new RequestContext(world.ticks(), (name, value) => reply.header(name, value))
  reply.header('x-request-id', request.id)
  reply.header('x-content-type-options', 'nosniff')
  reply.headers(uncacheable)
}

/**
 * The rest of a body that was answered before it was there has some time to come, and is thrown away. Once it is there,
 * the connection is good for further requests, whether anybody has read the body or not. A server that is stopping
 * closes it, and must leave the body to work that was answered and may still begin to read.
 */
function endLate({ raw }: FastifyRequest, world: World, timeoutMs: number): void {
  const stop = world.every(timeoutMs, () => {
    stop()
    if (!raw.complete) raw.destroy()
  })
  raw.once('close', stop)
  raw.resume()
}

function takeAnyBody(fastify: FastifyInstance): void {
  fastify.removeAllContentTypeParsers()
  // The usual content type is named, because Fastify caches its lookup for named types only.
  const types = ['application/json', '*']
  fastify.addContentTypeParser(types, collectBody)
}

function notServed(request: FastifyRequest, { methods: allow, otherwise }: Served): Fault {
  const asked = `${request.method} ${getPath(request)}`
  if (allow.length === 0) {
    return new Fault('ROUTE_NOT_FOUND', {
      message: `There is no ${asked}; GET /docs lists the endpoints`,
    })
  }
  const methods = allow.filter((method) => method !== 'OPTIONS')
  return new Fault('METHOD_NOT_ALLOWED', {
    message: `There is no ${asked}; send ${methods.join(' or ')}${otherwise === undefined ? '' : `. ${otherwise}`}`,
    details: { allow },
  })
}

function getPath(request: FastifyRequest): string {
  const url = request.raw.url ?? ''
  const mark = url.indexOf('?')
  return (mark < 0 ? url : url.slice(0, mark)).slice(0, 200)
}
