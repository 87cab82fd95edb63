import { Type } from 'typebox'
import { Described, Name } from './schemas.ts'

/** The thing that a price is for. */
export const Target = Type.Union(
  [
    Type.Object(
      { collection: Described(Name, 'the name of a collection') },
      { additionalProperties: false },
    ),
    Type.Object({ view: Described(Name, 'the name of a view') }, { additionalProperties: false }),
    Type.Object(
      { query: Described(Name, 'the name of a predefined query') },
      { additionalProperties: false },
    ),
    Type.Object(
      { api_collection: Described(Name, 'the name of an API collection') },
      { additionalProperties: false },
    ),
  ],
  { description: 'the thing that is sold, such as `{"collection": "prices"}`' },
)

/** The member of a change by which a seller says that it gives something away. */
export const confirm_free = Type.Optional(
  Type.Array(Target, {
    maxItems: 1000,
    description:
      'the things that strangers may read for nothing from now on: `[{"collection": "prices"}]`; without it such a change is 409 PRICE_REMOVED',
  }),
)
