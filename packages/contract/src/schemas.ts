import { type Static, type TProperties, type TSchema, Type } from 'typebox'
import { limits } from './limits.ts'
import { quoteKinds } from './price-models.ts'

/** Schemas that several areas share. Those with an `$id` become components of openapi.json. */

export const open = { additionalProperties: true } as const

/** The same schema with a description of its own: a name that is used in several places means something else in each. */
export const Described = <T extends TSchema>(
  schema: T,
  description: string,
  examples?: readonly Static<T>[],
) => Type.Unsafe<Static<T>>({ ...schema, description, ...(examples && { examples }) })

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
export const StringEnum = <const T extends readonly string[]>(
  words: T,
  options: { readonly description?: string } = {},
) =>
  Type.Unsafe<T[number]>(
    Type.Union(
      words.map((word) => Type.Literal(word)),
      options,
    ),
  )

/** `problem` is the validator's message for a wrong value, in place of the pattern; see openapi.ts. */
export const AppId = Type.String({
  problem: 'must be 3-63 of a-z 0-9 _ -, starting with a letter',
  pattern: '^[a-z][a-z0-9_-]{2,62}$',
  description: 'the id of the application: 3-63 of a-z 0-9 _ -, starting with a letter',
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

/** The token of the amounts of an answer. */
export const tokenMembers = {
  currency: Type.String({ description: 'the token of the amounts, such as USDC' }),
  decimals: Type.Integer({
    description: 'digits of the token behind the point: with 6, 1000000 atomic units are one',
  }),
}

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
  {
    problem: notAtomic,
    description: 'atomic units: a decimal string, or a whole number; `"1000000"` is one dollar',
  },
)

/** An amount with words of its own about what it is for. */
export const defineAmount = (what: string, more?: string) =>
  Described(AtomicInput, joinTexts(`${what}, in atomic units (\`"1000000"\` is one dollar)`, more))

/** Joins a text about a member with more about it. */
export const joinTexts = (text: string, more?: string) =>
  more === undefined ? text : `${text}; ${more}`

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
  description:
    'names the request: sent again with it, it is the same one; 1-200 visible characters',
})

/** The network that a payout or a withdrawal is sent on. */
export const PayingNetwork = Type.Optional(
  Type.String({
    maxLength: 100,
    description:
      'the network, by its CAIP-2 name such as `eip155:8453`; needed where the service can send on several',
  }),
)

export const HexHash = Type.String({
  problem: 'must be 64 hex digits, in small letters',
  pattern: '^[0-9a-f]{64}$',
  description: '64 hex digits',
})

export const BlockHeight = Type.Integer({
  description: "the block, by its height on the application's chain",
})

export const Sequence = Type.Integer({ description: 'its place within the block, from 0' })

export const AsOf = Type.Object(
  { block_height: BlockHeight, sequence: Sequence },
  {
    $id: 'AsOf',
    description: "The position in the application's chain that the answer was read at",
  },
)

export const Inclusion = Type.Object(
  {
    index: Type.Integer({ description: 'the place of the leaf, from 0' }),
    size: Type.Integer({ description: 'leaves of the tree' }),
    hashes: ListOf(Type.String(), { description: 'base64, from the leaf up (RFC 6962)' }),
  },
  { description: 'the inclusion proof: the hashes that lead from the leaf to the root' },
)

export const Lag = Type.Object(
  {
    blocks: Type.Integer({ description: "blocks of the application's chain" }),
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

export const CollectionParam = Type.String({
  minLength: 1,
  maxLength: 128,
  description: 'the name of the collection, or its `collection_id`',
})

export const AppParams = Type.Object({ app: AppId })
export const CollectionParams = Type.Object({ app: AppId, collection: CollectionParam })

export const extendAppParams = <P extends TProperties>(more: P) =>
  Type.Object({ app: AppId, ...more })

export const Success = Type.Object({ success: Type.Boolean(), message: Type.String() })

/** Describes the parameter `cursor` of every list that has `next_cursor`. */
const fromCursor = 'the `next_cursor` of the page before; without it the list begins at its start'

export const defineCursor = (maxLength: number) =>
  Type.Optional(Type.String({ maxLength, description: fromCursor }))

export const PageQuery = Type.Object({
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 1000,
      description: 'the most items of one page; 100 by default',
    }),
  ),
  cursor: defineCursor(200),
})

/** Stands in the reply of each list that has pages. */
export const NextCursor = Nullable(
  Type.String({ description: 'the `cursor` of the next page; null where this is the last one' }),
)

/** The form of a list: JSON where neither this nor `Accept` says otherwise. */
export const ListFormat = Type.Optional(
  StringEnum(['json', 'csv'], {
    description:
      'the form of the answer; where it is not given, `Accept` decides, and JSON is the default',
  }),
)

/** A store, an upload or a deletion answers once the block is committed, or once it can be read. */
export const WaitQuery = Type.Object({
  wait: Type.Optional(
    Type.Boolean({
      description:
        'true: answer (200, with `results`) once reads show the change; by default the answer comes (202) once the block is committed',
      examples: [true],
    }),
  ),
})

/** A bound on what is sold. */
export const MaxKb = Type.Optional(
  Type.Integer({
    minimum: 1,
    maximum: limits.resultBytesMax / 1024,
    description:
      'the most KB (1,024 bytes) of an answer that is sold, and of its quote; 64 by default where KB have a price. A longer answer is RESULT_TOO_LARGE, nothing is charged, and what was paid is on the balance of the payer',
  }),
)

/** An application and one of its collections. */
export const Root = Type.String({
  description: 'the application and the collection, or view, as app::collection',
})

/** The distance of lists of numbers. */
export const VectorMeasure = StringEnum(['cosine', 'l2', 'inner_product'], {
  description:
    'the distance: cosine (the default), l2 (Euclidean) or inner_product (the negative one, so that the least is the nearest)',
})

/** The part of the rows that is given. */
export const RowLimit = Type.Integer({
  minimum: 0,
  maximum: limits.rowsMax,
  description:
    'the most rows of the answer; all by default. Where rows have a price, strangers must give it, unless the seller quotes by result: the quote is for so many',
})

export const RowOffset = Type.Integer({
  minimum: 0,
  maximum: limits.offsetMax,
  description: 'the number of rows to skip; 0 by default',
})

/** Stands in the description of each list that has CSV. */
export const asCsv =
  '`Accept: text/csv` or `format=csv` gives CSV (RFC 4180); the rest of a list is then named by the header `X-Next-Cursor`.'

/** The seller's choice of how a 402 gets its amount. */
export const QuoteKind = Type.Unsafe<(typeof quoteKinds)[number]>({
  ...StringEnum(quoteKinds),
  description:
    'by_result: a 402 asks for what the answer holds now, so its quote is the charge; this shows the count to whoever asks. request by default',
})

export const Description = Type.String({
  maxLength: limits.descriptionCharsMax,
  description: 'a text about it, for people',
})
