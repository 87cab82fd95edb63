import { type Static, type TProperties, type TSchema, Type } from 'typebox'
import { limits } from './limits.ts'
import { quoteKinds } from './price-models.ts'

/** Schemas that several areas share. Those with an `$id` become components of openapi.json. */

export const open = { additionalProperties: true } as const

export const Nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()])

type MapOptions = { readonly names?: TSchema; readonly description?: string }

/**
 * A schema for an object whose members all have one schema, under any names or under such `names`. `Type.Record` lets a
 * member pass whose name its pattern does not match: one with a line break, for example.
 */
export const MapOf = <T extends TSchema>(value: T, { names, ...options }: MapOptions = {}) =>
  Type.Unsafe<Record<string, Static<T>>>({
    type: 'object',
    ...options,
    additionalProperties: value,
    ...(names && { propertyNames: names }),
  })

/** A schema for an array that nobody changes. */
export const ListOf = <T extends TSchema>(
  item: T,
  options: { readonly description?: string } = {},
) => Type.Unsafe<readonly Static<T>[]>(Type.Array(item, options))

/** A schema for one of these words. */
export const StringEnum = <const T extends readonly string[]>(words: T) =>
  Type.Unsafe<T[number]>(Type.Union(words.map((word) => Type.Literal(word))))

/** `problem` is the validator's message for a wrong value, in place of the pattern; see openapi.ts. */
export const AppId = Type.String({
  problem: 'must be 3-63 of a-z 0-9 _ -, starting with a letter',
  pattern: '^[a-z][a-z0-9_-]{2,62}$',
  description: '3-63 of a-z 0-9 _ -, starting with a letter',
})

export const Name = Type.String({
  problem: 'must be 1-63 of a-z A-Z 0-9 _ -',
  pattern: '^[A-Za-z0-9_-]{1,63}$',
  description: '1-63 of a-z A-Z 0-9 _ -',
})

export const Address = Type.String({
  problem: 'must be an EVM address: 0x and 40 hex digits',
  pattern: '^0x[0-9a-fA-F]{40}$',
  description: 'EVM address',
})

const notAtomic = 'must be whole atomic units; 1 cent = 10000'

/** Atomic units as a decimal string: never a float. */
export const Atomic = Type.String({
  problem: notAtomic,
  pattern: '^(0|[1-9][0-9]{0,15})$',
  description: 'atomic units (millionths of a dollar at 6 decimals), decimal string',
})

/** The same amounts, under the same names, in dollars; for people who read an answer. */
export function defineUsd<Name extends string>(...names: readonly Name[]) {
  const members = Object.fromEntries(names.map((name) => [name, Type.String()]))
  return Type.Unsafe<Record<Name, string>>(
    Type.Object(members, { description: 'the amounts of these names in dollars, exact' }),
  )
}

/** The same, of those amounts that are given: a limit may be none. */
export function defineGivenUsd<Name extends string>(...names: readonly Name[]) {
  const members = Object.fromEntries(names.map((name) => [name, Type.Optional(Type.String())]))
  return Type.Unsafe<Partial<Record<Name, string>>>(
    Type.Object(members, {
      description: 'the amounts of these names in dollars, exact, where they are given',
    }),
  )
}

/** An amount as callers may send it: a decimal string, or an integer that a double holds exactly. */
export const AtomicInput = Type.Union(
  [Atomic, Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })],
  { problem: notAtomic },
)

export const Time = Type.String({
  problem: 'must be a time such as 2026-01-31T12:00:00.000Z',
  format: 'date-time',
  description: 'RFC 3339, UTC, milliseconds',
})

/** An end of a period, as callers send it. */
export const Moment = Type.String({
  problem: 'must be a day such as 2026-01-31, or a time such as 2026-01-31T12:00:00Z',
  pattern: '^\\d{4}-\\d\\d-\\d\\d(T\\d\\d:\\d\\d(:\\d\\d(\\.\\d{1,3})?)?Z)?$',
  description: 'a day (its first moment in UTC), or a time in UTC',
})

/** Names a request for ever: sent again with it, it is the same one. */
export const IdempotencyKey = Type.String({
  problem: 'must be 1-200 visible characters',
  pattern: '^[!-~]{1,200}$',
  description: '1-200 visible characters',
})

export const HexHash = Type.String({
  problem: 'must be 64 hex digits, in small letters',
  pattern: '^[0-9a-f]{64}$',
})

export const AsOf = Type.Object(
  { block_height: Type.Integer(), sequence: Type.Integer() },
  {
    $id: 'AsOf',
    description: "The position in the application's chain that the answer was read at",
  },
)

export const Inclusion = Type.Object({
  index: Type.Integer(),
  size: Type.Integer({ description: 'leaves of the tree' }),
  hashes: ListOf(Type.String(), { description: 'base64, from the leaf up (RFC 6962)' }),
})

export const Lag = Type.Object(
  {
    blocks: Type.Integer({ description: "of the application's chain" }),
    ms: Type.Integer({
      description: 'milliseconds since the view was last brought up to date; 0 if it is not behind',
    }),
  },
  { $id: 'Lag', description: 'the distance of a view from the end of its application’s chain' },
)

export const ErrorBody = Type.Object(
  {
    error: Type.String(),
    code: Type.String(),
    details: Type.Optional(Type.Object({}, open)),
    request_id: Type.String(),
  },
  { $id: 'Error' },
)

export const AppParams = Type.Object({ app: AppId })
export const CollectionParams = Type.Object({
  app: AppId,
  collection: Type.String({ minLength: 1, maxLength: 128 }),
})

export const extendAppParams = <P extends TProperties>(more: P) =>
  Type.Object({ app: AppId, ...more })

export const Success = Type.Object({ success: Type.Boolean(), message: Type.String() })

export const PageQuery = Type.Object({
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
  cursor: Type.Optional(Type.String({ maxLength: 200 })),
})

/** The form of a list: JSON where neither this nor `Accept` says otherwise. */
export const ListFormat = Type.Optional(StringEnum(['json', 'csv']))

/** Stands in the description of each list that has CSV. */
export const asCsv =
  '`Accept: text/csv` or `format=csv` gives CSV (RFC 4180); the rest of a list is then named by the header `X-Next-Cursor`.'

/** The seller's choice of how a 402 gets its amount. */
export const QuoteKind = Type.Unsafe<(typeof quoteKinds)[number]>({
  ...StringEnum(quoteKinds),
  description:
    'by_result: a 402 asks for what the answer holds now, so its quote is the charge; this shows the count to whoever asks. request by default',
})

export const Description = Type.String({ maxLength: limits.descriptionCharsMax })
