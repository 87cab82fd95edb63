import { parameterTypes } from '@tollbase/contract/query-definition'
import { MapOf, StringEnum } from '@tollbase/contract/schemas'
import { type TProperties, type TSchema, Type } from 'typebox'

/** An object whose members nobody changes. */
export const Struct = <T extends TProperties>(members: T) =>
  Type.ReadonlyObject(Type.Object(members))
export const List = <T extends TSchema>(items: T) => Type.ReadonlyObject(Type.Array(items))
export const Words = MapOf(Type.String())

const Scalar = Type.Union([Type.Number(), Type.String()])

/** Atomic units, never negative: a negative amount would reduce the prices that it is added to. */
export const Atomic = Type.String({ pattern: '^[0-9]+$' })

/** The members of a parameter, be it of a predefined query or of an API. */
export const parameterMembers = {
  name: Type.String(),
  type: Type.Optional(StringEnum([...parameterTypes, 'list'])),
  items: Type.Optional(StringEnum(parameterTypes)),
  values: Type.Optional(Type.Array(Scalar)),
  min: Type.Optional(Scalar),
  max: Type.Optional(Scalar),
  pattern: Type.Optional(Type.String()),
  minLength: Type.Optional(Type.Integer()),
  maxLength: Type.Optional(Type.Integer()),
  maxItems: Type.Optional(Type.Integer()),
  default: Type.Optional(Type.Unknown()),
  required: Type.Optional(Type.Boolean()),
  description: Type.Optional(Type.String()),
}
