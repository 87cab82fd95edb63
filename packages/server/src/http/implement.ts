import { limits } from '@tollbase/contract/limits'
import type { Contract, Input, Reply, Route } from '@tollbase/contract/route'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Fault } from '../base/fault.ts'
import { type JsonBody, parseJsonBytes, parseLongJson } from '../base/json-text.ts'
import {
  type KnownInput,
  knownInput,
  refuseUnknownMembers,
  refuseUnknownTexts,
} from './known-input.ts'
import { HttpReply } from './reply.ts'
import type { Outcome, Pass } from './request-context.ts'
import { doubled, type RequestFacts } from './request-info.ts'
import { type Check, checkOf, readTexts } from './validate.ts'

/** One handler for every route of the contract: a missing one does not compile. */
export type Handlers<C extends Contract, Call> = {
  readonly [K in keyof C]: (call: Call, input: Input<C[K]>) => Promise<Reply<C[K]> | HttpReply>
}

/** Judges who calls, before the body is; throws 401, 403 or 404. */
export type Enter<Call> = (
  operationId: string,
  route: Pick<Route, 'access' | 'evenArchived'>,
  facts: RequestFacts,
) => Promise<Call>

/** The answer that a request to a paid endpoint bought before, if it is a repetition; its operation is not asked then. */
export type Answered<Call> = (call: Call) => Promise<HttpReply | undefined>

/**
 * Judges whether the caller may have what his request addresses, by what of it can be read; throws 401, 403 or 404.
 * Asked only where a request is refused for its shape: all others are judged by their operation.
 */
export type Judge<Call> = (operationId: string, call: Call) => Promise<void>

type Doors<Call> = {
  readonly enter: Enter<Call>
  readonly judge: Judge<Call>
  readonly answered: Answered<Call>
}

type AnyHandler<Call> = (call: Call, input: unknown) => Promise<unknown>

/** Makes a server route of each route of the contract and of its aliases. */
export function implement<C extends Contract, Call>(
  fastify: FastifyInstance,
  contract: C,
  options: Doors<Call> & { handlers: Handlers<C, Call> },
): void {
  for (const [operationId, route] of Object.entries(contract)) {
    const handler = options.handlers[operationId] as AnyHandler<Call>
    const run = runnerOf(operationId, route, { ...options, handler })
    for (const url of pathsOf(route)) {
      fastify.route({
        method: route.method,
        url,
        config: { operationId, route },
        bodyLimit: route.takesRecords === true ? limits.bodyBytesMax : limits.plainBodyBytesMax,
        // A HEAD would buy an answer and throw it away, so what can cost money has none.
        exposeHeadRoute: route.method === 'GET' && route.paid !== true,
        handler: run,
      })
    }
  }
}

/** Every `/api/apps/` path is served under `/apps/` alike. */
export function pathsOf(route: Pick<Route, 'path' | 'aliases'>): string[] {
  const paths = [route.path, ...(route.aliases ?? [])]
  const all = paths.flatMap((path) =>
    path.startsWith('/api/apps') ? [path, path.slice('/api'.length)] : [path],
  )
  return [...new Set(all)]
}

function runnerOf<Call>(
  operationId: string,
  route: Route,
  options: Doors<Call> & { handler: AnyHandler<Call> },
) {
  const checks = {
    known: knownInput(operationId, route),
    params: route.params && checkOf(route.params),
    query: route.query && checkOf(route.query),
    body: route.body && checkOf(route.body),
  }
  /** Rights come before shape: who may not have what he asks for is not told how to ask better. */
  const inOrder = async (call: Call, input: () => unknown) => {
    try {
      return await options.handler(call, input())
    } catch (error) {
      if (error instanceof Fault && shapeStatuses.has(error.status))
        await options.judge(operationId, call)
      throw error
    }
  }
  return async (request: FastifyRequest, reply: FastifyReply) => {
    const facts = factsOf(request, route)
    await facts.arrive()
    const call = await options.enter(operationId, route, facts)
    const known = route.paid === true ? await options.answered(call) : undefined
    if (known !== undefined) reply.header('idempotent-replayed', 'true')
    const answer = known ?? (await inOrder(call, () => inputOf(route, facts, checks)))
    // Before the answer goes: how long its reader takes is not work.
    facts.pass.finish(outcomeOf(route, answer, { isRepeat: known !== undefined }))
    return send(route, reply, answer)
  }
}

