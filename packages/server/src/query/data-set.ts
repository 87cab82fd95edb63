import { makeInvalidFault } from '../base/fault.ts'
import { keyCharsMax } from './index-key.ts'
import { type Parameters, quoteName } from './sql-text.ts'

/** The contents of a data set: values of fields, networks of IP addresses, or networks with the country of each. */
export const dataSetKinds = ['values', 'cidr', 'ip_country'] as const
export type DataSetKind = (typeof dataSetKinds)[number]

export const dataSetName = /^[A-Za-z0-9_-]{1,63}$/
/** A country code by ISO 3166-1 alpha-2. */
export const countryCode = /^[A-Z]{2}$/
/** Stands for the one set that knows countries; no set can have this name. */
export const countrySet = ''

/** Strings of a set are shorter than the length at which keys are cut, so that equal keys are equal values. */
export const dataSetValueCharsMax = keyCharsMax - 1

/**
 * The table of a data set: `value` (jsonb, unique), or `first`, `last` (inet) and `country` of ranges that share no
 * address.
 */
export type DataSetTable = {
  readonly schema: string
  readonly table: string
  readonly kind: DataSetKind
}

/** The data sets that conditions on a collection may name, by name; the caller has checked that they may. */
export type DataSets = ReadonlyMap<string, DataSetTable>

type Field = {
  readonly key: string
  readonly text: string
  readonly parameters: Parameters
  readonly dataSets?: DataSets | undefined
}

/**
 * Compiles a look-up of the field's value in the set's table, by its primary key. `whenAddress` guards a test of an
 * address.
 */
export function compileDataSet(
  condition: { readonly set: string; readonly country?: string },
  field: Field,
  whenAddress: (test: string) => string,
): string {
  const set = field.dataSets?.get(condition.set)
  if (set === undefined)
    throw makeInvalidFault('/find', 'looks into a data set, which conditions cannot do here')
  const table = quoteName(set.schema, set.table)
  if (set.kind === 'values')
    return `EXISTS (SELECT 1 FROM ${table} AS member WHERE member.value = ${field.key})`
  const address = `${field.text}::inet`
  const isThere =
    condition.country === undefined
      ? ''
      : ` AND span.country = ${field.parameters.add(condition.country, 'text')}`
  // The ranges share no address, so only the last range that begins before the address can hold it.
  return whenAddress(`coalesce((SELECT span.last >= ${address}${isThere} FROM ${table} AS span
  WHERE span.first <= ${address} ORDER BY span.first DESC LIMIT 1), FALSE)`)
}
