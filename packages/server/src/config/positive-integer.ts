import { Type } from 'typebox'

/** A number of the configuration that may be left out. */
export const PositiveInteger = (description: string) =>
  Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000_000, description }))
