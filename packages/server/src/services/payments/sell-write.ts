import type { Measured, SoldItem } from '@tollbase/verify/sale-details'
import type { HttpReply } from '../../http/reply.ts'
import {
  computeCost,
  computeUnboundedCost,
  describeBoundParts,
  limitCost,
  noSize,
} from '../../model/compute-cost.ts'
import { computeFieldCost, findFieldCost, type WrittenRecord } from '../../model/field-price.ts'
import { getWritePrice, type PricedField, type WritePrice } from '../../model/find-price.ts'
import { isMadeBy } from '../../model/paid-collection-id.ts'
import { freePrice } from '../../model/policy.ts'
import type { Collection } from '../../model/readable.ts'
import { toApplicationAccount, toWalletAccount } from '../../projections/ledger-entry.ts'
import type { Tenant } from '../applications/tenants.ts'
import type { Call } from '../call.ts'
import type { Payee } from './purchase.ts'
import type { WriteForm } from './quotes/write-answer-form.ts'
import { makeWriteDelivery } from './write-delivery.ts'

export type PaidWrite = {
  readonly tenant: Tenant
  /** Names the endpoint in offers and receipts, and says how the write is answered. */
  readonly form: WriteForm
  readonly description: string
  /** The written records and bytes of the request, by name of collection. */
  readonly parts: readonly WrittenPart[]
  /** Writes, under the payment's id where there is one, and answers. */
  readonly run: (paymentId: string | undefined) => Promise<HttpReply>
}

export type WrittenPart = {
  readonly collection: string
  readonly rows: number
  readonly bytes: number
  /** The records, as far as a price by their fields needs them. */
  readonly records: readonly WrittenRecord[]
}

/** Sells a write: what it costs is known before, so the cap is the charge. 400 where a record lacks what it costs. */
export function sellWrite(
  call: Call<'tenants' | 'payments'>,
  write: PaidWrite,
): Promise<HttpReply> {
  const { tenant } = write
  const { owner_address: owner, app_id: appId, number } = tenant.application
  const { byName } = tenant.data.catalog
  const parts = write.parts.map((part) => pricePart(tenant, part))
  const shares = parts.flatMap(({ part, price }) => listSharedFields(part, price, appId))
  const rows = parts.reduce((sum, { part }) => sum + part.rows, 0)
  const amounts = memoize(() => computeAmounts(parts, shares))
  const form = { ...write.form, measured: [makeMeasuredWrite(parts), ...shares.map(() => indexed)] }
  const buildMeaning = (isCounted: (known: Collection) => boolean) => [
    number,
    parts.map(({ part: { collection } }) => {
      const known = byName.get(collection)
      return [collection, known !== undefined && isCounted(known) ? known.id : null]
    }),
    shares.map(({ part, field }) => [part.collection, field]),
  ]
  return call.service.payments.sell(call, {
    tenant,
    operation: form.operation,
    description: write.description,
    ...(owner !== null && { payer: owner }),
    // Without what the chain adds to each: a write that fails by that alone is not charged.
    refuseUndeliverable: () => {
      const bytes = parts.reduce((sum, { part }) => sum + part.bytes, 0)
      call.service.tenants.refuseOverQuota(tenant, { entries: rows, bytes })
    },
    meaning: buildMeaning(() => true),
    meaningBefore: (paymentId) => buildMeaning((known) => !isMadeBy(paymentId, known)),
    payees: [
      {
        account: toApplicationAccount(appId),
        platformBasisPoints: 0,
        item: nameWritten(write.parts),
      },
      ...shares.map(({ payee }) => payee),
    ],
    pricedBy: [tenant],
    pricesNow: () => {
      const { own, shared } = amounts()
      return [own, ...shared].map((perAccess) => ({ ...freePrice, perAccess, emptyFree: false }))
    },
    mostUnder: (prices) => prices.map(() => noSize),
    sellerUnder: () => appId,
    breakdownUnder: () => computeBreakdown(parts, amounts()),
    deliver: async (prices, paymentId) =>
      makeWriteDelivery(await write.run(paymentId), form, prices),
    writes: form,
  })
}

const indexed: Measured = { by: 'indexed' }

