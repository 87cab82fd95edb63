import { limits } from '@tollbase/contract/limits'
import { Fault } from '../../base/fault.ts'
import { HttpReply } from '../../http/reply.ts'
import { computeBoundParts, computeCost } from '../../model/compute-cost.ts'
import { getDefinitionVersion } from '../../model/definition-version.ts'
import type { ApiDefinition } from '../../model/definitions.ts'
import { getReadPrice, isFree } from '../../model/find-price.ts'
import { makeMeasuredRead } from '../../model/measured-use.ts'
import { freePrice, type Price } from '../../model/policy.ts'
import type { Collection } from '../../model/readable.ts'
import { makeSourceName } from '../../model/source-names.ts'
import { toApplicationAccount } from '../../projections/ledger-entry.ts'
import type { UpstreamAnswer } from '../../upstream/ask-upstream.ts'
import { UpstreamError } from '../../upstream/upstream-error.ts'
import type { Tenant } from '../applications/tenants.ts'
import type { Call, Uses } from '../call.ts'
import type { PartPrice } from '../payments/purchase.ts'
import { maxKbDefault } from '../reading/priced-sources.ts'
import { makeFreeTurn, makePaidTurn } from '../reading/query-turn.ts'
import { type ApiPlan, buildUpstreamRequest, planApi, readApiArguments } from './api-plan.ts'
import { type HeaderPlace, openHeaders } from './header-secrets.ts'
import type { UpstreamCall } from './upstreams.ts'

type ApiRead = {
  readonly tenant: Tenant
  readonly collection: Collection
  /** True where the caller pays nothing for it, as it is the caller's own. */
  readonly free: boolean
  readonly maxKb: number | undefined
}

/** An answer counts as one row, so that a price by the row is one by the answer. */
const rows = 1

type ApiCall = Call<'payments' | 'upstreams'>

/** Answers a request for the data of an API collection, free of charge or by selling it. */
export async function answerApi(call: ApiCall, read: ApiRead): Promise<HttpReply> {
  const { tenant, collection, free } = read
  const price = getReadPrice(tenant.data.catalog, collection)
  const asked = prepareCall(call, read)
  if (!free && !isFree(price)) return sell(call, read, asked)
  const { application } = tenant
  const turn = makeFreeTurn(call, application.app_id)
  const { body, contentType } = await ask(call.service, { ...asked, turn }, { isOwner: free })
  return new HttpReply(body, { contentType })
}

function sell(call: ApiCall, read: ApiRead, asked: PreparedCall): Promise<HttpReply> {
  const { tenant, collection } = read
  const { app_id: app } = tenant.application
  const turn = makePaidTurn(call.requestInfo, app)
  const bytesMax = ({ perKb }: Price) => computeBytesMax(read, perKb)
  const getPrice = ([price]: readonly PartPrice[]): Price => price ?? freePrice
  return call.service.payments.sell(call, {
    tenant,
    operation: 'api',
    description: `An answer of ${app}::${collection.name}`,
    meaning: getDefinitionVersion(tenant, collection),
    payees: [
      {
        account: toApplicationAccount(app),
        platformBasisPoints: 0,
        item: { kind: 'collection', name: collection.name },
      },
    ],
    pricedBy: [tenant],
    pricesNow: () => [{ ...getReadPrice(tenant.data.catalog, collection), emptyFree: false }],
    mostUnder: (prices) => [{ rows, bytes: bytesMax(getPrice(prices)) }],
    sellerUnder: () => app,
    isMoneyFirst: true,
    breakdownUnder: (prices) => {
      const price = getPrice(prices)
      const byKb = { ...freePrice, perKb: price.perKb }
      return {
        per_access: Number(price.perAccess),
        per_row: Number(price.perRow),
        per_kb: Number(computeCost(byKb, { rows: 0, bytes: bytesMax(price) })),
        ...computeBoundParts([price], { rows, bytes: bytesMax(price) }),
      }
    },
    refuseUndeliverable: () => call.service.upstreams.refuseFull({ ...asked, turn }),
    deliver: async (prices, paymentId) => {
      const price = getPrice(prices)
      const bought = { ...addIdempotencyKey(asked, paymentId), turn }
      const { body, contentType } = await ask(call.service, bought, { isOwner: false })
      if (body.length > bytesMax(price)) throw makeNotBoughtFault(body.length, bytesMax(price))
      const size = { rows, bytes: body.length }
      const measured = [makeMeasuredRead(price, size)]
      const sources = [makeSourceName(app, collection.id)]
      return { status: 200, body, contentType, sizes: [size], measured, sources, rows, asOf: null }
    },
  })
}

