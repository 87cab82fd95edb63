import { limits } from '@tollbase/contract/limits'
import { parseWholeUnits } from '../base/decimal.ts'
import { makeInvalidFault } from '../base/fault.ts'
import { findMemberText } from '../base/json-text.ts'
import { parseFieldPath } from '../query/field-path.ts'

/** Decimals of the token: a field that is a price is in whole tokens. */
export const moneyDecimals = 6

/** A record that is written where its fields may have a price. */
export type WrittenRecord = {
  /** As it is sent or stored. */
  readonly text: string
  /** A deleted record owes nothing. */
  readonly deleted: boolean
  /** Names the record in refusals: a JSON pointer. */
  readonly pointer: string
}

/**
 * Computes the atomic units that the records owe by the value of the field; 400 names the first record at fault,
 * and the field.
 */
export function computeFieldCost(records: readonly WrittenRecord[], field: string): bigint {
  const sum = sumField(records, field)
  if (typeof sum === 'bigint') return sum
  throw makeInvalidFault(sum.pointer, sum.problem)
}

/** The same where every record has what it takes; undefined otherwise. */
export function findFieldCost(
  records: readonly WrittenRecord[],
  field: string,
): bigint | undefined {
  const sum = sumField(records, field)
  return typeof sum === 'bigint' ? sum : undefined
}

function sumField(
  records: readonly WrittenRecord[],
  field: string,
): bigint | { readonly pointer: string; readonly problem: string } {
  const path = parseFieldPath(field, '')
  let sum = 0n
  for (const { text, deleted, pointer } of records) {
    if (deleted) continue
    const found = findTextAt(text, path)
    const amount =
      found === undefined
        ? 'is needed: it is what the record costs'
        : parseWholeUnits(found, moneyDecimals)
    const problem =
      typeof amount === 'bigint' && amount > limits.amountAtomicMax ? 'is too large' : amount
    if (typeof problem === 'string') return { pointer: `${pointer}/${path.join('/')}`, problem }
    sum += problem
  }
  return sum
}

function findTextAt(text: string, path: readonly string[]): string | undefined {
  return path.reduce<string | undefined>(
    (inner, name) => (inner === undefined ? undefined : findMemberText(inner, name)),
    text,
  )
}
