import { limits } from '@tollbase/contract/limits'
import { Fault } from '../../base/fault.ts'
import type { HttpReply } from '../../http/reply.ts'
import type { Call } from '../call.ts'
import type { Catalog } from '../tenancy/catalog.ts'
import { fieldCost, type WrittenRecord } from '../tenancy/field-price.ts'
import { free } from '../tenancy/policy.ts'
import { costOf, type PricedField, type WritePrice, writePriceOf } from '../tenancy/price.ts'
import type { Tenant } from '../tenancy/tenancy.ts'
import { applicationAccount, type Share, wallet } from './entries.ts'
import type { Delivery } from './offer.ts'
import { carriesPayment } from './presented.ts'

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
  const { tenant, parts } = write
  const { owner_address: owner, app_id: appId } = tenant.application
  const rows = parts.reduce((sum, part) => sum + part.rows, 0)
  const now = tenant.data.catalog
  const fieldCosts = costsOfFields()
  const byField = (catalog: Catalog) => sumOf(parts, (part) => fieldCosts(catalog, part))
  // Where a payment is under way, the prices that it was made under may have asked for no such field.
  const isPaying = carriesPayment(call.facts)
  const fields = isPaying ? orUndefined(() => byField(now)) : byField(now)
  const costUnder = (catalog: Catalog) =>
    orUndefined(
      () => sumOf(parts, (part) => costOf(priceUnder(catalog, part), part)) + byField(catalog),
    )
  const delivered = (reply: HttpReply, catalog: Catalog): Delivery => ({
    status: reply.status ?? 202,
    body: Buffer.from(reply.text),
    // What the prices of today cannot tell is what was quoted: more than the quote is never charged.
    charge: costUnder(catalog) ?? limits.amountAtomicMax,
    shares: orUndefined(() => sharesOf(parts, { catalog, appId, fieldCosts })) ?? [],
    rows,
    asOf: null,
  })
  return call.service.payments.sell(call.facts, {
    tenant,
    operation: write.operation,
    description: write.description,
    ...(owner !== null && { payer: owner }),
    capUnder: costUnder,
    breakdown: {
      per_access: Number(sumOf(parts, (part) => priceUnder(now, part).perAccess)),
      per_record: Number(sumOf(parts, (part) => priceUnder(now, part).perRow * BigInt(part.rows))),
      per_kb: Number(
        sumOf(parts, (part) => costOf({ ...free, perKb: priceUnder(now, part).perKb }, part)),
      ),
      ...(fields !== undefined && fields > 0n && { by_field: Number(fields) }),
    },
    deliver: async (catalog, paymentId) => delivered(await write.run(paymentId), catalog),
    recover: async (catalog, paymentId, afterHeight) => {
      const reply = await write.recover(paymentId, afterHeight)
      return reply && delivered(reply, catalog)
    },
  })
}

type FieldCosts = (catalog: Catalog, part: WrittenPart, only?: PricedField) => bigint

/** What records owe by their fields, each field read once. */
function costsOfFields(): FieldCosts {
  const known = new Map<string, bigint>()
  return (catalog, part, only) => {
    const fields = only === undefined ? priceUnder(catalog, part).fields : [only]
    return fields.reduce((sum, { field }) => {
      const name = `${part.collection} ${field}`
      const cost = known.get(name) ?? fieldCost(part.records, field)
      known.set(name, cost)
      return sum + cost
    }, 0n)
  }
}

/** The parts of the charge that price indexes share out in their own way. */
function sharesOf(
  parts: readonly WrittenPart[],
  by: { catalog: Catalog; appId: string; fieldCosts: FieldCosts },
): Share[] {
  return parts.flatMap((part) =>
    priceUnder(by.catalog, part).fields.flatMap((priced): Share[] => {
      if (priced.share === undefined) return []
      const { owner, platform_basis_points: platform } = priced.share
      return [
        {
          amount: by.fieldCosts(by.catalog, part, priced),
          platformBasisPoints: BigInt(platform),
          account: owner === null ? applicationAccount(by.appId) : wallet(owner),
        },
      ]
    }),
  )
}

function orUndefined<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch (error) {
    if (error instanceof Fault) return undefined
    throw error
  }
}

function priceUnder(catalog: Catalog, { collection }: WrittenPart): WritePrice {
  return writePriceOf(catalog, catalog.byName.get(collection))
}

function sumOf(parts: readonly WrittenPart[], amount: (part: WrittenPart) => bigint): bigint {
  return parts.reduce((sum, part) => sum + amount(part), 0n)
}
