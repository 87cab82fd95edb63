import { Type } from 'typebox'
import { AnyPolicy, Price } from './access-policy.ts'
import { limits } from './limits.ts'
import { confirm_free } from './price-targets.ts'
import { Description, MapOf, Name, Nullable, StringEnum } from './schemas.ts'

export const refreshModes = ['live', 'lazy'] as const

/** Members of a query that public clients also send beside it. */
export const viewQueryParts = [
  'select',
  'find',
  'where',
  'filter',
  'group_by',
  'groupBy',
  'aggregate',
  'having',
  'sort_by',
  'order_by',
  'orderBy',
  'limit',
] as const

/** The settings of a view beside its definition. */
export const viewSettings = {
  refresh_mode: Type.Optional(
    Nullable(
      StringEnum(refreshModes, {
        description:
          'live: it follows every write; lazy (the default): it is brought up to date by POST .../refresh',
      }),
    ),
  ),
  variables: Type.Optional(
    Nullable(
      MapOf(Type.String({ minLength: 1, maxLength: limits.fieldPathCharsMax }), {
        names: Name,
        description:
          'parameters of GET .../data, each a field of the view, or a field and an operator: `{"country": "country", "min": "rating.$gte"}`; none by default',
      }),
    ),
  ),
  access_policy: Type.Optional(Nullable(AnyPolicy)),
  price: Type.Optional(Nullable(Price)),
  public: Type.Optional(
    Nullable(
      Type.Boolean({
        description:
          "true: strangers may read it, free or by paying, whatever its sources' policy (private ones excepted); false: only keys with Read; by default strangers may where all its sources are open to them",
      }),
    ),
  ),
  description: Type.Optional(Nullable(Description)),
  confirm_free,
}

/** Members of `query` that may stand beside it, as public clients send them. */
export const queryParts = Object.fromEntries(
  viewQueryParts.map((name) => [
    name,
    Type.Optional(Type.Unknown({ description: 'a member of `query`, beside it' })),
  ]),
)
