import type { OperationId } from '@tollbase/contract/contract'
import { Fault } from '../../base/fault.ts'
import type { Admit } from '../../http/admit-requests.ts'
import type { Enter } from '../../http/implement.ts'
import { type RateLimits, toAddressKey } from '../../http/rate-limits.ts'
import type { RequestContext } from '../../http/request-context.ts'
import { type RequestHead, type RequestInfo, readLegibleBody } from '../../http/request-info.ts'
import { hashKey } from '../../projections/keys.ts'
import { decodeRequestPayment } from '../../x402/payment-header.ts'
import { hasSignIn, signInHeader } from '../../x402/sign-in.ts'
import type { Tenants } from '../applications/tenants.ts'
import type { Uses } from '../call.ts'
import { authorize, type Caller, findKeyHolder, identify, type Registration } from './access.ts'
import { readKeyTexts } from './credentials.ts'

export type Admission<Service> = {
  /** Takes from the rates before the body is read; throws 429. */
  readonly admit: Admit
  /** Finds out who calls and whether they may, before the body is judged; throws 429, 401, 403 and 404. */
  readonly enter: Enter<{ service: Service; caller: Caller; requestInfo: RequestInfo }>
}

/** Points that a request without a key costs its address, by the work that it causes. */
const points = {
  request: 1,
  quote: 5,
  page: 5,
  signature: 10,
  refused: 10,
  faucet: 100,
  // An entry, for good, and anybody can make a wallet.
  authorization: 100,
  // A chain, a lease and a schema of the database, for good.
  application: 500,
} as const

/**
 * Bytes of a body that cost a point, beside the request's own: SQL takes much longer to read than JSON does, and what
 * anybody may have us keep for good is on the disk and in memory.
 */
const bytesPerPoint = { sql: 1_024, kept: 16, other: 16 * 1_024 } as const

/** The points of work that count as one more payment which buys nothing: 12,000 points a minute are 600 payments. */
const pointsPerPayment = 20

/** Probes must be answered whatever else happens, and cost next to nothing. */
const probes = new Set<string>([
  'getRoot',
  'getHealth',
  'postHealth',
  'getReady',
  'getMetrics',
] satisfies OperationId[])

/** Operations that cost more points than a plain request, whatever the answer. */
const costlyOperations = new Map<string, number>([
  ['previewCollection', points.page],
  ['quotePrice', points.quote],
  ['querySql', points.page],
  ['listQueries', points.page],
  ['getQueriesOpenapi', points.page],
  ['getOpenapi', points.page],
  ['getDocs', points.page],
  ['createApplication', points.application],
  ['createAuthorization', points.authorization],
  ['requestFaucet', points.faucet],
] satisfies [OperationId, number][])

/** Operations whose bodies cost more than others. */
const bodyKinds = new Map<string, keyof typeof bytesPerPoint>([
  ['querySql', 'sql'],
  ['createAuthorization', 'kept'],
] satisfies [OperationId, keyof typeof bytesPerPoint][])

/** Operations that carry a payment in their body. */
const facilitatorOperations = new Set<string>([
  'verifyPayment',
  'settlePayment',
] satisfies OperationId[])

/**
 * Decides who takes from which rate. A good key and a payment that buys something are never held up by callers
 * without either, whatever their address; work that brings nothing is limited most.
 */
export function createAdmission<Service extends Uses<'world' | 'database' | 'tenants' | 'program'>>(
  service: Service,
  options: {
    operatorKey: string
    onKey: (hash: string) => void
    rates: RateLimits
    registration: Registration
  },
): Admission<Service> {
  const { tenants, database, world } = service
  const { rates, registration } = options
  const { origin } = service.program
  const operatorKeyHash = hashKey(options.operatorKey)
  const ports = { tenants, database, world, origin, operatorKeyHash }
  return {
    admit: (request) => {
      const { operationId, route } = request.routeOptions.config
      if (operationId === undefined || probes.has(operationId)) return
      const head = { headers: request.headers, query: request.query as RequestHead['query'] }
      const { text, isPayer } = findKeyText(head)
      const caller = text === undefined ? undefined : findKeyHolder(text, request.context, ports)
      if (caller !== undefined) noteCaller(request.context, caller)
      if (caller?.kind === 'operator') return
      const address = toAddressKey(request.ip)
      // Clients send a key that only pays with all that they ask for, also for what costs nothing: beyond the rate of
      // payments that buy nothing such requests are a visitor's.
      const hasPayer = isPayer && caller?.payer !== undefined && !rates.isUsedUp('payment', address)
      const pays =
        facilitatorOperations.has(operationId) ||
        (route?.paid === true && (hasPayer || hasPayment(request.headers)))
      const visit: Visit = { rates, context: request.context, pays, address }
      if (caller?.kind === 'key') admitKey(visit, caller.key)
      else if (text !== undefined && caller === undefined)
        admitVisitor({ ...visit, pays: false }, points.refused)
      else admitVisitor(visit, computePoints(operationId, head))
    },
    enter: async (operationId, route, requestInfo) => {
      const { context } = requestInfo
      if (context.place !== undefined) {
        context.noteWork(computeBodyCost(operationId, requestInfo.bodyBytes.length))
        context.leave = rates.occupy(context.place.limit, context.place.address)
      }
      const caller = await identify(requestInfo, ports)
      noteCaller(context, caller)
      if (caller.kind === 'key') options.onKey(caller.key.key_hash)
      if (caller.payer !== undefined) options.onKey(caller.payer.key_hash)
      authorize(route, caller, { appId: requestInfo.params.app, tenants, registration })
      context.app = findApp(requestInfo, tenants) ?? context.app
      if (context.place?.limit === 'anonymous_in_flight' && context.app !== undefined)
        rates.take(context, 'visitors', { key: context.app })
      return { service, caller, requestInfo }
    },
  }
}

