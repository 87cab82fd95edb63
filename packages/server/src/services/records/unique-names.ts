import { getOwnValue, isRecord } from '../../base/is-record.ts'
import type { Collection } from '../../model/readable.ts'
import type { PreparedRecord } from './prepare-records.ts'

/** A record's key, and its values of unique fields, as names that only one record can have. */
export function listUniqueNames(record: PreparedRecord, collection: Collection): string[] {
  const unique = collection.indexes.filter((index) => index.unique)
  if (unique.length === 0) return [record.key]
  const data: unknown = JSON.parse(record.body)
  const values = unique.flatMap(({ fields }) => {
    const found = fields.map((field) => field.split('.').reduce(getMember, data))
    const missing = found.some((value) => value === undefined || value === null)
    return missing ? [] : [`\u0001${JSON.stringify([fields, found])}`]
  })
  return [record.key, ...values]
}

function getMember(value: unknown, name: string): unknown {
  return isRecord(value) ? getOwnValue(value, name) : undefined
}