/** What says that a request, or a record in it, is not as it should be. */
const shapeStatuses: ReadonlySet<number> = new Set([400, 422])

function outcomeOf(route: Route, answer: unknown, { isRepeat }: { isRepeat: boolean }): Outcome {
  if (!(answer instanceof HttpReply)) return { status: route.status ?? 200, boughtNew: false }
  const boughtNew = !isRepeat && answer.headers['x-payment-id'] !== undefined
  return { status: answer.status ?? route.status ?? 200, boughtNew }
}

function inputOf(
  route: Route,
  facts: RequestFacts,
  checks: {
    known: KnownInput
    params: Check | undefined
    query: Check | undefined
    body: Check | undefined
  },
) {
  const params = route.params ? readTexts(route.params, facts.params, '/params') : {}
  const query = route.query ? readTexts(route.query, facts.query, '/query') : {}
  checks.params?.(params, '/params')
  refuseUnknownTexts(checks.known, facts.query)
  checks.query?.(query, '/query')
  const sent = route.body ? facts.json().value : undefined
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

/** Facts whose body is still to be read; `arrive` does so without holding up others, and what is wrong `json` tells. */
export type Arriving = RequestFacts & { readonly arrive: () => Promise<void> }

/** The transport's facts of a request to a route. */
export function factsOf(request: FastifyRequest, route: Pick<Route, 'path'>): Arriving {
  refuseSecondAuthorization(request.raw)
  const bodyBytes = Buffer.isBuffer(request.body) ? request.body : noBody
  let parsed: JsonBody | undefined
  let problem: unknown
  const params = request.params as Record<string, string>
  const mark = request.raw.url?.indexOf('?') ?? -1
  return {
    requestId: request.id,
    method: request.method,
    path: pathWith(route.path, params),
    url: request.originalUrl,
    queryText: mark < 0 ? '' : withoutKey(request.raw.url?.slice(mark + 1) ?? ''),
    headers: request.headers,
    params,
    query: request.query as Record<string, string | string[]>,
    bodyBytes,
    json: () => {
      if (problem !== undefined) throw problem
      parsed ??= parseJsonBytes(bodyBytes)
      return parsed
    },
    arrive: async () => {
      if (bodyBytes.length <= limits.bodyBytesAtOnce) return
      try {
        parsed = await parseLongJson(bodyBytes)
      } catch (error) {
        problem = error
      }
    },
    remoteAddress: request.ip,
    pass: request.pass,
  }
}

function pathWith(path: string, params: Readonly<Record<string, string>>): string {
  if (!path.includes(':')) return path
  return path.replace(/:(\w+)/g, (_, name: string) => params[name] ?? '')
}

/** Node keeps the first of several and says nothing of the others, which a proxy in between may have believed. */
function refuseSecondAuthorization(raw: FastifyRequest['raw']): void {
  if (raw.headers.authorization === undefined) return
  const names = raw.rawHeaders.filter((_, at) => at % 2 === 0)
  if (names.filter((name) => name.toLowerCase() === 'authorization').length > 1)
    throw doubled('authorization')
}

function withoutKey(query: string): string {
  return query
    .split('&')
    .filter((part) => !new URLSearchParams(part).has('api_key'))
    .join('&')
}

function send(route: Route, reply: FastifyReply, answer: unknown): FastifyReply {
  if (answer instanceof HttpReply) {
    reply.code(answer.status ?? route.status ?? 200)
    reply.header('content-type', answer.contentType)
    for (const [name, value] of Object.entries(answer.headers)) reply.header(name, value)
    return reply.send(answer.text)
  }
  reply.code(route.status ?? 200)
  reply.header('content-type', 'application/json; charset=utf-8')
  return reply.send(JSON.stringify(answer))
}

declare module 'fastify' {
  interface FastifyRequest {
    pass: Pass
  }
  interface FastifyContextConfig {
    operationId?: string
    route?: Route
  }
}
