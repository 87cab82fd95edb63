import { getBlob } from '../../packages/server/src/operations/blobs/get-blob.ts'
import { listRecords } from '../../packages/server/src/operations/listing/list-records.ts'
import { updatePricing } from '../../packages/server/src/operations/pricing/update-pricing.ts'
import { executeQuery } from '../../packages/server/src/operations/queries/execute-query.ts'
import { createView } from '../../packages/server/src/operations/views/create-view.ts'
import { getPlate } from './plates.ts'
import type { Asked } from './send-request.ts'

/** Things of the library with tiers and a quota that are no collection of records. */
export type Exhibit = 'extracts' | 'digests' | 'plates'

/** The price of something by its count: for each buyer, and anew in each period. */
export type Meter = {
  readonly counts: 'row' | 'request'
  /** The cost of each one from the first on, and of those above each bound. */
  readonly tiers: readonly { readonly above: number; readonly amount: bigint }[]
  /** The number that is free in a period for a buyer who has paid once. */
  readonly free: number
  readonly period: 'month' | 'day'
}

/** A predefined query of the pages, a live view of them, and files. */
export const exhibits: Readonly<Record<Exhibit, Meter>> = {
  extracts: {
    counts: 'row',
    tiers: [
      { above: 0, amount: 700n },
      { above: 6, amount: 400n },
      { above: 12, amount: 100n },
    ],
    free: 4,
    period: 'day',
  },
  digests: {
    counts: 'request',
    tiers: [
      { above: 0, amount: 2_500n },
      { above: 2, amount: 1_500n },
      { above: 4, amount: 600n },
    ],
    free: 2,
    period: 'month',
  },
  plates: {
    counts: 'request',
    tiers: [
      { above: 0, amount: 3_000n },
      { above: 1, amount: 2_000n },
      { above: 3, amount: 500n },
    ],
    free: 2,
    period: 'day',
  },
}

const library = 'library'
const params = { app: library }

export function isExhibit(item: string | undefined): item is Exhibit {
  return item !== undefined && Object.hasOwn(exhibits, item)
}

/** Makes the predefined query, as the library stores it when it is founded. */
export function makeExtractsDefinition() {
  const price = { per_row: String(exhibits.extracts.tiers[0]?.amount) }
  return { name: 'extracts', source_collection: 'pages', price } as const
}

/** Makes the rules for an exhibit: its tiers, and its quota. */
export function makeExhibitRules(exhibit: Exhibit) {
  const { counts, tiers, free, period } = exhibits[exhibit]
  const [first, ...others] = tiers
  const kind = { extracts: 'query', digests: 'view', plates: 'collection' } as const
  const rule = { target: { [kind[exhibit]]: exhibit }, operation: 'read', period } as const
  return [
    {
      ...rule,
      model: counts === 'row' ? 'per_row' : 'per_access',
      amount: String(first?.amount),
      tiers: others.map(({ above, amount }) => ({ above, amount: String(amount) })),
    },
    { ...rule, model: 'free_quota', unit: counts, quantity: free },
  ] as const
}

/** Makes the requests by which the library makes a view of its pages, and sets what it costs. */
export function listDigestRequests(): readonly Asked[] {
  const view = {
    name: 'digests',
    source_collections: ['pages'],
    query: { select: ['id', 'text'], from: 'pages' },
    refresh_mode: 'live',
    access_policy: {
      read: 'public',
      price: { per_access: String(exhibits.digests.tiers[0]?.amount) },
    },
  }
  return [
    {
      operationId: 'createView',
      path: `/api/apps/${library}/views`,
      params,
      body: view,
      run: (call, body) => createView(call, { params, body: body as never }),
    },
    {
      operationId: 'updatePricing',
      path: `/api/apps/${library}/pricing`,
      params,
      body: { set: makeExhibitRules('digests') },
      run: (call, body) => updatePricing(call, { params, headers: {}, body } as never),
    },
  ]
}

/** Makes the request for so many rows of an exhibit, or for the file of that number. */
export function makeExhibitRequest(exhibit: Exhibit, count: number): Asked {
  if (exhibit === 'digests')
    return {
      operationId: 'listRecords',
      path: '/list',
      body: { root: `${library}::digests`, limit: count, sortBy: 'id' },
      run: (call, body) => listRecords(call, { body: body as never }),
    }
  if (exhibit === 'extracts') {
    const named = { ...params, name: exhibit }
    return {
      operationId: 'executeQuery',
      path: `/api/queries/${library}/${exhibit}/data`,
      params: named,
      query: { limit: String(count) },
      body: {},
      run: (call) => executeQuery(call, { params: named, query: { limit: count } }),
    }
  }
  const blob = `blob_${getPlate(count).sha256}`
  const place = { ...params, collection: exhibit, blob }
  return {
    operationId: 'getBlob',
    path: `/api/apps/${library}/blobs/${exhibit}/${blob}`,
    params: place,
    query: {},
    body: {},
    run: (call) => getBlob(call, { params: place, query: {} }),
  }
}

/** Computes what a stranger is asked for. */
export function computeExhibitQuote(exhibit: Exhibit, count: number): bigint {
  const { counts, tiers } = exhibits[exhibit]
  return (tiers[0]?.amount ?? 0n) * BigInt(counts === 'row' ? count : 1)
}
