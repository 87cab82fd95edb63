import { Type } from 'typebox'
import { Name } from './schemas.ts'

/** The thing that a price is for. */
export const Target = Type.Union([
  Type.Object({ collection: Name }, { additionalProperties: false }),
  Type.Object({ view: Name }, { additionalProperties: false }),
  Type.Object({ query: Name }, { additionalProperties: false }),
  Type.Object({ api_collection: Name }, { additionalProperties: false }),
])

/** The member of a change by which a seller says that it gives something away. */
export const confirm_free = Type.Optional(
  Type.Array(Target, {
    maxItems: 1000,
    description:
      'what strangers may read for nothing from now on, such as {"collection": "prices"}; without it such a change is 409 PRICE_REMOVED',
  }),
)
