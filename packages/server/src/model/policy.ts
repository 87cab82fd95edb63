import { AccessPolicy as PolicySchema } from '@tollbase/contract/collections'
import type { Static } from 'typebox'
import { Compile } from 'typebox/compile'
import type { UsedFields } from '../query/join.ts'

/** Atomic units; zero where nothing is asked. */
export type Price = { readonly perAccess: bigint; readonly perRow: bigint; readonly perKb: bigint }

/** Who may read: anyone (who pays, where it has a price), the application's keys, or these alone and unknown to others. */
export type Read = 'public' | 'key' | 'private'

/** An access policy with its defaults filled in. */
export type AccessPolicy = {
  /** Undefined where its owner has not said: see openness.ts. */
  readonly read: Read | undefined
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
   * What joining, aggregating or combining its records costs others for each request, in atomic units. Undefined where
   * the owner says nothing: then it is free of what has no price, and denied of what has one.
   */
  readonly derive: bigint | 'deny' | undefined
  readonly emptyAnswerFree: boolean
  /** The stored shape is not understood, so the data is treated as private. */
  readonly unknownShape: boolean
}

type Hidden = {
  /** Undefined: the whole record is asked for. */
  readonly field: string | undefined
  readonly use: keyof UsedFields
  readonly offered: readonly string[]
}

/** The first use of a field that its owner does not offer to others for that; undefined where there is none. */
export function hiddenUse(
  { offered }: Pick<AccessPolicy, 'offered'>,
  used: UsedFields,
): Hidden | undefined {
  for (const use of ['filter', 'sort', 'select'] as const) {
    const [names, allowed] = [used[use], offered[use]]
    if (allowed === undefined) continue
    if (names === 'all') return { field: undefined, use, offered: allowed }
    const field = names.find((name) => !isAmong(name, allowed))
    if (field !== undefined) return { field, use, offered: allowed }
  }
  return undefined
}

/** A field is offered by its own name or by that of what it is a part of. */
function isAmong(name: string, offered: readonly string[]): boolean {
  return offered.some((one) => name === one || name.startsWith(`${one}.`))
}

export const free: Price = { perAccess: 0n, perRow: 0n, perKb: 0n }

const schema = Compile(PolicySchema)

/** What a stored access_policy means: null and the three words are accepted, an unknown shape is private. */
export function readPolicy(sent: unknown): AccessPolicy {
  if (sent === null || sent === undefined) return policyOf({})
  if (sent === 'public' || sent === 'key' || sent === 'private') return policyOf({ read: sent })
  if (schema.Check(sent)) return policyOf(sent)
  return { ...policyOf({ read: 'private' }), unknownShape: true }
}

function policyOf(policy: Static<typeof PolicySchema>): AccessPolicy {
  const price = readPrice(policy.price ?? {})
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
    derive: readDerive(policy.derive),
    emptyAnswerFree: policy.empty_answer === 'free',
    unknownShape: false,
  }
}

function readDerive(derive: Static<typeof PolicySchema>['derive']): bigint | 'deny' | undefined {
  if (derive === undefined || derive === 'deny') return derive
  return BigInt(derive.per_access)
}

type SentPrice = {
  readonly per_access?: string | number | null
  readonly per_row?: string | number | null
  readonly per_kb?: string | number | null
}

export function readPrice(price: SentPrice): Price {
  return {
    perAccess: BigInt(price.per_access ?? 0),
    perRow: BigInt(price.per_row ?? 0),
    perKb: BigInt(price.per_kb ?? 0),
  }
}
