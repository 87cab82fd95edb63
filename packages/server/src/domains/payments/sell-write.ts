import type { HttpReply } from '../../http/reply.ts'
import type { Call } from '../call.ts'
import type { CollectionState } from '../tenancy/definitions.ts'
import { fieldCost, type WrittenRecord } from '../tenancy/field-price.ts'
import { isMadeBy } from '../tenancy/made-by-payment.ts'
import { free } from '../tenancy/policy.ts'
import { costOf, type PricedField, type WritePrice, writePriceOf } from '../tenancy/price.ts'
import type { Tenant } from '../tenancy/tenancy.ts'
import { applicationAccount, wallet } from './entries.ts'
import type { Delivery, PartPrice, Payee } from './offer.ts'

export type PaidWrite = {
  readonly tenant: Tenant
  /** Names the endpoint in offers and receipts. */
  readonly operation: 'store' | 'batch'
  readonly description: string
  /** What is written, by the name of its collection: records, and bytes of the request. */
  readonly parts: readonly WrittenPart[]
  /** Writes, under the payment's id where there is one, and answers. */
  readonly run: (paymentId: string | undefined) => Promise<HttpReply>
  /** The answer of an earlier try, if it wrote after this height. */
  readonly recover: (paymentId: string, afterHeight: number) => Promise<HttpReply | undefined>
}

export type WrittenPart = {
  readonly collection: string
  readonly rows: number
  readonly bytes: number
  /** The records, as far as a price by their fields needs them. */
  readonly records: readonly WrittenRecord[]
}

/** Sells a write: what it costs is known before, so the cap is the charge. 400 where a record lacks what it costs. */
export function sellWrite(call: Call, write: PaidWrite): Promise<HttpReply> {
  const { tenant } = write
  const { owner_address: owner, app_id: appId, number } = tenant.application
  const { byName } = tenant.data.catalog
  const parts = write.parts.map((part) => pricedPart(tenant, part))
  const shares = parts.flatMap(({ part, price }) => sharesOf(part, price, appId))
  const rows = parts.reduce((sum, { part }) => sum + part.rows, 0)
  const amounts = memo(() => amountsOf(parts, shares))
  const meaningOf = (isCounted: (known: CollectionState) => boolean) => [
    number,
    parts.map(({ part: { collection } }) => {
      const known = byName.get(collection)
      return [collection, known !== undefined && isCounted(known) ? known.id : null]
    }),
    shares.map(({ part, field }) => [part.collection, field]),
  ]
  const delivered = (reply: HttpReply, prices: readonly PartPrice[]): Delivery => ({
    status: reply.status ?? 202,
    body: Buffer.from(reply.text),
    due: prices.map(({ perAccess }) => perAccess),
    rows,
    asOf: null,
  })
  return call.service.payments.sell(call, {
    tenant,
    operation: write.operation,
    description: write.description,
    ...(owner !== null && { payer: owner }),
    // Without what the chain adds to each: a write that fails by that alone is not charged.
    admit: () => {
      const bytes = parts.reduce((sum, { part }) => sum + part.bytes, 0)
      call.service.tenancy.refuseOverQuota(tenant, { entries: rows, bytes })
    },
    meaning: meaningOf(() => true),
    meaningBefore: (paymentId) => meaningOf((known) => !isMadeBy(paymentId, known)),
    payees: [
      { account: applicationAccount(appId), platformBasisPoints: 0 },
      ...shares.map(({ payee }) => payee),
    ],
    pricedBy: [tenant],
    pricesNow: () => {
      const { own, shared } = amounts()
      return [own, ...shared].map((perAccess) => ({ ...free, perAccess, emptyFree: false }))
    },
    capUnder: (prices) => sumOf(prices, ({ perAccess }) => perAccess),
    sellerUnder: () => appId,
    breakdownUnder: () => breakdownOf(parts, amounts().byField),
    deliver: async (prices, paymentId) => delivered(await write.run(paymentId), prices),
    recover: async (prices, paymentId, afterHeight) => {
      const reply = await write.recover(paymentId, afterHeight)
      return reply && delivered(reply, prices)
    },
  })
}

type PricedPart = { readonly part: WrittenPart; readonly price: WritePrice }

function pricedPart({ data }: Tenant, part: WrittenPart): PricedPart {
  const { catalog } = data
  return { part, price: writePriceOf(catalog, catalog.byName.get(part.collection)) }
}

/** What a price index takes for records, which it shares out in its own way. */
type SharedField = {
  readonly part: WrittenPart
  readonly field: string
  readonly payee: Payee
}

function sharesOf(part: WrittenPart, { fields }: WritePrice, appId: string): SharedField[] {
  return fields.flatMap(({ field, share }) => {
    if (share === undefined) return []
    const { owner, platform_basis_points: platformBasisPoints } = share
    const account = owner === null ? applicationAccount(appId) : wallet(owner)
    return [{ part, field, payee: { account, platformBasisPoints } }]
  })
}

type Amounts = {
  /** What is shared out as usual: by call, record, KB, and fields that only a rule prices. */
  readonly own: bigint
  readonly shared: readonly bigint[]
  /** Of all fields, whoever gets it. */
  readonly byField: bigint
}

function amountsOf(parts: readonly PricedPart[], shares: readonly SharedField[]): Amounts {
  const isOwn = ({ share }: PricedField) => share === undefined
  const ownByField = sumOf(parts, ({ part, price }) =>
    sumOf(price.fields.filter(isOwn), ({ field }) => fieldCost(part.records, field)),
  )
  const shared = shares.map(({ part, field }) => fieldCost(part.records, field))
  return {
    own: ownByField + sumOf(parts, ({ part, price }) => costOf(price, part)),
    shared,
    byField: ownByField + sumOf(shared, (amount) => amount),
  }
}

function breakdownOf(parts: readonly PricedPart[], byField: bigint) {
  const part = (amount: (one: PricedPart) => bigint) => Number(sumOf(parts, amount))
  return {
    per_access: part(({ price }) => price.perAccess),
    per_record: part(({ part: { rows }, price }) => price.perRow * BigInt(rows)),
    per_kb: part((one) => costOf({ ...free, perKb: one.price.perKb }, one.part)),
    ...(byField > 0n && { by_field: Number(byField) }),
  }
}

/** Done when it is first asked for, and once. */
function memo<T>(work: () => T): () => T {
  let done: { readonly value: T } | undefined
  return () => {
    done ??= { value: work() }
    return done.value
  }
}

function sumOf<T>(items: readonly T[], amount: (item: T) => bigint): bigint {
  return items.reduce((sum, item) => sum + amount(item), 0n)
}
