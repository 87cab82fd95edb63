import type { fieldTypes } from '@tollbase/contract/schema-definition'
import { isRecord } from '../base/is-record.ts'
import type { ValueType } from '../query/tree/query.ts'

/** All that the server knows of a type that a schema may give a field. */
type FieldType = {
  /** Judges a value, which is not null. */
  readonly holds: (value: unknown) => boolean
  /** The type that SQL takes the values for, by the `format` that is declared with it; undefined where it knows none. */
  readonly toValueType: (format: unknown) => ValueType | undefined
}

const toNone = () => undefined

const types: Readonly<Record<(typeof fieldTypes)[number], FieldType>> = {
  string: {
    holds: (value) => typeof value === 'string',
    toValueType: (format) =>
      format === 'date-time' ? 'timestamp' : format === 'date' ? 'date' : 'text',
  },
  number: {
    holds: (value) => typeof value === 'number',
    toValueType: () => 'number',
  },
  integer: { holds: Number.isInteger, toValueType: () => 'number' },
  boolean: {
    holds: (value) => typeof value === 'boolean',
    toValueType: () => 'boolean',
  },
  date: {
    holds: (value) =>
      (typeof value === 'string' || typeof value === 'number') &&
      !Number.isNaN(new Date(value).getTime()),
    toValueType: () => 'timestamp',
  },
  object: { holds: isRecord, toValueType: toNone },
  array: { holds: Array.isArray, toValueType: toNone },
  any: { holds: () => true, toValueType: toNone },
}

const byName: ReadonlyMap<unknown, FieldType> = new Map(Object.entries(types))

/** Returns true if the value, which is not null, is of the type; no value is of a type that there is not. */
export function hasFieldType(type: string | undefined, value: unknown): boolean {
  return byName.get(type ?? 'any')?.holds(value) ?? false
}

/** Returns the type that SQL takes a declared field for; undefined where it knows none. */
export function toValueType(field: Readonly<Record<string, unknown>>): ValueType | undefined {
  return byName.get(field.type)?.toValueType(field.format)
}
