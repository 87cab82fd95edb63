import { AccessPolicy as PolicySchema } from '@tollbase/contract/access-policy'
import type { pricePeriods, quotaUnits } from '@tollbase/contract/price-models'
import type { Static } from 'typebox'
import { Compile } from 'typebox/compile'
import type { UsedFields } from '../query/join.ts'

/** Atomic units; zero where nothing is asked. */
export type Price = {
  readonly perAccess: bigint
  readonly perRow: bigint
  readonly perKb: bigint
  /** Bounds of the cost of one request; not there where there is none. */
  readonly minimum?: bigint
  readonly maximum?: bigint
  /** Discounts for buyers by what they bought before; not there where there is nothing. */
  readonly discounts?: Discounts
}

/** The things that tiers and quotas count. KB are counted in bytes. */
export type MeterUnit = (typeof quotaUnits)[number]
export type MeterPeriod = (typeof pricePeriods)[number]

/** The discounts that a seller gives a buyer, depending on earlier purchases. */
export type Discounts = {
  /** Units above these numbers in a period cost other amounts, in ascending order for each unit, never more. */
  readonly tiers: readonly Tier[]
  /** At most one for each unit. */
  readonly quotas: readonly FreeQuota[]
  /** True where time passes are sold, or were: one that is valid makes it free. */
  readonly passes: boolean
}

type Metered = { readonly unit: MeterUnit; readonly period: MeterPeriod }
/** `above` is in requests, rows or KB. */
export type Tier = Metered & { readonly above: bigint; readonly amount: bigint }
/**
 * The number of requests, rows or KB that are free in each period for a buyer who has paid once.
 */
export type FreeQuota = Metered & { readonly quantity: bigint }

/**
 * The level of readers: anyone (by paying, where it has a price), the application's keys, or these alone, with its
 * existence hidden from others.
 */
export type ReadLevel = 'public' | 'key' | 'private'

/** An access policy with its defaults filled in. */
export type AccessPolicy = {
  /** Undefined where its owner has not set it: see read-level.ts. */
  readonly read: ReadLevel | undefined
  readonly price: Price
  readonly preview:
    | { readonly rows: number; readonly fields: readonly string[] | undefined }
    | undefined
  /** Fields that others may select, filter and sort by; undefined means all. */
  readonly offered: {
    readonly select: readonly string[] | undefined
    readonly filter: readonly string[] | undefined
    readonly sort: readonly string[] | undefined
  }
  /**
   * The price for others of joining, aggregating or combining its records, for each request, in atomic units.
   * Undefined where the owner sets none: then it is free for data without a price, and denied for data with one.
   */
  readonly derive: bigint | 'deny' | undefined
  readonly emptyAnswerFree: boolean
  /** Its owner accepts that a quote shows what the answer holds. */
  readonly isQuotedByResult: boolean
  /** The stored shape is not understood, so the data is treated as private. */
  readonly unknownShape: boolean
}

type HiddenUse = {
  /** Undefined: the whole record is asked for. */
  readonly field: string | undefined
  readonly use: keyof UsedFields
  readonly offered: readonly string[]
}

/** Finds the first use of a field that its owner does not offer to others for that; undefined where there is none. */
export function findHiddenUse(
  { offered }: Pick<AccessPolicy, 'offered'>,
  used: UsedFields,
): HiddenUse | undefined {
  for (const use of ['filter', 'sort', 'select'] as const) {
    const [names, allowed] = [used[use], offered[use]]
    if (allowed === undefined) continue
    if (names === 'all') return { field: undefined, use, offered: allowed }
    const field = names.find((name) => !isOffered(name, allowed))
    if (field !== undefined) return { field, use, offered: allowed }
  }
  return undefined
}

/** Returns true if others may select, filter and sort by every field. */
export function isWhollyOffered({ offered }: Pick<AccessPolicy, 'offered'>): boolean {
  return Object.values(offered).every((fields) => fields === undefined)
}

/** Returns true if a field is offered by its own name or by that of a field that contains it. */
function isOffered(name: string, offered: readonly string[]): boolean {
  return offered.some((one) => name === one || name.startsWith(`${one}.`))
}

export const freePrice: Price = { perAccess: 0n, perRow: 0n, perKb: 0n }

const schema = Compile(PolicySchema)

/** Parses a stored access_policy: null and the three words are accepted, an unknown shape is private. */
export function parsePolicy(sent: unknown): AccessPolicy {
  if (sent === null || sent === undefined) return makePolicy({})
  if (sent === 'public' || sent === 'key' || sent === 'private') return makePolicy({ read: sent })
  if (schema.Check(sent)) return makePolicy(sent)
  return { ...makePolicy({ read: 'private' }), unknownShape: true }
}

function makePolicy(policy: Static<typeof PolicySchema>): AccessPolicy {
  const price = parsePrice(policy.price ?? {})
  return {
    read: policy.read,
    price,
    preview: policy.preview
      ? { rows: policy.preview.rows, fields: policy.preview.fields }
      : undefined,
    offered: {
      select: policy.offered?.select,
      filter: policy.offered?.filter,
      sort: policy.offered?.sort,
    },
    derive: parseDerive(policy.derive),
    emptyAnswerFree: policy.empty_answer === 'free',
    isQuotedByResult: policy.quote === 'by_result',
    unknownShape: false,
  }
}

function parseDerive(derive: Static<typeof PolicySchema>['derive']): bigint | 'deny' | undefined {
  if (derive === undefined || derive === 'deny') return derive
  return BigInt(derive.per_access)
}

type SentPrice = {
  readonly per_access?: string | number | null
  readonly per_row?: string | number | null
  readonly per_kb?: string | number | null
}

export function parsePrice(price: SentPrice): Price {
  return {
    perAccess: BigInt(price.per_access ?? 0),
    perRow: BigInt(price.per_row ?? 0),
    perKb: BigInt(price.per_kb ?? 0),
  }
}
