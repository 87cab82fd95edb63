import { Type } from 'typebox'

/** A number in the configuration that bounds how much callers may do. */
export const Quota = (description: string) =>
  Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000_000, description }))