type Visit = {
  readonly rates: RateLimits
  readonly context: RequestContext
  readonly pays: boolean
  readonly address: string
}

/** A sale out of the balance that its key pays from counts for that balance, and is refused there. */
function admitKey(visit: Visit, key: { key_hash: string; app_id: string }): void {
  const { rates, context, pays } = visit
  rates.take(context, 'key', { key: key.key_hash })
  rates.take(context, 'application', { key: key.app_id })
  if (pays) takeForPayment(visit, key.key_hash, () => undefined)
}

function admitVisitor(visit: Visit, cost: number): void {
  const { rates, context, pays, address } = visit
  context.place = { limit: pays ? 'paying_in_flight' : 'anonymous_in_flight', address }
  context.noteRead = ({ sql, other }) =>
    context.noteWork(sql / bytesPerPoint.sql + other / bytesPerPoint.other)
  if (pays) {
    // Otherwise a caller who pays nothing could avoid the rate of an address with payments that buy nothing.
    takeForPayment(visit, address, (work) =>
      rates.charge('address', { key: address, cost: cost + work }),
    )
    return
  }
  rates.take(context, 'address', { key: address, cost })
  // The next request of the address is refused though this one, which may ask for a thousand queries, goes on.
  context.noteWork = (work) => rates.charge('address', { key: address, cost: work })
  context.ended = ({ status }) => {
    const due = status === 402 ? points.quote : status === 401 ? points.refused : 0
    if (due > cost) rates.charge('address', { key: address, cost: due - cost })
  }
}

/**
 * A payment that buys something costs nothing of this, with all its work, and whatever its address owes. Until that is
 * known it counts as one that does not. `onWasted` is called with the points of its work if it bought nothing.
 */
function takeForPayment(
  { rates, context }: Visit,
  key: string,
  onWasted: (work: number) => void,
): void {
  let [work, taken] = [0, 1]
  rates.take(context, 'payment', { key })
  context.noteWork = (points) => {
    work += points
    taken += rates.charge('payment', { key, cost: points / pointsPerPayment })
  }
  context.ended = ({ sale }) => {
    if (sale === 'paid') rates.giveBack('payment', { key, cost: taken })
    else onWasted(work)
  }
}

/** Returns the key that the request bears; contradicting keys count as none, and are refused later. */
function findKeyText(head: RequestHead): {
  readonly text: string | undefined
  /** It is borne as one that pays. */
  readonly isPayer: boolean
} {
  try {
    const { key, payer } = readKeyTexts(head)
    return { text: key ?? payer, isPayer: key === undefined && payer !== undefined }
  } catch (error) {
    if (error instanceof Fault) return { text: undefined, isPayer: false }
    throw error
  }
}

function computePoints(operationId: string, head: RequestHead): number {
  const isSigned = head.headers['x-signature'] !== undefined
  return (costlyOperations.get(operationId) ?? points.request) + (isSigned ? points.signature : 0)
}

function computeBodyCost(operationId: string, bytes: number): number {
  return Math.floor(bytes / bytesPerPoint[bodyKinds.get(operationId) ?? 'other'])
}

/** A header that cannot be read as a payment counts as none: it can have bought nothing. */
function hasPayment(headers: RequestHead['headers']): boolean {
  if (headers['x-payment'] === undefined && headers['payment-signature'] === undefined)
    return hasSignIn(headers[signInHeader])
  try {
    return decodeRequestPayment(headers) !== undefined
  } catch (error) {
    if (error instanceof Fault) return false
    throw error
  }
}

function noteCaller(context: RequestContext, caller: Caller): void {
  context.caller = caller.kind
  if (caller.kind === 'anonymous') context.keyPrefix = caller.payer?.prefix
  if (caller.kind !== 'key') return
  context.keyPrefix = caller.key.prefix
  context.app = caller.key.app_id
}

/** Returns the application that the path or the body names, if it exists. */
function findApp(requestInfo: RequestInfo, tenants: Tenants): string | undefined {
  const named = requestInfo.params.app ?? findBodyApp(requestInfo)
  return named !== undefined && tenants.system.applications.get(named) ? named : undefined
}

function findBodyApp(requestInfo: RequestInfo): string | undefined {
  if (requestInfo.bodyBytes.length === 0) return undefined
  const body = readLegibleBody(requestInfo)
  if (typeof body.root === 'string') return cutAtColons(body.root)
  return typeof body.app_id === 'string' ? body.app_id : undefined
}

function cutAtColons(root: string): string {
  const end = root.indexOf('::')
  return end < 0 ? root : root.slice(0, end)
}