/** Notes the use of what the application itself prices. Fields without a value are refused where they are priced. */
function makeMeasuredWrite(parts: readonly PricedPart[]): Measured {
  const written = parts.map(({ part: { collection, rows, bytes, records }, price }) => {
    const fields = price.fields.flatMap(({ field, share }) => {
      const cost = share === undefined ? findFieldCost(records, field) : undefined
      return cost === undefined ? [] : [[field, String(cost)] as const]
    })
    const byField = fields.length > 0 && { fields: Object.fromEntries(fields) }
    return { collection, rows, bytes, ...byField }
  })
  return { by: 'written', written }
}

const namesMax = 3

/** One price covers all collections of a batch, so they are one item. */
function nameWritten(parts: readonly WrittenPart[]): SoldItem {
  const names = parts.map(({ collection }) => collection)
  const [name = ''] = names
  if (names.length <= 1) return { kind: 'collection', name }
  const more = names.length - namesMax
  const shown = names.slice(0, namesMax).join(', ')
  return { kind: 'batch', name: more > 0 ? `${shown} and ${more} more` : shown }
}

type PricedPart = { readonly part: WrittenPart; readonly price: WritePrice }

function pricePart({ data }: Tenant, part: WrittenPart): PricedPart {
  const { catalog } = data
  return { part, price: getWritePrice(catalog, catalog.byName.get(part.collection)) }
}

/** A field with a price index, whose charge for records is shared out separately. */
type SharedField = {
  readonly part: WrittenPart
  readonly field: string
  readonly payee: Payee
}

function listSharedFields(part: WrittenPart, { fields }: WritePrice, appId: string): SharedField[] {
  return fields.flatMap(({ field, share }) => {
    if (share === undefined) return []
    const { owner, platform_basis_points: platformBasisPoints } = share
    const account = owner === null ? toApplicationAccount(appId) : toWalletAccount(owner)
    const item = { kind: 'collection', name: part.collection } as const
    return [{ part, field, payee: { account, platformBasisPoints, item } }]
  })
}

type Amounts = {
  /** The amount that is shared out as usual: by call, record, KB, and fields that only a rule prices. */
  readonly own: bigint
  readonly shared: readonly bigint[]
  /** The amount of all fields, whoever gets it. */
  readonly byField: bigint
  /** The amounts by which the bounds of each part's price change its cost. */
  readonly bounds: readonly bigint[]
}

function computeAmounts(parts: readonly PricedPart[], shares: readonly SharedField[]): Amounts {
  const isOwn = ({ share }: PricedField) => share === undefined
  // The bounds of a price are for what its own application gets.
  const costs = parts.map(({ part, price }) => {
    const byField = sumBy(price.fields.filter(isOwn), ({ field }) =>
      computeFieldCost(part.records, field),
    )
    const cost = computeUnboundedCost(price, part) + byField
    return { byField, bounded: limitCost(price, cost), cost }
  })
  const shared = shares.map(({ part, field }) => computeFieldCost(part.records, field))
  return {
    own: sumBy(costs, ({ bounded }) => bounded),
    shared,
    byField: sumBy(costs, ({ byField }) => byField) + sumBy(shared, (amount) => amount),
    bounds: costs.map(({ bounded, cost }) => bounded - cost),
  }
}

function computeBreakdown(parts: readonly PricedPart[], { byField, bounds }: Amounts) {
  const part = (amount: (one: PricedPart) => bigint) => Number(sumBy(parts, amount))
  return {
    per_access: part(({ price }) => price.perAccess),
    per_record: part(({ part: { rows }, price }) => price.perRow * BigInt(rows)),
    per_kb: part((one) => computeCost({ ...freePrice, perKb: one.price.perKb }, one.part)),
    ...(byField > 0n && { by_field: Number(byField) }),
    ...describeBoundParts(bounds),
  }
}

/** Returns a function that does the work at its first call, and once. */
function memoize<T>(work: () => T): () => T {
  let done: { readonly value: T } | undefined
  return () => {
    done ??= { value: work() }
    return done.value
  }
}

function sumBy<T>(items: readonly T[], amount: (item: T) => bigint): bigint {
  return items.reduce((sum, item) => sum + amount(item), 0n)
}
