import { quoteKinds } from '@tollbase/contract/price-models'
import { Nullable, StringEnum } from '@tollbase/contract/schemas'
import { type Static, Type } from 'typebox'
import { Atomic, List, parameterMembers, Struct } from './definition-parts.ts'

const Amount = Type.Optional(Nullable(Type.Union([Type.Integer({ minimum: 0 }), Atomic])))

const QueryParameter = Type.Object({
  ...parameterMembers,
  field_path: Type.Optional(Type.String()),
})

/**
 * One version of a predefined query, with the members of the contract's `QueryDefinition`; its definition's id is
 * `<name>@<version>`.
 */
export const StoredQuery = Struct({
  name: Type.String(),
  description: Type.Optional(Type.String()),
  sql: Type.Optional(Type.String()),
  source_collection: Type.Optional(Type.String()),
  base_query: Type.Optional(
    Type.Object({
      find: Type.Optional(Type.Unknown()),
      select: Type.Optional(Type.Unknown()),
      sort: Type.Optional(Type.Unknown()),
      limit: Type.Optional(Nullable(Type.Integer())),
      offset: Type.Optional(Nullable(Type.Integer())),
      group_by: Type.Optional(Type.Unknown()),
      aggregate: Type.Optional(Type.Unknown()),
      distinct: Type.Optional(Type.Unknown()),
    }),
  ),
  parameters: List(QueryParameter),
  version: Type.Integer(),
  price: Type.Optional(
    Nullable(Type.Object({ per_access: Amount, per_row: Amount, per_kb: Amount })),
  ),
  public: Type.Optional(Nullable(Type.Boolean())),
  rate_limit: Type.Optional(
    Nullable(Type.Object({ requests: Type.Integer(), window_seconds: Type.Integer() })),
  ),
  quote: Type.Optional(Nullable(StringEnum(quoteKinds))),
  min_group_size: Type.Optional(Nullable(Type.Integer())),
  example_request: Type.Optional(Type.Unknown()),
  example_response: Type.Optional(Type.Unknown()),
  /** The sources that it reads: plain names, or `app::name` for other applications. */
  sources: List(Type.String()),
  created_at: Type.String(),
})
export type StoredQuery = Static<typeof StoredQuery>

/**
 * A version as the catalog keeps it: its examples are JSON text, because their values can take twenty times the memory,
 * and nothing but its description reads them.
 */
export type KeptQuery = Omit<StoredQuery, 'example_request' | 'example_response'> & {
  readonly exampleTexts?: ExampleTexts
}

type ExampleTexts = { readonly request?: string; readonly response?: string }

export function toKeptQuery({
  example_request,
  example_response,
  ...rest
}: StoredQuery): KeptQuery {
  if (example_request === undefined && example_response === undefined) return rest
  const exampleTexts: ExampleTexts = {
    ...(example_request !== undefined && { request: JSON.stringify(example_request) }),
    ...(example_response !== undefined && { response: JSON.stringify(example_response) }),
  }
  return { ...rest, exampleTexts }
}

/** Counts the characters of the JSON text of a version, as it was sent. */
export function countQueryChars({ exampleTexts, ...rest }: Partial<KeptQuery>): number {
  const { request, response } = exampleTexts ?? {}
  return [
    JSON.stringify(rest),
    ...(request === undefined ? [] : [',"example_request":', request]),
    ...(response === undefined ? [] : [',"example_response":', response]),
  ].reduce((sum, { length }) => sum + length, 0)
}