/**
 * Without a price by the KB only the service's own limit holds: the upstream has done its work by then, and a buyer could
 * have it done for nothing by asking for less than the answer has. The quote may have been made under a price by the KB.
 */
function computeBytesMax({ maxKb }: ApiRead, perKb: bigint): number {
  return perKb > 0n ? (maxKb ?? maxKbDefault) * 1024 : limits.upstreamBytesMax
}

type PreparedCall = Omit<UpstreamCall, 'turn'>

/** Prepares the request to the upstream; 400 where a parameter is wrong, 409 where there is no upstream yet. */
function prepareCall(
  { service, requestInfo }: ApiCall,
  { tenant, collection }: ApiRead,
): PreparedCall {
  const { api, id, name } = collection
  const { app_id: app, number } = tenant.application
  if (api === undefined)
    throw new Fault('CONFLICT', {
      message: `${name} has no upstream yet; set one by PUT /api/apps/${app}/api-collections/${name}`,
    })
  const plan = getPlan(api)
  const request = buildUpstreamRequest(plan, readApiArguments(plan, requestInfo.query))
  const { url, method, target, body = null } = request
  const { cache_seconds: cacheSeconds } = api
  const { origin } = url
  const place = { app, collection: id, origin }
  return {
    request: { ...request, headers: openOwnHeaders(service.upstreams.headerKey, api, place) },
    // Sealed headers are others after every change, even one to the same values. An answer is not kept for longer than
    // the definition says now.
    name: JSON.stringify([number, id, api.headers, cacheSeconds, origin, method, target, body]),
    cacheSeconds,
  }
}

/** Faults UPSTREAM_FAILED where another service sealed the headers, as before the application moved here. */
function openOwnHeaders(key: Buffer, { headers }: ApiDefinition, place: HeaderPlace) {
  try {
    return openHeaders(key, headers, place)
  } catch (cause) {
    throw new Fault('UPSTREAM_FAILED', {
      message: 'The headers for this API cannot be opened here; its seller must set them again',
      cause,
    })
  }
}

const plans = new WeakMap<ApiDefinition, ApiPlan>()

/** Definitions never change, so each is planned once. */
function getPlan(api: ApiDefinition): ApiPlan {
  const known = plans.get(api) ?? planApi(api, true)
  plans.set(api, known)
  return known
}

/**
 * A payment whose answer was lost is brought again, and asks the upstream again: by this key the upstream can tell.
 * An answer that is cached is not for one payment.
 */
function addIdempotencyKey(asked: PreparedCall, paymentId: string | undefined): PreparedCall {
  if (paymentId === undefined || asked.cacheSeconds > 0) return asked
  const { request } = asked
  return {
    ...asked,
    request: { ...request, headers: { ...request.headers, 'idempotency-key': paymentId } },
  }
}

/** Others than the owner learn nothing of what went wrong behind the collection. */
async function ask(
  { upstreams }: Uses<'upstreams'>,
  asked: UpstreamCall,
  { isOwner }: { readonly isOwner: boolean },
): Promise<UpstreamAnswer> {
  try {
    return await upstreams.ask(asked)
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error
    const { problem, message: internal } = error
    // A host that is not allowed looks like one that is not there: its owner may be looking for what is inside.
    const reason = problem === 'forbidden' || problem === 'unreachable' ? 'unreachable' : internal
    throw new Fault(problem === 'late' ? 'UPSTREAM_TIMEOUT' : 'UPSTREAM_FAILED', {
      internal: `upstream: ${internal}`,
      ...(isOwner && { details: { reason } }),
    })
  }
}

/** Names the size in powers of two: nothing is charged for it, so it tells no more than the order of magnitude. */
function makeNotBoughtFault(bytes: number, bytesMax: number): Fault {
  const kb = 2 ** Math.ceil(Math.log2(bytes / 1024))
  return new Fault('RESULT_TOO_LARGE', {
    message: `The answer is larger than the ${Math.floor(bytesMax / 1024)} KB that were bought, and nothing is charged for that; ask with max_kb ${kb}`,
    details: { max_kb: kb },
  })
}
