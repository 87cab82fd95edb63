import { limits } from '@tollbase/contract/limits'
import { wholeUnits } from '../base/decimal.ts'
import { invalid } from '../base/fault.ts'
import { memberText } from '../base/json-text.ts'
import { parseFieldPath } from '../query/field-path.ts'

/** Decimals of the token: a field that is a price is in whole tokens. */
export const moneyDecimals = 6

/** A record that is written where its fields may have a price. */
export type WrittenRecord = {
  /** As it is sent or stored. */
  readonly text: string
  /** Of a record that is deleted nothing is owed. */
  readonly deleted: boolean
  /** Names the record in refusals: a JSON pointer. */
  readonly pointer: string
}

/** Atomic units that the records owe by the value of the field, or a 400 that names the first at fault, and the field. */
export function fieldCost(records: readonly WrittenRecord[], field: string): bigint {
  const path = parseFieldPath(field, '')
  let sum = 0n
  for (const { text, deleted, pointer } of records) {
    if (deleted) continue
    const found = textAt(text, path)
    const amount =
      found === undefined
        ? 'is needed: it is what the record costs'
        : wholeUnits(found, moneyDecimals)
    const problem =
      typeof amount === 'bigint' && amount > limits.amountAtomicMax ? 'is too large' : amount
    if (typeof problem === 'string') throw invalid(`${pointer}/${path.join('/')}`, problem)
    sum += problem
  }
  return sum
}

function textAt(text: string, path: readonly string[]): string | undefined {
  return path.reduce<string | undefined>(
    (inner, name) => (inner?.startsWith('{') ? memberText(inner, name) : undefined),
    text.trim(),
  )
}
